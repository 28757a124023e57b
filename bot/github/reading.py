"""Typed reading of GitHub's JSON: `Fields`, and the readers that several modules share.

Unknown fields are ignored; a missing one that we need raises `Unreadable`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from service.provenance import ProviderTime
from service.provider.signals import Where
from service.provider.values import Commit, ListedPullRequest, Repository
from service.vocabulary import MergeMethod, RepoId, RepoRef, Sha

# The permissions whose absence changes what we do.
PERMISSIONS_READ = ("workflows", "actions", "issues", "contents", "pull_requests")

# What the provider calls a merge method in rules, in the merge call, and on a repository.
METHOD_WORDS: Mapping[MergeMethod, str] = {
    MergeMethod.MERGE_COMMIT: "merge",
    MergeMethod.SQUASH: "squash",
    MergeMethod.REBASE: "rebase",
}

METHOD_FLAGS: Mapping[MergeMethod, str] = {
    MergeMethod.MERGE_COMMIT: "allow_merge_commit",
    MergeMethod.SQUASH: "allow_squash_merge",
    MergeMethod.REBASE: "allow_rebase_merge",
}

_NUMBER = re.compile(r"-?[0-9]{1,18}")
"""So long that it fits into 64 bits, as every number that is stored must."""

BOT = "Bot"


class Unreadable(ValueError):
    """A field we need is missing or of another kind; the text names its path, never its value."""


class Fields:
    """One JSON object. Unknown fields are ignored; `null` counts as missing."""

    __slots__ = ("_members", "_path")

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, dict):
            raise Unreadable(f"{path or 'answer'}: not an object")
        self._members: dict[str, object] = value
        self._path = path

    def names(self) -> tuple[str, ...]:
        """Return the names of the members."""
        return tuple(self._members)

    def as_object(self) -> dict[str, object]:
        """Return all members as they came."""
        return dict(self._members)

    def text(self, name: str) -> str:
        """Return a required string."""
        found = self.text_or(name, None)
        if found is None:
            raise self._missing(name)
        return found

    def text_or(self, name: str, default: str | None) -> str | None:
        """Return a string, or the default if it is missing."""
        found = self._members.get(name)
        if found is None:
            return default
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def words(self, name: str) -> str:
        """Return a string, empty if it is missing."""
        return self.text_or(name, "") or ""

    def id(self, name: str) -> str:
        """Return a required id, which may be a number or a text."""
        found = self.id_or_none(name)
        if found is None:
            raise self._missing(name)
        return found

    def id_or_none(self, name: str) -> str | None:
        """Return an id, None if it is missing."""
        found = self._members.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | str):
            raise self._wrong(name, "an id")
        return str(found)

    def number(self, name: str) -> int:
        """Return a required whole number, also from digits in a text."""
        found = self.id(name)
        if not _NUMBER.fullmatch(found):
            raise self._wrong(name, "a number of at most 18 digits")
        return int(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false."""
        found = self._members.get(name)
        return found if isinstance(found, bool) else default

    def inner(self, name: str) -> "Fields":
        """Return a required object."""
        found = self.inner_or_none(name)
        if found is None:
            raise self._missing(name)
        return found

    def inner_or_none(self, name: str) -> "Fields | None":
        """Return an object, None if it is missing."""
        found = self._members.get(name)
        return None if found is None else Fields(found, self._at(name))

    def each(self, name: str) -> "tuple[Fields, ...]":
        """Return the objects of a list, empty if it is missing; `null` members are left out."""
        return tuple(
            Fields(member, f"{self._at(name)}[{place}]")
            for place, member in enumerate(self.members(name))
            if member is not None
        )

    def members(self, name: str) -> list[object]:
        """Return a list unchanged, empty if it is missing."""
        found = self._members.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._wrong(name, "a list")
        return found

    def moment(self, name: str) -> datetime:
        """Return a required instant."""
        found = self.moment_or_none(name)
        if found is None:
            raise self._missing(name)
        return found

    def moment_or_none(self, name: str) -> datetime | None:
        """Return an instant in UTC, None if it is missing."""
        found = self.text_or(name, None)
        if found is None:
            return None
        try:
            moment = datetime.fromisoformat(found)
        except ValueError as failure:
            raise self._wrong(name, "an instant") from failure
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _missing(self, name: str) -> Unreadable:
        return Unreadable(f"{self._at(name)}: missing")

    def _wrong(self, name: str, wanted: str) -> Unreadable:
        return Unreadable(f"{self._at(name)}: not {wanted}")


@dataclass(frozen=True, slots=True)
class Person:
    """The account that acted."""

    id: str
    login: str
    is_bot: bool


def person_of(account: Fields | None) -> Person | None:
    """Return an account; None for a deleted one, which GitHub shows as null."""
    if account is None:
        return None
    is_bot = account.words("type") == BOT
    return Person(account.id("id"), account.text("login"), is_bot)


def repository_where_of(repository: Fields, host: str) -> Where:
    """Return a repository by identity and present name."""
    owner, _, name = repository.text("full_name").partition("/")
    return Where(RepoId(host, repository.id("id")), RepoRef(host, owner, name))


def repository_of(answer: Fields, host: str) -> Repository:
    """Return a repository; a merge method that GitHub does not show counts as allowed."""
    where = repository_where_of(answer, host)
    return Repository(
        ref=where.ref,
        id=where.id,
        owner_id=answer.inner("owner").id("id"),
        default_branch=answer.text("default_branch"),
        merge_methods=frozenset(
            method for method, flag in METHOD_FLAGS.items() if answer.flag(flag, default=True)
        ),
        archived=answer.flag("archived"),
        url=answer.words("html_url"),
    )


def commit_of(answer: Fields) -> Commit:
    """Return a commit from `/commits`, `/merges` or `/git/commits`."""
    inner = answer.inner_or_none("commit") or answer
    return Commit(
        sha=Sha(answer.text("sha")),
        tree=Sha(inner.inner("tree").text("sha")),
        parents=tuple(Sha(each.text("sha")) for each in answer.each("parents")),
    )


def is_signed(commit: Fields) -> bool:
    """Return whether the signature of a listed commit is verified."""
    verification = commit.inner("commit").inner_or_none("verification")
    return verification is not None and verification.flag("verified")


def ref_of(answer: Fields) -> tuple[str, Sha]:
    """Return full name and commit of a git reference."""
    return answer.text("ref"), Sha(answer.inner("object").text("sha"))


def pull_ref_of(answer: Fields) -> tuple[int, Sha, str]:
    """Return number, head and address of a pull request in a list, or just created."""
    return answer.number("number"), Sha(answer.inner("head").text("sha")), answer.text("html_url")


def listed_pull_of(answer: Fields) -> ListedPullRequest:
    """Return a pull request in a list."""
    number, head, _ = pull_ref_of(answer)
    author = answer.inner_or_none("user")
    return ListedPullRequest(
        number,
        head,
        time_of(answer, "updated_at"),
        "" if author is None else author.text("login"),
        answer.inner("head").text("ref"),
    )


def time_of(answer: Fields, name: str) -> ProviderTime | None:
    """Return a time by GitHub's clock, None if it is absent."""
    moment = answer.moment_or_none(name)
    return None if moment is None else ProviderTime(moment)


def app_id_of(report: Fields) -> str | None:
    """Return the number of the App that wrote a check run or a check suite."""
    app = report.inner_or_none("app")
    return None if app is None else app.id_or_none("id")


@dataclass(frozen=True, slots=True)
class Words:
    """A comment, a review or an issue; `app_id` when an App wrote it."""

    id: str
    author: Person | None
    body: str
    at: datetime | None
    app_id: str | None

    def is_by_app(self, app_id: str, slug: str) -> bool:
        """Return whether this App wrote it: by its number, or by its account without one."""
        if self.app_id is not None:
            return self.app_id == app_id
        login = f"{slug}[bot]".lower()
        return self.author is not None and self.author.is_bot and self.author.login.lower() == login


def words_of(written: Fields) -> Words:
    """Return a comment, a review or an issue, from an event or an answer."""
    app = written.inner_or_none("performed_via_github_app")
    return Words(
        id=written.id("id"),
        author=person_of(written.inner_or_none("user")),
        body=written.words("body"),
        at=written.moment_or_none("created_at") or written.moment_or_none("submitted_at"),
        app_id=None if app is None else app.id_or_none("id"),
    )


def permissions_of(answer: Fields) -> Mapping[str, str]:
    """Return the granted permissions that we read; empty text where none is granted."""
    granted = answer.inner_or_none("permissions") or Fields({})
    return {name: granted.words(name) for name in PERMISSIONS_READ}
