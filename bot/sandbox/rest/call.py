"""One call of the REST API: its caller, what its path names, its rights, its answer.

A handler gets a `Call` and returns an answer; it never sees HTTP. Rights: an App needs one of the
permissions of its route, a person the role that includes it (the provider's "Permissions required
for GitHub Apps").
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox import auth
from bot.sandbox.auth import Caller, Credentials, InstallationToken
from bot.sandbox.git import Commit
from bot.sandbox.records import ROLES, Account, Actor, App, Json
from bot.sandbox.refusal import Refusal, not_accessible, not_found, refused, say
from bot.sandbox.world import Issue, PullRequest, Repository, World

REPO = "/repos/{owner}/{repo}"
PER_PAGE = 30
PER_PAGE_MAX = 100


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with JSON (a dict or list) or without a body."""

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
    """The input of a handler."""

    world: World
    credentials: Credentials
    caller: Caller
    params: dict[str, str]
    query: dict[str, str]
    body: Json
    target: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The repository that the path names, visible to the caller."""
        if self.target is None:
            raise not_found()
        return self.target

    @property
    def issue(self) -> Issue:
        """The issue, or the pull request, that the path names. Raises Refusal(404)."""
        issue = self.repository.issues.get(self.number)
        if issue is None:
            raise not_found()
        return issue

    @property
    def pull(self) -> PullRequest:
        """The pull request that the path names. Raises Refusal(404)."""
        pull = self.issue.pull
        if pull is None:
            raise not_found()
        return pull

    @property
    def number(self) -> int:
        """The number or id in the path."""
        return int(self.params["number"])

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
        if not isinstance(self.caller, App):
            raise refused("auth.jwt")
        return self.caller

    def check_app(self) -> None:
        """Raise Refusal(401) unless an App signed the call."""
        if not isinstance(self.caller, App):
            raise refused("auth.jwt")

    def has_role(self, role: str) -> bool:
        """Return whether the caller has at least a role in the repository."""
        return ROLES.index(self.repository.role_of(self.actor.account)) >= ROLES.index(role)

    def text(self, name: str) -> str:
        """Return a field of the body that must be there. Raises Refusal(422)."""
        value = self.body.get(name)
        if not isinstance(value, str):
            error = {"resource": "Call", "code": "missing_field", "field": name}
            raise Refusal(422, say("body.missing", name), [error])
        return value

    def optional(self, name: str) -> str | None:
        """Return a field of the body that may be missing or null. Raises Refusal(422)."""
        return self.text(name) if self.body.get(name) is not None else None

    def selects(self, name: str, *values: object) -> bool:
        """Return whether a parameter of the query is one of the values, or missing."""
        return self.query.get(name) in (None, *values)

    def resolve(self, name: str) -> Commit:
        """Return the commit of a branch, a ref or a sha. Raises Refusal(404)."""
        git = self.repository.git
        for sha in (git.branch(name), git.refs.get(name), git.refs.get(f"refs/{name}"), name):
            commit = git.objects.commit(sha) if sha is not None else None
            if commit is not None:
                return commit
        raise refused("commit.no_ref", name)

    def page(self) -> tuple[int, int]:
        """Page number and page size; the size is capped at PER_PAGE_MAX."""

        def number(name: str, otherwise: int) -> int:
            value = self.query.get(name, "")
            return int(value) if value.isdecimal() and int(value) > 0 else otherwise

        return number("page", 1), min(PER_PAGE_MAX, number("per_page", PER_PAGE))


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
    """The repository of a name, visible to the caller. Raises Refusal(404)."""
    repository = world.repository(full_name)
    if repository is None or not (_is_visible(caller, repository) or not repository.private):
        raise not_found()
    return repository


def _is_visible(caller: Caller, repository: Repository) -> bool:
    match caller:
        case InstallationToken():
            return caller.sees(repository)
        case Account():
            return repository.role_of(caller) != "none"
        case _:
            return False


def check_rights(call: Call, needs: tuple[str, ...], role: str | None = None) -> None:
    """Raise Refusal where a caller lacks a right: 401, 403 as at GitHub."""
    is_read = all(need.endswith(":read") for need in needs)
    match call.caller:
        case InstallationToken():
            _check_token(call, call.caller, needs, is_read)
        case Account():
            _check_person(call, needs, role)
        case App():
            raise refused("auth.bad")
        case None if not is_read:
            raise refused("auth.needed")
    if not is_read and call.target is not None and call.target.archived:
        raise refused("perm.archived")


def _check_token(
    call: Call, token: InstallationToken, needs: tuple[str, ...], is_read: bool
) -> None:
    if token.installation.suspended_at is not None:
        raise refused("token.suspended")
    if call.target is not None and not token.sees(call.target):
        if is_read and not call.target.private:
            return
        raise not_accessible()
    wanted = (need.partition(":") for need in needs)
    if not any(call.actor.may(permission, level) for permission, _, level in wanted):
        raise not_accessible()


def _check_person(call: Call, needs: tuple[str, ...], role: str | None) -> None:
    if call.target is None:
        return
    role = role or _role_for(needs[0])
    if not call.has_role(role) and (call.target.private or role != "read"):
        raise refused("role.admin")


def _role_for(need: str) -> str:
    permission, _, level = need.partition(":")
    if permission == "administration":
        return "admin"
    return "read" if level == "read" or permission == "issues" else "write"
