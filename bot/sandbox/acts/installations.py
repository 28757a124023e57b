"""The App on an owner: installed, narrowed, suspended, removed; each told by its own event."""

from collections.abc import Sequence

from bot.sandbox import deliver
from bot.sandbox.deliver import APP_SLUG, Event
from bot.sandbox.records import Account, Installation, Json
from bot.sandbox.shapes import people
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World


def install(world: World, owner: Account) -> Installation:
    """The installation of the App on an owner, made when there is none."""
    app = world.apps[APP_SLUG]
    known = world.installation_of(app, owner)
    if known is None:
        known = Installation(world.new_id(), app, owner, dict(app.permissions), world.now())
        world.installations[known.id] = known
        tell_installation(world, known, "created", owner)
    return known


def install_other(world: World, owner: Account, slug: str) -> None:
    """Install another App with checks: write, which reports nothing.

    For each push it gets a check suite, and that stays queued.
    """
    app = world.apps.get(slug) or world.add_app(slug, {"checks": "write"}, [])
    if world.installation_of(app, owner) is None:
        made = Installation(world.new_id(), app, owner, dict(app.permissions), world.now())
        world.installations[made.id] = made


def tell_installation(
    world: World, installation: Installation, action: str, sender: Account
) -> None:
    """Raise an `installation` event, also for a suspended one."""
    fields: Json = {"installation": people.installation(world, installation)}
    if action in ("created", "deleted", "new_permissions_accepted"):
        fields["repositories"] = [
            people.repository_name(one) for one in world.repositories_of(installation)
        ]
    deliver.emit_to(world, installation, None, Event("installation", action, fields, sender))


def tell_repositories(
    world: World,
    installation: Installation,
    added: Sequence[Repository] = (),
    removed: Sequence[Repository] = (),
) -> None:
    """Raise `installation_repositories`, saying what was added or what was removed."""
    fields = {
        "installation": people.installation(world, installation),
        "repository_selection": "all" if installation.repositories is None else "selected",
        "repositories_added": [people.repository_name(one) for one in added],
        "repositories_removed": [people.repository_name(one) for one in removed],
        "requester": None,
    }
    action = "added" if added else "removed"
    event = Event("installation_repositories", action, fields, installation.account)
    deliver.emit_to(world, installation, None, event)


def set_suspended(
    world: World, installation: Installation, by_whom: Account, *, is_suspended: bool
) -> None:
    """Suspend the App on an owner, or let it work again."""
    installation.suspended_at = world.now() if is_suspended else None
    action = "suspend" if is_suspended else "unsuspend"
    tell_installation(world, installation, action, by_whom)


def set_permissions(
    world: World, installation: Installation, by_whom: Account, permissions: dict[str, str]
) -> None:
    """Give an installation other permissions; raises `new_permissions_accepted`."""
    installation.permissions = dict(permissions)
    tell_installation(world, installation, "new_permissions_accepted", by_whom)


def remove(world: World, installation: Installation, by_whom: Account) -> None:
    """Uninstall the App; raises `installation.deleted` as its last event."""
    tell_installation(world, installation, "deleted", by_whom)
    del world.installations[installation.id]


def select(installation: Installation, repository: Repository, *, is_selected: bool) -> None:
    """Add one repository to those the App sees, or take it away from them."""
    world = repository.world
    seen = {one.id for one in world.repositories_of(installation)}
    if is_selected == (repository.id in seen):
        return
    installation.repositories = seen ^ {repository.id}
    named = [repository]
    if is_selected:
        tell_repositories(world, installation, added=named)
    else:
        tell_repositories(world, installation, removed=named)


def rename_owner(world: World, owner: Account, login: str) -> None:
    """Give an owner another login; raises `installation_target.renamed`."""
    old = owner.login
    world.rename_account(owner, login)
    found = world.installation_of(world.apps[APP_SLUG], owner)
    if found is None:
        return
    account = people.organization(world, owner) | people.account(world, owner)
    times = {"created_at": stamp(owner.created_at), "updated_at": stamp(owner.created_at)}
    fields = {
        "account": {**account, **times},
        "changes": {"login": {"from": old}},
        "target_type": owner.kind.value,
    }
    deliver.emit_to(world, found, None, Event("installation_target", "renamed", fields, owner))
