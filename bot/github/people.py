"""Access of an account to a repository, as GitHub has it now, by its number and not its name."""

from urllib.parse import quote

from bot.github.client import RepositoryClient
from service.provider.errors import GoneKind
from service.provider.values import (
    AccessLevel,
)
from service.vocabulary import Actor

ROLES = {
    "read": AccessLevel.READ,
    "triage": AccessLevel.TRIAGE,
    "write": AccessLevel.WRITE,
    "maintain": AccessLevel.MAINTAIN,
    "admin": AccessLevel.ADMIN,
}

HIDDEN = (403, 404)


async def access(client: RepositoryClient, actor: Actor) -> AccessLevel:
    """Return the rights of an account; NONE unless GitHub clearly says otherwise.

    A login may have been taken by another account since the event, so the answer's number
    must be the actor's; else the number's present login is looked up once. Raises NotPermitted
    when our own token is refused, which says nothing of the account.
    """
    login = actor.login
    for _ in range(2):
        held = await _permission(client, login)
        if held is not None and actor.id and held[0] == actor.id:
            return held[1]
        found = await _login_of(client, actor.id)
        if found is None or found == login:
            return AccessLevel.NONE
        login = found
    return AccessLevel.NONE


async def _permission(client: RepositoryClient, login: str) -> tuple[str, AccessLevel] | None:
    tail = f"/collaborators/{quote(login, safe='')}/permission"
    answer = await client.get(tail, expects=HIDDEN, missing=GoneKind.REPOSITORY, is_kept=True)
    if answer.status in HIDDEN:
        return None
    role, user = answer.fields.words("role_name"), answer.fields.inner_or_none("user")
    older = answer.fields.words("permission")  # GitHub's older field has fewer roles
    level = ROLES.get(role, ROLES.get(older, AccessLevel.NONE))
    return "" if user is None else user.id("id"), level


async def _login_of(client: RepositoryClient, number: str) -> str | None:
    if not number.isdecimal():
        return None
    root = client.github.options.addresses.api
    answer = await client.get(f"{root}/user/{number}", expects=(404,))
    return None if answer.status == 404 else answer.fields.text("login")
