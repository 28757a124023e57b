"""GitHub's field names in webhook payloads: decoded JSON to frozen values.

Here, in `answers.py` (REST) and in `graphql.py` stand the names of GitHub's fields, nowhere
else. Values hold only what we read; a missing field raises `fields.Unreadable`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.github.fields import Fields
from service.provider.signals import Where
from service.vocabulary import RepoId, RepoRef, Sha

BOT = "Bot"
PULL = "pull_request"
COMMITS_TOLD_MAX = 2048  # of one push


@dataclass(frozen=True, slots=True)
class Person:
    """An account as it appears beside an act."""

    id: str
    login: str
    is_bot: bool


@dataclass(frozen=True, slots=True)
class Words:
    """A comment or a review: what somebody wrote on a pull request; `app_id` when by an App."""

    id: str
    author: Person | None
    body: str
    at: datetime | None
    app_id: str | None


@dataclass(frozen=True, slots=True)
class PullEvent:
    """A pull request as an event shows it; `head_repo` None when that repository is gone."""

    number: int
    head_sha: Sha
    head_branch: str
    head_repo: str | None
    label: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Push:
    """A ref that moved or went; `paths` of the commits told, None when that may not be all."""

    ref: str
    after: Sha
    deleted: bool
    forced: bool
    paths: frozenset[str] | None


def where_of(payload: Fields, host: str) -> Where:
    """The repository a delivery is about."""
    return repository_where_of(payload.inner("repository"), host)


def repository_where_of(repository: Fields, host: str) -> Where:
    """A repository by identity and present spelling."""
    owner, _, name = repository.text("full_name").partition("/")
    return Where(RepoId(host, repository.id("id")), RepoRef(host, owner, name))


def has_repository(payload: Fields) -> bool:
    """False for events of a whole organization."""
    return payload.inner_or_none("repository") is not None


def person_of(account: Fields | None) -> Person | None:
    """An account; None for a deleted one, which GitHub shows as null."""
    if account is None:
        return None
    is_bot = account.words("type") == BOT
    return Person(account.id("id"), account.text("login"), is_bot)


def sender_of(payload: Fields) -> Person | None:
    """Who did what a delivery tells."""
    return person_of(payload.inner_or_none("sender"))


def number_of_comment(payload: Fields) -> int | None:
    """The pull request of an `issue_comment` event, None when it is on an issue."""
    issue = payload.inner("issue")
    return None if issue.inner_or_none(PULL) is None else issue.number("number")


def number_of_listed_comment(comment: Fields) -> int | None:
    """The pull request of a listed comment, None when it is on an issue."""
    page, _, _ = comment.text("html_url").partition("#")
    kind, number = page.rsplit("/", 2)[1:]
    return int(number) if kind == "pull" and number.isdecimal() else None


def comment_of(payload: Fields) -> Words:
    """The comment of an `issue_comment` event."""
    return words_of(payload.inner("comment"))


def review_of(payload: Fields) -> Words:
    """The review of a `pull_request_review` event."""
    return words_of(payload.inner("review"))


def words_of(written: Fields) -> Words:
    """A comment or review, from an event or an answer."""
    app = written.inner_or_none("performed_via_github_app")
    return Words(
        id=written.id("id"),
        author=person_of(written.inner_or_none("user")),
        body=written.words("body"),
        at=written.moment_or_none("created_at") or written.moment_or_none("submitted_at"),
        app_id=None if app is None else app.id_or_none("id"),
    )


def pull_event_of(payload: Fields) -> PullEvent:
    """The pull request of any event that carries one."""
    pull = payload.inner(PULL)
    head = pull.inner("head")
    repository, label = head.inner_or_none("repo"), payload.inner_or_none("label")
    return PullEvent(
        number=pull.number("number"),
        head_sha=Sha(head.text("sha")),
        head_branch=head.text("ref"),
        head_repo=None if repository is None else repository.id("id"),
        label=None if label is None else label.text("name"),
        at=pull.moment("updated_at"),
    )


def push_of(payload: Fields) -> Push:
    """A `push` event. After a forced one nothing tells what is there no more."""
    forced, commits = payload.flag("forced"), payload.each("commits")
    is_known = commits and not forced and len(commits) < COMMITS_TOLD_MAX
    return Push(
        ref=payload.text("ref"),
        after=Sha(payload.text("after")),
        deleted=payload.flag("deleted"),
        forced=forced,
        paths=frozenset(_touched(commits)) if is_known else None,
    )


def _touched(commits: Iterable[Fields]) -> Iterator[str]:
    for commit in commits:
        for kind in ("added", "removed", "modified"):
            yield from (path for path in commit.members(kind) if isinstance(path, str))


@dataclass(frozen=True, slots=True)
class Report:
    """A check run, check suite, workflow run or status event; `app_id` of who reported."""

    sha: Sha
    app_id: str | None
    word: str | None


def report_of(payload: Fields, member: str) -> Report:
    """One event about a commit; `word` is the conclusion, None while there is none."""
    report = payload.inner(member)
    app = report.inner_or_none("app")
    return Report(
        sha=Sha(report.text("head_sha")),
        app_id=None if app is None else app.id_or_none("id"),
        word=report.text_or("conclusion", None),
    )


def ci_run_of(payload: Fields) -> tuple[str, int]:
    """Run and attempt of a `workflow_run` event."""
    run = payload.inner("workflow_run")
    return run.id("id"), int(run.id_or_none("run_attempt") or 1)


def status_of(payload: Fields) -> Report:
    """A `status` event; `word` is its state, None while it is pending."""
    state = payload.text_or("state", None)
    return Report(Sha(payload.text("sha")), None, None if state == "pending" else state)


def default_branch_change_of(payload: Fields) -> tuple[str, str] | None:
    """Old and new default branch of a `repository.edited` event, None if it is about else."""
    changes = payload.inner_or_none("changes")
    changed = None if changes is None else changes.inner_or_none("default_branch")
    if changed is None:
        return None
    return changed.text("from"), payload.inner("repository").text("default_branch")


def owner_id_of(payload: Fields) -> str:
    """The account of an installation event."""
    holder = payload.inner_or_none("installation")
    account = None if holder is None else holder.inner_or_none("account")
    return (account or payload.inner("account")).id("id")


def repositories_of(payload: Fields, member: str, host: str) -> tuple[Where, ...]:
    """The repositories of an installation event."""
    return tuple(repository_where_of(each, host) for each in payload.each(member))
