"""The App on its owners: installed, removed, limited to repositories, suspended."""

from bot.sandbox import deliver
from bot.sandbox.deliver import Event
from bot.sandbox.records import Account, Installation, Json
from bot.sandbox.refusal import Refusal
from bot.sandbox.shapes import people
from bot.sandbox.world import Repository, World


def install(world: World, owner: Account, selected: set[int] | None = None) -> Installation:
    """The installation of the App on an owner, made when there is none.

    `selected`: ids of the repositories of a new one, None: all. Raises Refusal(400) without an App.
    """
    app = world.app
    if app is None:
        raise Refusal(400, "no App is registered here")
    installation = world.installation_of(app, owner)
    if installation is None:
        number = world.new_id()
        installation = Installation(
            number, app, owner, dict(app.permissions), world.now(), selected=selected
        )
        world.installations[number] = installation
        _announce(world, installation, "created", owner)
    return installation


def uninstall(world: World, owner: Account, by_whom: Account) -> None:
    """Remove the App from an owner; its tokens stop working."""
    installation = install(world, owner)
    _announce(world, installation, "deleted", by_whom)
    del world.installations[installation.id]


def select(world: World, owner: Account, selected: set[int] | None, by_whom: Account) -> None:
    """Limit the App to some repositories of an owner, or with None give it all."""
    installation = install(world, owner)
    before = {one.id: one for one in world.repositories_of(installation)}
    installation.selected = selected
    after = {one.id: one for one in world.repositories_of(installation)}
    added = [one for number, one in after.items() if number not in before]
    removed = [one for number, one in before.items() if number not in after]
    if added:
        announce_repositories(installation, added, [], by_whom)
    if removed:
        announce_repositories(installation, [], removed, by_whom)


def announce_repositories(
    installation: Installation,
    added: list[Repository],
    removed: list[Repository],
    by_whom: Account,
) -> None:
    """Send an `installation_repositories` event."""
    world = (added or removed)[0].world
    shown = people.installation(world, installation)
    fields = {
        "installation": shown,
        "repository_selection": shown["repository_selection"],
        "repositories_added": [people.repository_name(one) for one in added],
        "repositories_removed": [people.repository_name(one) for one in removed],
        "requester": None,
    }
    action = "added" if added else "removed"
    event = Event("installation_repositories", action, fields, by_whom)
    deliver.emit_to(world, installation, event)


def set_suspended(
    world: World, installation: Installation, by_whom: Account, *, is_suspended: bool
) -> None:
    """Suspend the App on an owner, or unsuspend it."""
    installation.suspended_at = world.now() if is_suspended else None
    action = "suspend" if is_suspended else "unsuspend"
    _announce(world, installation, action, by_whom)


def set_permissions(
    world: World, installation: Installation, by_whom: Account, permissions: dict[str, str]
) -> None:
    """Change an installation's permissions; raises `new_permissions_accepted`."""
    installation.permissions = dict(permissions)
    _announce(world, installation, "new_permissions_accepted", by_whom)


def rename_owner(world: World, owner: Account, login: str) -> None:
    """Give an account another name; the old names of its repositories redirect."""
    old, owner.login = owner.login, login
    for one in world.repositories.values():
        if one.owner is owner:
            world.add_repository(one)
    if world.app is None or (installation := world.installation_of(world.app, owner)) is None:
        return
    fields = {
        "account": people.account(world, owner),
        "changes": {"login": {"from": old}},
        "target_type": owner.kind.value,
    }
    event = Event("installation_target", "renamed", fields, owner)
    deliver.emit_to(world, installation, event)


def _announce(world: World, installation: Installation, action: str, sender: Account) -> None:
    """Send an `installation` event, also to a suspended one."""
    fields: Json = {"installation": people.installation(world, installation)}
    if action in ("created", "deleted", "new_permissions_accepted"):
        fields["repositories"] = [
            people.repository_name(one) for one in world.repositories_of(installation)
        ]
    deliver.emit_to(world, installation, Event("installation", action, fields, sender))
