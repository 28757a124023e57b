"""Find whose request it is, and whether its token's role is enough (docs/design/security.md 1).

The token comes from two headers and from nowhere else. What a token may see is decided where
things are looked up, `service/accounts/access.py`.
"""

import re
from collections.abc import Mapping

from aiohttp import web
from multidict import CIMultiDictProxy, istr

from service.accounts import access, jobs
from service.errors import NotAllowed, Unauthenticated
from service.http import callers
from service.http.callers import Caller
from service.http.rates import Turnstile
from service.runtime import Runtime
from service.vocabulary import Role

ALLOWED: Mapping[Role, frozenset[Role]] = {
    Role.READ: frozenset({Role.READ, Role.QUEUE, Role.ADMIN}),
    Role.CI: frozenset({Role.CI, Role.QUEUE, Role.ADMIN}),
    Role.QUEUE: frozenset({Role.QUEUE, Role.ADMIN}),
    Role.ADMIN: frozenset({Role.ADMIN}),
}
"""Role that an endpoint asks for → roles that include it."""

_X_API_TOKEN = istr("x-api-token")
_AUTHORIZATION = istr("Authorization")
_RUN_ID = re.compile(r"[0-9]{1,20}")


async def holder_of(
    runtime: Runtime, request: web.BaseRequest, token: str, turnstile: Turnstile
) -> Caller:
    """Return who holds the token that came with a request. Raises Unauthenticated, HttpRefused 429.

    A token that this process knows passes at once. One that might be somebody's is looked up in the
    database, unless too many such were refused from its address (docs/design/limits.md 3).
    """
    if not token:
        raise Unauthenticated(callers.NO_TOKEN)
    known = await access.remembered(runtime, token)
    if known is not None:
        return known
    if jobs.is_oidc(token):
        raise Unauthenticated(jobs.ELSEWHERE)
    if not access.is_well_formed(token):
        raise Unauthenticated(callers.NO_TOKEN)
    turnstile.check_stranger(request)
    try:
        return await access.look_up(runtime, token)
    except Unauthenticated:
        turnstile.count_stranger(request)
        raise


def check_role(caller: Caller, role: Role | None) -> None:
    """Raise NotAllowed unless the caller has at least `role`; None: any will do."""
    if role is not None and caller.role not in ALLOWED[role]:
        raise NotAllowed(
            f"This endpoint needs a token of role {role.value}; "
            f'"{caller.name}" has role {caller.role.value}.',
            members={"required_role": role.value, "role": caller.role.value},
        )


def fork_run_of(headers: CIMultiDictProxy[str]) -> str | None:
    """The CI run that a request without token names as its own, None: it names none.

    See docs/design/security.md 1.
    """
    given = headers.get(callers.FORKED_RUN, "").strip()
    return given if _RUN_ID.fullmatch(given) and not token_of(headers) else None


def token_of(headers: CIMultiDictProxy[str]) -> str:
    """The token that was sent, empty when none was; a blank header counts as absent.

    Several that differ are one text, as HTTP joins fields of a name, which no token is.
    """
    sent = dict.fromkeys(text.strip() for text in headers.getall(_X_API_TOKEN, ()))
    tokens = [token for token in sent if token]
    if tokens:
        return ", ".join(tokens)
    scheme, _, credential = headers.get(_AUTHORIZATION, "").strip().partition(" ")
    return credential.strip() if scheme.lower() == "bearer" else ""
