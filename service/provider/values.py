"""The values that go to a provider and come back: frozen values, ids opaque strings.

The verbs are in `provider/port.py`. Nothing here knows one provider's words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from service.landed_work import WorkJudged
from service.provenance import ProviderTime
from service.provider.labels import LabelRemoval, LabelReturn, StateLabel
from service.provider.signals import Delivery
from service.provider.stacks import Stack
from service.vocabulary import (
    Approval,
    Blocker,
    Check,
    ConflictRule,
    Mergeability,
    MergeMethod,
    PullRequestState,
    RepoId,
    RepoRef,
    RequiredName,
    Resolved,
    Sha,
)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as the provider has it now; `owner_id` names the account (our tenant)."""

    ref: RepoRef
    id: RepoId
    owner_id: str
    default_branch: str
    merge_methods: frozenset[MergeMethod]
    archived: bool
    url: str


@dataclass(frozen=True, slots=True)
class ForcePush:
    """A force push, by which a head may leave and come back (docs/design/security.md 4).

    `to` is the new head, None if the provider does not say.
    """

    at: ProviderTime
    to: Sha | None


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Fresh facts of one pull request; `author` is `ghost` when the account is gone.

    `author_id` is the number of that account, None if the provider shows none: a bot's login may
    look like a person's, and a login may belong to another account later. `base_tip` is the
    target's commit as read in the same moment, `merge_commit` the commit that merged it.
    `skipped_checks` and `failed_checks` are names of checks on its own head, sorted; a name with a
    passed report is in neither. `own_minutes` is how long the slowest completed check run there
    took, in whole minutes, None without any. `stack` is None outside of a native stack and for a
    closed pull request. `approvals` are the newest reviews of people with write access that
    approve it; None where they were not read. `own_reports` are the
    newest reports on its head, without ids and suites; none where not all were read.
    `shown_at` is the provider's time of its last change, as shown with this head and this base;
    `base_changed_at` that of the last change of its base, None if it has always had this one.
    `force_push` is the newest force push of its head, `merged_at` when it was merged.
    `auto_merge`: a person asked the provider to merge it once it can be merged.
    """

    number: int
    title: str
    body: str
    author: str
    state: PullRequestState
    draft: bool
    base_branch: str
    base_tip: Sha | None
    head_branch: str
    head_sha: Sha
    head_repo: str | None
    is_fork: bool
    merge_commit: Sha | None
    mergeability: Mergeability
    blockers: tuple[Blocker, ...]
    labels: tuple[str, ...]
    url: str
    skipped_checks: tuple[str, ...] = ()
    failed_checks: tuple[str, ...] = ()
    stack: Stack | None = None
    approvals: tuple[Approval, ...] | None = None
    author_id: str | None = None
    own_minutes: float | None = None
    own_reports: tuple[Check, ...] = ()
    shown_at: ProviderTime | None = None
    base_changed_at: ProviderTime | None = None
    force_push: ForcePush | None = None
    auto_merge: bool = False
    merged_at: ProviderTime | None = None

    @property
    def returned_after(self) -> ProviderTime | None:
        """The newest force push, unless that has made this the head: it may have been away."""
        push = self.force_push
        return None if push is None or push.to == self.head_sha else push.at

    @property
    def approved_by(self) -> tuple[str, ...]:
        """Logins of those who approve it."""
        return tuple(one.login for one in self.approvals or ())

    @property
    def target_branch(self) -> str:
        """The branch that it is to land on: that of its stack, else its base."""
        return self.base_branch if self.stack is None else self.stack.target


@dataclass(frozen=True, slots=True)
class ListedPullRequest:
    """A pull request in a list: its head, and the provider's time of its last change.

    `author` and `branch`, the name of its head, are empty where they are not known.
    """

    number: int
    head: Sha
    shown_at: ProviderTime | None = None
    author: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class CommitAuthor:
    """An author of a commit as git has it, with the account that the provider knows for it."""

    name: str
    email: str
    login: str | None


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """Paths a pull request touches, old and new names; incomplete counts as sensitive.

    `deleted` are those that are gone after it: of deleted files, and old names of renamed ones.
    `head` is the commit that they are the paths of, `base` the branch that it is compared with;
    each is None if the provider does not say.
    """

    paths: tuple[str, ...]
    complete: bool
    deleted: tuple[str, ...] = ()
    head: Sha | None = None
    base: str | None = None


class AccessLevel(IntEnum):
    """Rights on a repository, ordered."""

    NONE = 0
    READ = 1
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5


@dataclass(frozen=True, slots=True)
class Known:
    """The requirements of a branch's rules; `merge_methods` None means no rule speaks of them.

    `own_required`: they require our own check too, which is not among `checks`.
    """

    checks: tuple[RequiredName, ...]
    merge_methods: frozenset[MergeMethod] | None
    notes: tuple[str, ...]
    own_required: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The rules could not be read. Never the same as "none": nothing starts, nothing lands."""

    reason: str


Required = Known | Unreadable


@dataclass(frozen=True, slots=True)
class Checks:
    """Every report on `sha`, every update of a status, newest per source and name included.

    When `complete` is false more pages exist than we read: no name may be called missing.
    """

    sha: Sha
    items: tuple[Check, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, its tree and its parents in order."""

    sha: Sha
    tree: Sha
    parents: tuple[Sha, ...]


class Vehicle(StrEnum):
    """The ways in which CI learns of a test branch (docs/design/provider.md 7.4)."""

    DRAFT_PR = "draft_pr"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class VehicleAdvice:
    """The kind of test branch that a branch's CI calls for, None when nothing tells, and why.

    `never`: where checks run that never run on a test branch, by name (`CheckHistory.never` of the
    engine).
    """

    vehicle: Vehicle | None
    reason: str
    never: Mapping[str, str] = field(default_factory=dict)


class Construction(StrEnum):
    """The ways to make a finished scratch branch the test branch (docs/design/provider.md 7.2)."""

    RENAME_TEMP_BRANCH = "RENAME_TEMP_BRANCH"
    PUSH_NEW_BRANCH_FROM_TEMP = "PUSH_NEW_BRANCH_FROM_TEMP"


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One head to merge, in order; `commit` is a commit that already did so (3.2).

    `message` and `date` are those of the run that tests the head, so that merging it again can
    give the same commit. `fork` is the head of the chain's member below, built before it.
    """

    number: int
    head_sha: Sha
    message: str
    date: datetime
    tested: bool
    commit: Sha | None
    fork: Sha | None = None
    resolved: tuple[Resolved, ...] = ()
    """What rules resolved in `commit`."""


@dataclass(frozen=True, slots=True)
class GuardedWork:
    """The landings that no merge may take back undeclared: those on the target after a commit.

    `generated`: globs for paths that do not count (docs/design/undone-work.md).
    """

    after: Sha
    generated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A test branch to make. `branch` and `scratch` are full names without `refs/heads/`.

    Each step is made as `method` will land it. With `lands` those commits become the target branch
    themselves, else the provider's merge call makes its own. `rules` resolve conflicts, only with
    `lands`. `guard` None: what the tested heads take back is not judged.
    """

    repo: RepoRef
    run_id: str
    deployment_id: str
    target: str
    base_sha: Sha
    steps: tuple[BuildStep, ...]
    known_trees: frozenset[Sha]
    branch: str
    scratch: str
    vehicle: Vehicle
    construction: Construction
    title: str
    body: str
    method: MergeMethod = MergeMethod.MERGE_COMMIT
    lands: bool = False
    rules: tuple[ConflictRule, ...] = ()
    guard: GuardedWork | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """Commit and tree after one step; a head that was in already adds no commit."""

    number: int
    commit: Sha
    tree: Sha
    contained: bool
    resolved: tuple[Resolved, ...] = ()


@dataclass(frozen=True, slots=True)
class Built:
    """The finished test branch; unpublished when its tree was known (3.3, step 4).

    `draft_refused`: why there is no draft pull request although one was asked for. `judged`: how
    the tested heads stand to landed work, by number, where that was asked and can be told.
    """

    tip: Sha
    prefixes: tuple[Prefix, ...]
    branch: str
    published: bool
    vehicle_number: int | None
    vehicle_url: str | None
    draft_refused: str | None = None
    judged: Mapping[int, WorkJudged] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Merging `number` conflicts: with the target, with pull request `culprit`, or unknown.

    `with_base` true: the target itself. Otherwise `culprit` is the number, None unknown.
    """

    number: int
    with_base: bool
    culprit: int | None
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The outcome that a build would have: its first conflict, None without one."""

    conflict: Conflicted | None


@dataclass(frozen=True, slots=True)
class NothingToMerge:
    """Every tested head is in the target already."""


BuildResult = Built | Conflicted | NothingToMerge


@dataclass(frozen=True, slots=True)
class Merged:
    """A landing as read back.

    `chain` runs from the fresh tip back over first parents to, but without, the expected
    parent; None when that is not met within 250 commits.
    """

    commit: Sha
    chain: tuple[Commit, ...] | None


class LandStopCode(StrEnum):
    """Why a merge call did not land (docs/design/provider.md 11; docs/design/landing.md 5).

    RETRY: the provider refused for a reason that passes by itself. UNAVAILABLE: it was too slow
    for the call to be sent, or could not be asked why it refused.
    """

    RETRY = "retry"
    UNAVAILABLE = "unavailable"
    BASE_MOVED = "base_moved"
    CHECKS_MISSING = "checks_missing"
    HEAD_CHANGED = "head_changed"
    CLOSED = "closed"
    DRAFT = "draft"
    CONFLICT = "conflict"
    WORKFLOWS = "workflows"
    NOT_PERMITTED = "not_permitted"
    RULE_DENIED = "rule_denied"
    PR_REFUSED = "pr_refused"
    METHOD_DENIED = "method_denied"
    REBASE_DIFFERS = "rebase_differs"
    STRICT = "strict"
    PROVIDER_QUEUE = "provider_queue"
    STALE = "stale"
    CHANGE_DIFFERS = "change_differs"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class LandStop:
    """The provider's no, in its words (at most 300 characters).

    `pull` are the facts of the pull request as read after the refusal, None where they were not
    read; `blockers` the causes among them, and those that only the refusal itself names.
    """

    code: LandStopCode
    message: str
    request_id: str = ""
    blockers: tuple[Blocker, ...] = ()
    pull: PullRequest | None = None


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A merge call; `below`: numbers and heads of the members of its stack that land with it.

    `sent_until`: until when the same call may have been sent before; None if it was not.
    """

    repo: RepoRef
    target: str
    number: int
    head_sha: Sha
    method: MergeMethod
    expect_parent: Sha
    title: str | None = None
    message: str | None = None
    below: tuple[tuple[int, Sha], ...] = ()
    sent_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AdvanceRequest:
    """One atomic move of the target from `expect` to `to`, which also deletes the test branch.

    `sent_until`: until when the same update may have been sent before; None if it was not.
    """

    repo: RepoRef
    target: str
    expect: Sha
    to: Sha
    test_branch: str
    sent_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class VehicleRef:
    """A branch of ours at the provider."""

    branch: str
    sha: Sha


@dataclass(frozen=True, slots=True)
class LandedPull:
    """A pull request whose head has landed on `target` as `commit`; its base was `base`.

    `may_show` False: commits of another form have landed, which the provider never takes for a
    merge.
    """

    number: int
    head_sha: Sha
    commit: Sha
    target: str
    base: str
    may_show: bool = True


@dataclass(frozen=True, slots=True)
class LandedByUs:
    """A pull request that our App itself merged, or closed after its landing.

    `commit`: as which it landed, None if the provider does not show it.
    """

    commit: Sha | None


@dataclass(frozen=True, slots=True)
class StatusPosted:
    """A status comment of ours as it is at the provider."""

    number: int
    id: str
    body: str
    created_at: ProviderTime


class CheckReportStatus(StrEnum):
    """The states that our own check run shows."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StatusComment:
    """The one status comment of a pull request and target branch; found again by its marker.

    `first` says that none of it can stand there yet: then it is not looked for. `is_final`: it is
    the last one of a submission, so it goes before the others. `is_refresh`: the state is the one
    that it shows already, so it may wait for those with a new one.
    """

    number: int
    marker: str
    body: str
    known_id: str | None = None
    first: bool = False
    is_final: bool = False
    is_refresh: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """A new comment, written once; the hidden marker with `action_id` finds it again.

    `first` and `is_final`: see `StatusComment`.
    """

    number: int
    action_id: str
    body: str
    first: bool = False
    is_final: bool = False


class Emoji(StrEnum):
    """Reactions we use (docs/design/comments.md 4)."""

    EYES = "eyes"
    ACCEPTED = "+1"
    UNCLEAR = "confused"
    REFUSED = "-1"
    MERGED = "hooray"


@dataclass(frozen=True, slots=True)
class Reaction:
    """A reaction on a comment; repeating it changes nothing."""

    number: int
    comment_id: str
    emoji: Emoji


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a check run: identifier (at most 20 characters), label (20), description (40)."""

    identifier: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Our check run on one commit; `external_id` is the submission, by which it is found.

    `first`, `is_final` and `is_refresh`: see `StatusComment`. At most three buttons. `replaces`: it
    takes the place of our newest one of this name there, whichever submission that is about.
    """

    sha: Sha
    name: str
    external_id: str
    status: CheckReportStatus
    title: str
    summary: str
    url: str | None
    buttons: tuple[Button, ...] = ()
    known_id: str | None = None
    first: bool = False
    is_final: bool = False
    is_refresh: bool = False
    replaces: bool = False


Notice = StatusComment | Reply | Reaction | CheckReport | StateLabel | LabelRemoval | LabelReturn


@dataclass(frozen=True, slots=True)
class CommentsRead:
    """Commands that were found, oldest first; `next_start` is the next sweep's."""

    deliveries: tuple[Delivery, ...]
    next_start: datetime


@dataclass(frozen=True, slots=True)
class NotPossible:
    """CI cannot be started again or stopped this way; `reason` is a sentence."""

    reason: str
