"""What people do to a repository or to the App's installation, as acts by name."""

from collections.abc import Awaitable, Callable, Mapping

from bot.sandbox.acts import installations, repositories
from bot.sandbox.acts.asked import Asked
from bot.sandbox.records import ROLES, Json
from bot.sandbox.refusal import Refusal


async def _rename(asked: Asked) -> Json:
    """Rename the branch `branch`, or the repository, to `to`."""
    to = asked.text("to")
    if "branch" in asked.value:
        branch = asked.text("branch")
        repositories.rename_branch(asked.repository, asked.actor, branch, to)
    else:
        repositories.rename(asked.repository, asked.actor, to)
    return {}


async def _default_branch(asked: Asked) -> Json:
    """Make `branch` the default one."""
    branch = asked.text("branch")
    await repositories.set_default_branch(asked.repository, asked.actor, branch)
    return {}


async def _transfer(asked: Asked) -> Json:
    owner = asked.world.account(asked.text("to"))
    if owner is None:
        raise Refusal(400, f"nobody is called {asked.text('to')!r}")
    repositories.transfer(asked.repository, asked.actor, owner)
    return {}


async def _archive(asked: Asked) -> Json:
    is_archived = bool(asked.value.get("archived", True))
    repositories.set_archived(asked.repository, asked.actor, is_archived=is_archived)
    return {}


async def _suspend(asked: Asked) -> Json:
    """Suspend the App on the repository's owner, or with `suspended: false` let it work."""
    found = installations.install(asked.world, asked.repository.owner)
    is_suspended = bool(asked.value.get("suspended", True))
    installations.set_suspended(asked.world, found, asked.actor.account, is_suspended=is_suspended)
    return {}


async def _permissions(asked: Asked) -> Json:
    """Give the App other permissions on the repository's owner."""
    found = installations.install(asked.world, asked.repository.owner)
    given = {str(name): str(level) for name, level in asked.value["permissions"].items()}
    installations.set_permissions(asked.world, found, asked.actor.account, given)
    return {}


async def _role(asked: Asked) -> Json:
    """Give the person `login` another role."""
    login, role = asked.text("login"), asked.text("role")
    if role not in ROLES:
        raise Refusal(400, f"no role is called {role!r}; there are {', '.join(ROLES)}")
    asked.repository.collaborators[asked.world.add_account(login).login.lower()] = role
    return {}


async def _uninstall(asked: Asked) -> Json:
    """Remove the App from the repository's owner; its tokens are worthless from now on."""
    found = installations.install(asked.world, asked.repository.owner)
    installations.remove(asked.world, found, asked.actor.account)
    return {}


async def _select(asked: Asked) -> Json:
    """Let the App see the repository no longer, or with `selected: true` again."""
    found = installations.install(asked.world, asked.repository.owner)
    is_selected = bool(asked.value.get("selected", False))
    installations.select(asked.world, found, asked.repository, is_selected=is_selected)
    return {}


async def _delete_repository(asked: Asked) -> Json:
    repositories.delete(asked.repository, asked.actor)
    return {}


async def _rename_owner(asked: Asked) -> Json:
    """Give the repository's owner the login `to`."""
    installations.rename_owner(asked.world, asked.repository.owner, asked.text("to"))
    return {}


ACTS: Mapping[str, Callable[[Asked], Awaitable[Json]]] = {
    "archive": _archive,
    "default_branch": _default_branch,
    "delete_repository": _delete_repository,
    "permissions": _permissions,
    "rename": _rename,
    "rename_owner": _rename_owner,
    "role": _role,
    "select": _select,
    "suspend": _suspend,
    "transfer": _transfer,
    "uninstall": _uninstall,
}
