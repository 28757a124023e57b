"""GitHub's field names in REST answers: decoded JSON to frozen values.

Holds only what we read; a missing field raises `fields.Unreadable`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.github import outcomes, payloads
from bot.github.fields import Fields
from bot.github.payloads import Person
from service.provider.ci import Artifact, CiJob, CiRun, CiTrigger, PullRequestSource
from service.provider.tickets import Ticket
from service.provider.trees import TreePaths
from service.provider.values import (
    Commit,
    FailedDelivery,
    Repository,
)
from service.vocabulary import CheckOutcome, MergeMethod, RequiredName, Sha

# The permissions whose absence changes what we do.
PERMISSIONS_READ = ("workflows", "actions", "issues", "contents", "pull_requests")

# What began a run and which code it then tests; of others its steps alone know.
CI_TRIGGERS: Mapping[str, CiTrigger] = {
    "push": CiTrigger.HEAD,
    "schedule": CiTrigger.HEAD,
    "workflow_dispatch": CiTrigger.HEAD,
    "merge_group": CiTrigger.HEAD,
    "pull_request": CiTrigger.PULL_REQUEST,
    "pull_request_target": CiTrigger.PULL_REQUEST,
}

# What `current_user_can_bypass` says where a merge call of ours passes the ruleset by.
BYPASSES = frozenset({"always", "pull_requests_only", "exempt"})

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
class SuiteReport:
    """One check suite of a commit."""

    id: str
    status: str
    app_id: str | None


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
    permissions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of CI as GitHub's own runner groups jobs."""

    id: str
    status: str
    conclusion: str | None


@dataclass(frozen=True, slots=True)
class IssueSeen:
    """An issue, or a pull request in a list of them; `app_id` when an App wrote it."""

    ticket: Ticket
    author: Person | None
    app_id: str | None
    is_pull: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a branch, with the parameters we read; `ruleset` is the id of its ruleset."""

    type: str
    checks: tuple[RequiredName, ...]
    methods: frozenset[MergeMethod] | None
    needs_resolved_threads: bool
    needs_code_owners: bool = False
    needs_last_push: bool = False
    is_strict: bool = False
    ruleset: str | None = None


@dataclass(frozen=True, slots=True)
class Classic:
    """Classic protection of a branch; `pushers` are Apps by slug, None: anybody may push."""

    checks: tuple[RequiredName, ...] = ()
    is_strict: bool = False
    needs_resolved_threads: bool = False
    needs_code_owners: bool = False
    needs_last_push: bool = False
    needs_signatures: bool = False
    is_linear: bool = False
    is_locked: bool = False
    pushers: tuple[str, ...] | None = None


def repository_of(answer: Fields, host: str) -> Repository:
    """A repository. A merge flag GitHub does not show us counts as allowed."""
    where = payloads.repository_where_of(answer, host)
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


def tree_paths_of(answer: Fields) -> TreePaths:
    """A tree with all below it."""
    lines = answer.each("tree")
    ids = {
        each.text("path"): Sha(each.text("sha")) for each in lines if each.words("type") == "blob"
    }
    return TreePaths(ids, complete=not answer.flag("truncated"))


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


def suite_report_of(answer: Fields) -> SuiteReport:
    """A check suite."""
    app = answer.inner_or_none("app")
    return SuiteReport(
        id=answer.id("id"),
        status=answer.words("status"),
        app_id=None if app is None else app.id_or_none("id"),
    )


def status_report_of(answer: Fields) -> StatusReport:
    """A commit status."""
    return StatusReport(
        id=answer.id("id"),
        context=answer.text("context"),
        state=answer.text("state"),
        creator=payloads.person_of(answer.inner_or_none("creator")),
        url=answer.words("target_url"),
        at=answer.moment_or_none("updated_at") or answer.moment_or_none("created_at"),
    )


def token_of(answer: Fields) -> Token:
    """An installation token."""
    return Token(answer.text("token"), answer.moment("expires_at"), _permissions_of(answer))


def _permissions_of(answer: Fields) -> Mapping[str, str]:
    """What is granted of those that we read; empty text where nothing is."""
    granted = answer.inner_or_none("permissions") or Fields({})
    return {name: granted.words(name) for name in PERMISSIONS_READ}


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
    is_suspended = answer.text_or("suspended_at", None) is not None
    return Installation(answer.id("id"), is_suspended, _permissions_of(answer))


def failed_delivery_of(answer: Fields) -> FailedDelivery:
    """One try to deliver something to us; the GUID is the same in all tries."""
    return FailedDelivery(answer.text("guid"), answer.id("id"), answer.moment("delivered_at"))


def workflow_run_of(answer: Fields) -> WorkflowRun:
    """A workflow run."""
    return WorkflowRun(answer.id("id"), answer.words("status"), answer.text_or("conclusion", None))


def ci_run_of(answer: Fields) -> CiRun:
    """One attempt of a workflow run; a deleted fork has no repository."""
    own = answer.inner("repository").id("id")
    head = answer.inner_or_none("head_repository")
    status = answer.words("status")
    trigger = CI_TRIGGERS.get(answer.words("event"), CiTrigger.UNKNOWN)
    return CiRun(
        id=answer.id("id"),
        attempt=int(answer.id_or_none("run_attempt") or 1),
        trigger=trigger,
        head_sha=Sha(answer.text("head_sha")),
        head_branch=answer.words("head_branch"),
        of_fork=trigger is CiTrigger.PULL_REQUEST and (head is None or head.id("id") != own),
        pull_requests=tuple(
            each.number("number")
            for each in answer.each("pull_requests")
            if each.inner("base").inner("repo").id("id") == own
        ),
        is_running=status != outcomes.COMPLETED,
        outcome=_outcome_of(answer),
        started_at=answer.moment_or_none("run_started_at") or answer.moment("created_at"),
        url=answer.words("html_url"),
        head_repo="" if head is None else head.id("id"),
    )


def pull_source_of(answer: Fields) -> PullRequestSource | None:
    """The source of a pull request from `/pulls/{number}`; None when it is closed."""
    if answer.text("state") != "open":
        return None
    head, own = answer.inner("head"), answer.inner("base").inner("repo").id("id")
    repository = head.inner_or_none("repo")
    source = "" if repository is None else repository.id("id")
    return PullRequestSource(
        number=answer.number("number"),
        head_repo=source,
        head_branch=head.text("ref"),
        head_sha=Sha(head.text("sha")),
        is_fork=source != own,
    )


def ci_job_of(answer: Fields) -> CiJob:
    """A job of a workflow run.

    The run's own `name` is a title that may differ from run to run; the workflow's stands here.
    """
    return CiJob(
        id=answer.id("id"),
        name=answer.text("name"),
        workflow=answer.words("workflow_name"),
        runner=answer.words("runner_name"),
        outcome=_outcome_of(answer),
        failed_steps=sum(
            outcomes.of_run(outcomes.COMPLETED, each.text_or("conclusion", None), skipped_pass=True)
            is CheckOutcome.FAILED
            for each in answer.each("steps")
        ),
        started_at=answer.moment_or_none("started_at"),
        completed_at=answer.moment_or_none("completed_at"),
    )


def artifact_of(answer: Fields) -> Artifact:
    """An artifact of a workflow run."""
    return Artifact(
        id=answer.id("id"),
        name=answer.text("name"),
        size=answer.number("size_in_bytes"),
        is_expired=answer.flag("expired"),
        created_at=answer.moment_or_none("created_at"),
    )


def issue_of(answer: Fields) -> IssueSeen:
    """An issue as it stands; a closed one without its time counts as closed since it changed."""
    app = answer.inner_or_none("performed_via_github_app")
    closed_at = None
    if answer.text("state") == "closed":
        closed_at = answer.moment_or_none("closed_at") or answer.moment("updated_at")
    ticket = Ticket(
        number=answer.number("number"),
        url=answer.text("html_url"),
        title=answer.words("title"),
        body=answer.words("body"),
        closed_at=closed_at,
    )
    return IssueSeen(
        ticket=ticket,
        author=payloads.person_of(answer.inner_or_none("user")),
        app_id=None if app is None else app.id_or_none("id"),
        is_pull=answer.inner_or_none("pull_request") is not None,
    )


def issues_of(listed: Sequence[object]) -> tuple[IssueSeen, ...]:
    """A page of issues, pull requests among them, in the provider's order."""
    return tuple(issue_of(Fields(each)) for each in listed)


def has_issues(answer: Fields) -> bool:
    """Whether a repository has its issues switched on."""
    return answer.flag("has_issues", default=True)


def _outcome_of(answer: Fields) -> CheckOutcome:
    conclusion = answer.text_or("conclusion", None)
    return outcomes.of_run(answer.words("status"), conclusion, skipped_pass=True)


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
        needs_code_owners=parameters.flag("require_code_owner_review"),
        needs_last_push=parameters.flag("require_last_push_approval"),
        is_strict=parameters.flag("strict_required_status_checks_policy"),
        ruleset=answer.id_or_none("ruleset_id"),
    )


def protection_of(answer: Fields) -> Classic:
    """Return classic protection as one value."""
    checks = answer.inner_or_none("required_status_checks") or Fields({})
    reviews = answer.inner_or_none("required_pull_request_reviews") or Fields({})
    pushers = answer.inner_or_none("restrictions")
    listed = classic_checks_of(checks)
    return Classic(
        checks=listed,
        is_strict=bool(listed) and checks.flag("strict"),
        needs_resolved_threads=_is_on(answer, "required_conversation_resolution"),
        needs_code_owners=reviews.flag("require_code_owner_reviews"),
        needs_last_push=reviews.flag("require_last_push_approval"),
        needs_signatures=_is_on(answer, "required_signatures"),
        is_linear=_is_on(answer, "required_linear_history"),
        is_locked=_is_on(answer, "lock_branch"),
        pushers=None
        if pushers is None
        else tuple(app.text("slug") for app in pushers.each("apps")),
    )


def _is_on(answer: Fields, name: str) -> bool:
    setting = answer.inner_or_none(name)
    return setting is not None and setting.flag("enabled")


def can_bypass(answer: Fields) -> bool | None:
    """Whether we may bypass a ruleset when we merge a pull request; None when it is not said."""
    word = answer.text_or("current_user_can_bypass", None)
    return None if word is None else word in BYPASSES


def is_stacked(answer: Fields) -> bool:
    """Whether a pull request is part of a native stack."""
    return answer.inner_or_none("stack") is not None


def is_signed(answer: Fields) -> bool:
    """Whether the signature of a listed commit is verified."""
    verification = answer.inner("commit").inner_or_none("verification")
    return verification is not None and verification.flag("verified")


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
