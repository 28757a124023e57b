"""One call of the REST API: who calls, what it names, what it may, what is answered.

A handler gets a `Call` and gives a reply; it never sees HTTP. Rights: an App needs one of the
permissions of its route, a person the role that stands for it (the provider's "Permissions
required for GitHub Apps").
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox import auth
from bot.sandbox.auth import AppCaller, Caller, Credentials, Nobody, PersonCaller, TokenCaller
from bot.sandbox.records import ROLES, Account, Actor, App, Json
from bot.sandbox.refusal import Refusal, not_accessible, not_found, refused, say
from bot.sandbox.world import Repository, World

PER_PAGE = 30
PER_PAGE_MAX = 100


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: JSON (a dict or list), raw bytes, or nothing."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list answered page by page; `key` names it inside an object with `total_count`."""

    items: Sequence[Any]
    shape: Callable[[Any], Json]
    key: str | None = None
    extra: Json = field(default_factory=dict)


Answer = Reply | Listing


@dataclass(slots=True)
class Call:
    """The input of a handler; `repository` is that of the path, visible to the caller."""

    world: World
    credentials: Credentials
    caller: Caller
    method: str
    params: dict[str, str]
    query: dict[str, str]
    body: Json
    accept: str = ""
    found: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The repository that the path names."""
        if self.found is None:
            raise not_found()
        return self.found

    @property
    def actor(self) -> Actor:
        """The account that acts. Raises Refusal(401) without one."""
        actor = auth.actor_of(self.caller)
        if actor is None:
            raise refused("auth.needed")
        return actor

    @property
    def app(self) -> App:
        """The App that signed the call. Raises Refusal(401) for any other caller."""
        if not isinstance(self.caller, AppCaller):
            raise refused("auth.jwt")
        return self.caller.app

    def text(self, name: str) -> str:
        """A field of the body that must be there. Raises Refusal(422)."""
        value = self.body.get(name)
        if not isinstance(value, str):
            error = {"resource": "Call", "code": "missing_field", "field": name}
            raise Refusal(422, say("body.missing", name), [error])
        return value

    def optional(self, name: str) -> str | None:
        """A field of the body that may be missing or null. Raises Refusal(422)."""
        return self.text(name) if self.body.get(name) is not None else None


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One operation.

    `path` below `/api/v3`, `{name}` for a segment and `{name:.+}` for several; `needs` are the
    App permissions of which one is enough, as `contents:write`; `role` is what a person needs
    where that differs.
    """

    method: str
    path: str
    handler: Handler
    needs: tuple[str, ...] = ("metadata:read",)
    role: str | None = None


def repository_of(world: World, caller: Caller, full_name: str) -> Repository:
    """The repository of a name, for a caller who may know of it. Raises Refusal(404)."""
    found = world.repository(full_name)
    if found is None or not _is_visible(world, caller, found):
        raise not_found()
    return found


def _is_visible(world: World, caller: Caller, repository: Repository) -> bool:
    if not repository.private:
        return True
    match caller:
        case TokenCaller(grant=grant):
            chosen = grant.repositories
            is_chosen = chosen is None or repository.id in chosen
            return is_chosen and world.covers(grant.installation, repository)
        case PersonCaller(account=account):
            return repository.role_of(account) != "none"
        case _:
            return False


def check_rights(call: Call, needs: tuple[str, ...], role: str | None = None) -> None:
    """Raise Refusal where a caller may not: 401, 403 as at the provider."""
    is_read = all(need.endswith(":read") for need in needs)
    match call.caller:
        case TokenCaller():
            _check_token(call, call.caller, needs, is_read)
        case PersonCaller(account=account):
            _check_person(call, account, needs, role)
        case AppCaller():
            raise refused("auth.bad")
        case Nobody():
            if not is_read:
                raise refused("auth.needed")
    if not is_read and call.found is not None and call.found.archived:
        raise refused("perm.archived")


def _check_token(call: Call, caller: TokenCaller, needs: tuple[str, ...], is_read: bool) -> None:
    grant = caller.grant
    if grant.installation.suspended_at is not None:
        raise refused("token.suspended")
    if call.found is not None:
        chosen = grant.repositories
        is_chosen = chosen is None or call.found.id in chosen
        if not (is_chosen and call.world.covers(grant.installation, call.found)):
            if is_read and not call.found.private:
                return
            raise not_accessible()
    actor = call.actor
    for need in needs:
        permission, _, level = need.partition(":")
        if actor.may(permission, level):
            return
    raise not_accessible()


def _check_person(call: Call, account: Account, needs: tuple[str, ...], role: str | None) -> None:
    if call.found is None:
        return
    needed = role or _role_for(needs[0])
    has_role = ROLES.index(call.found.role_of(account)) >= ROLES.index(needed)
    if not has_role and (call.found.private or needed != "read"):
        raise refused("role.admin")


def _role_for(need: str) -> str:
    permission, _, level = need.partition(":")
    if permission == "administration":
        return "admin"
    if level == "read" or permission == "issues":
        return "read"
    return "write"


def page_of(call: Call) -> tuple[int, int]:
    """Page number and page size; the size is capped at PER_PAGE_MAX."""

    def number(name: str, otherwise: int) -> int:
        value = call.query.get(name, "")
        return int(value) if value.isdecimal() and int(value) > 0 else otherwise

    return number("page", 1), min(PER_PAGE_MAX, number("per_page", PER_PAGE))
