"""GitHub's field names: webhook payloads and REST answers to frozen values.

The only file that knows them (GraphQL's stand in `graphql.py`, beside the documents that ask
for them). Values hold only what we read; a missing field raises `fields.Unreadable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.github.fields import Fields
from service.provider.port import Commit, Repository
from service.provider.signals import Where
from service.vocabulary import MergeMethod, RepoId, RepoRef, RequiredName, Sha

BOT = "Bot"
PULL = "pull_request"
# The permissions whose absence changes what we do.
PERMISSIONS_READ = ("workflows", "actions")

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
    """A ref that moved or went."""

    ref: str
    after: Sha
    deleted: bool
    forced: bool


@dataclass(frozen=True, slots=True)
class RunReport:
    """One check run of a commit."""

    id: str
    name: str
    status: str
    conclusion: str | None
    app_id: str | None
    suite: str
    external_id: str
    url: str
    started_at: datetime | None
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class StatusReport:
    """One update of one commit status."""

    id: str
    context: str
    state: str
    creator: Person | None
    url: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Token:
    """An installation token and what it may do."""

    token: str = field(repr=False)
    expires_at: datetime
    permissions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PermissionHeld:
    """Somebody's rights: the role, and GitHub's older word, which folds some roles together."""

    user_id: str
    role: str
    permission: str


@dataclass(frozen=True, slots=True)
class Installation:
    """Where our App is installed."""

    id: str
    is_suspended: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a delivery; `guid` is the delivery's id in all its tries."""

    id: str
    guid: str
    at: datetime


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of CI as GitHub's own runner groups jobs."""

    id: str
    status: str
    conclusion: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a branch, with the parameters we read."""

    type: str
    checks: tuple[RequiredName, ...]
    methods: frozenset[MergeMethod] | None
    needs_resolved_threads: bool


# ---------------------------------------------------------------------------- webhook payloads


def where_of(payload: Fields, host: str) -> Where:
    """The repository a delivery is about."""
    return _where(payload.inner("repository"), host)


def _where(repository: Fields, host: str) -> Where:
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
    """A `push` event."""
    return Push(
        ref=payload.text("ref"),
        after=Sha(payload.text("after")),
        deleted=payload.flag("deleted"),
        forced=payload.flag("forced"),
    )


def reported_sha_of(payload: Fields, member: str) -> tuple[Sha, str | None]:
    """The commit of a check run, check suite or workflow run event, and the App behind it."""
    report = payload.inner(member)
    app = report.inner_or_none("app")
    return Sha(report.text("head_sha")), None if app is None else app.id_or_none("id")


def status_sha_of(payload: Fields) -> Sha:
    """The commit of a `status` event."""
    return Sha(payload.text("sha"))


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
    return tuple(_where(each, host) for each in payload.each(member))


# -------------------------------------------------------------------------------- REST answers


def repository_of(answer: Fields, host: str) -> Repository:
    """A repository. A merge flag GitHub does not show us counts as allowed."""
    where = _where(answer, host)
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
    """A commit, in the shape of `/commits`, `/merges` or `/git/commits`."""
    inner = answer.inner_or_none("commit") or answer
    return Commit(
        sha=Sha(answer.text("sha")),
        tree=Sha(inner.inner("tree").text("sha")),
        parents=tuple(Sha(each.text("sha")) for each in answer.each("parents")),
    )


def ref_of(answer: Fields) -> tuple[str, Sha]:
    """Full name and commit of a git reference."""
    return answer.text("ref"), Sha(answer.inner("object").text("sha"))


def pull_ref_of(answer: Fields) -> tuple[int, Sha, str]:
    """Number, head and address of a pull request in a list or as just made."""
    return answer.number("number"), Sha(answer.inner("head").text("sha")), answer.text("html_url")


def paths_of(answer: Fields) -> tuple[str, ...]:
    """New and, after a rename, old name of one changed file."""
    old = answer.text_or("previous_filename", None)
    return (answer.text("filename"),) if old is None else (answer.text("filename"), old)


def run_report_of(answer: Fields) -> RunReport:
    """A check run."""
    app, suite = answer.inner_or_none("app"), answer.inner_or_none("check_suite")
    return RunReport(
        id=answer.id("id"),
        name=answer.text("name"),
        status=answer.text("status"),
        conclusion=answer.text_or("conclusion", None),
        app_id=None if app is None else app.id_or_none("id"),
        suite="" if suite is None else suite.id_or_none("id") or "",
        external_id=answer.words("external_id"),
        url=answer.words("details_url") or answer.words("html_url"),
        started_at=answer.moment_or_none("started_at"),
        completed_at=answer.moment_or_none("completed_at"),
    )


def status_report_of(answer: Fields) -> StatusReport:
    """A commit status."""
    return StatusReport(
        id=answer.id("id"),
        context=answer.text("context"),
        state=answer.text("state"),
        creator=person_of(answer.inner_or_none("creator")),
        url=answer.words("target_url"),
        at=answer.moment_or_none("updated_at") or answer.moment_or_none("created_at"),
    )


def token_of(answer: Fields) -> Token:
    """An installation token."""
    granted = answer.inner_or_none("permissions") or Fields({})
    permissions = {name: granted.words(name) for name in PERMISSIONS_READ}
    return Token(answer.text("token"), answer.moment("expires_at"), permissions)


def permission_held_of(answer: Fields) -> PermissionHeld:
    """The answer of `/collaborators/{login}/permission`."""
    user = answer.inner_or_none("user")
    return PermissionHeld(
        user_id="" if user is None else user.id("id"),
        role=answer.words("role_name"),
        permission=answer.words("permission"),
    )


def installation_of(answer: Fields) -> Installation:
    """One of the App's installations."""
    return Installation(answer.id("id"), answer.text_or("suspended_at", None) is not None)


def attempt_of(answer: Fields) -> Attempt:
    """One try to deliver something to us."""
    return Attempt(answer.id("id"), answer.text("guid"), answer.moment("delivered_at"))


def workflow_run_of(answer: Fields) -> WorkflowRun:
    """A workflow run."""
    return WorkflowRun(answer.id("id"), answer.words("status"), answer.text_or("conclusion", None))


def job_name_of(answer: Fields) -> str:
    """The name of a job, which is its check run's."""
    return answer.text("name")


def rule_of(answer: Fields) -> Rule:
    """One rule of `/rules/branches/{branch}`."""
    parameters = answer.inner_or_none("parameters") or Fields({})
    methods = parameters.members("allowed_merge_methods")
    return Rule(
        type=answer.text("type"),
        checks=tuple(
            RequiredName(each.text("context"), each.id_or_none("integration_id"))
            for each in parameters.each("required_status_checks")
        ),
        methods=_methods(methods) if methods else None,
        needs_resolved_threads=parameters.flag("required_review_thread_resolution"),
    )


def classic_checks_of(answer: Fields) -> tuple[RequiredName, ...]:
    """Required checks of classic protection; an App of null or -1 means any."""
    listed = answer.each("checks")
    if not listed:
        names = answer.members("contexts")
        return tuple(RequiredName(name) for name in names if isinstance(name, str))
    return tuple(
        RequiredName(each.text("context"), _pin(each.id_or_none("app_id"))) for each in listed
    )


def branch_checks_of(answer: Fields) -> tuple[RequiredName, ...] | None:
    """The same from a branch; None when it is protected and does not say how."""
    protection = answer.inner_or_none("protection")
    checks = None if protection is None else protection.inner_or_none("required_status_checks")
    if checks is not None:
        return classic_checks_of(checks)
    return None if answer.flag("protected", default=True) else ()


def _pin(app_id: str | None) -> str | None:
    return None if app_id in (None, "-1") else app_id


def _methods(words: list[object]) -> frozenset[MergeMethod]:
    return frozenset(method for method, word in METHOD_WORDS.items() if word in words)
