"""The inputs of a queue: commands (from people) and reports (from the world).

Closed unions (docs/design/engine.md 8). Time is `step`'s argument, never a field's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.landed_work import WorkJudged
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.engine.model import RepositoryFile, RequiredSet, RunStep, Tip
from service.mergequeue.engine.past import NO_PAST, Past
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import Doomed, Evidence, Facts
from service.mergequeue.engine.states import QueueState
from service.mergequeue.engine.targets import Targets
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import Actor, Blocker, Check, Sha


@dataclass(frozen=True, slots=True)
class Submit:
    """Enter a pull request, or change the options of a queued one; None leaves an option.

    `targets` are those known for this head, `p_fail` the chance that it fails its tests. `below`
    are the members below it in its stack, from the bottom up: all of them enter, or none. `entry`:
    change only this submission; if it has left, nothing enters. `rule`: it enters by this rule of
    the queue, which is its author; it is refused unless the rule still applies and it is ready.
    `work` is how its merge onto the tip stands to landed work, `undoes` names what it
    takes back on purpose (`Entry.undoes`), beside what it has named before.
    `again`: a head that has failed is tested again. `past` is what the store knows, read in the
    transaction; `taken_back` is the failed run whose failures are explained by now.
    """

    facts: Facts
    actor: Actor
    priority: int | None = None
    no_batch: bool | None = None
    p_fail: float | None = None
    targets: Targets | None = None
    below: tuple["Submit", ...] = ()
    entry: str | None = None
    rule: str = ""
    work: WorkJudged | None = None
    undoes: tuple[str, ...] = ()
    again: bool = False
    taken_back: str | None = None
    past: Past = NO_PAST


@dataclass(frozen=True, slots=True)
class Cancel:
    """Take a pull request out; `code` is one of the cancelled reasons."""

    pr: int
    code: Reason
    actor: Actor
    text: str = ""


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart its tests; `past` is what its submitter uses, read in the transaction."""

    pr: int
    actor: Actor
    past: Past = NO_PAST


@dataclass(frozen=True, slots=True)
class SetImpactedTargets:
    """The targets of one head of a pull request; the newest counts, another head's is ignored."""

    pr: int
    head: Sha
    targets: Targets
    actor: Actor


@dataclass(frozen=True, slots=True)
class Configure:
    """Change settings, by field name; all or nothing.

    `test_branch_reason` explains a change of `create_prs_for_testing_branches`.
    """

    changes: Mapping[str, ConfigValue]
    actor: Actor
    test_branch_reason: str | None = None


@dataclass(frozen=True, slots=True)
class SetState:
    """Run, pause or drain the queue. `state` None: the present one, with another reason."""

    state: QueueState | None
    reason: str | None
    actor: Actor


@dataclass(frozen=True, slots=True)
class PlaceHold:
    """Stop the queue for a reason; the same reason of the system is placed once."""

    reason: HoldReason
    scope: HoldScope | None
    text: str
    actor: Actor
    until: datetime | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class ReleaseHold:
    """Lift one hold by id, for a stated reason."""

    id: str
    text: str
    actor: Actor


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the queue; refused while an entry is not final."""

    actor: Actor


@dataclass(frozen=True, slots=True)
class FactsChanged:
    """A fresh read of one pull request."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class LandedWorkJudged:
    """The merge of a pull request onto the tip was judged anew, which has moved since."""

    pr: int
    work: WorkJudged


@dataclass(frozen=True, slots=True)
class PullRequestGone:
    """The pull request does not exist any more."""

    pr: int


@dataclass(frozen=True, slots=True)
class TestBranchBuilt:
    """A test branch was built: `steps` covers base and tested entries; base steps first.

    `judged` is how the merge results of tested heads stand to what landed and to what is ahead, by
    number.
    """

    __test__ = False
    run: str
    sha: Sha
    steps: tuple[RunStep, ...]
    branch: str
    published: bool
    judged: Mapping[int, WorkJudged] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NothingToTest:
    """Every tested head of the run is contained in its base already."""

    run: str


@dataclass(frozen=True, slots=True)
class TestBranchConflicted:
    """Merging `pr` conflicts; with the target itself, with `culprit`, or with an unknown entry."""

    __test__ = False
    run: str
    pr: int
    with_base: bool
    culprit: int | None
    paths: tuple[str, ...]


class BuildRefusal(StrEnum):
    """Why the provider refused a test branch (docs/design/engine.md 7)."""

    WORKFLOWS = "workflows"
    RULE_DENIED = "rule_denied"
    PROVIDER_QUEUE = "provider_queue"
    NAME_TAKEN = "name_taken"
    DRAFT_NOT_SUPPORTED = "draft_not_supported"
    TOO_LARGE = "too_large"
    GIT_NEEDED = "git_needed"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TestBranchRefused:
    """The provider refused to build; `pr` when one head is the reason."""

    __test__ = False
    run: str
    pr: int | None
    code: BuildRefusal
    text: str


@dataclass(frozen=True, slots=True)
class TestBranchDelayed:
    """The provider's limits let no test branch be built before `until`; the build is tried then."""

    __test__ = False
    run: str
    until: datetime
    text: str


@dataclass(frozen=True, slots=True)
class TestBranchLost:
    """A live run's test branch is gone although it was put back once."""

    __test__ = False
    run: str
    by: str


@dataclass(frozen=True, slots=True)
class ChecksReported:
    """The whole present set of reports on a run's commit."""

    run: str
    sha: Sha
    checks: tuple[Check, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class RerunStarted:
    """The checks of a run begin again in place."""

    run: str
    attempt: int


@dataclass(frozen=True, slots=True)
class RerunRefused:
    """The provider cannot run those checks again, and says why."""

    run: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceReported:
    """The facts that the flaky half reports of a failed attempt."""

    run: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class PassRevoked:
    """Passed checks that count as failed, by id: their job reported more than was excused.

    The service had told the job to end with 0 because all of its failures were quarantined.
    """

    run: str
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailureForeseen:
    """All required checks that cannot pass any more in this attempt of a run; empty: none.

    Each of them is proved: by the workflow files of the target branch, by the history of the queue,
    and by a part of the CI that the provider shows as failed (docs/design/early-failures.md 1).
    """

    run: str
    attempt: int
    doomed: tuple[Doomed, ...]


@dataclass(frozen=True, slots=True)
class RequiredChanged:
    """Required statuses as read now; `error` set: they could not be read."""

    required: RequiredSet
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """Rules at the provider may differ: what they refused may be tried again."""


@dataclass(frozen=True, slots=True)
class WorkflowsChanged:
    """A push to the target may have changed its workflows: skipped checks may run now.

    `never`: where checks run that never run on a test branch, by name; None: the files are unread.
    """

    never: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TargetMoved:
    """The target's tip as read now.

    `prs` are pull requests merged by hand on the way; `rewritten` is true when the tip we knew
    is not an ancestor of it. Read what the queue knows before reading the tip: a tip read before
    a landing and compared after it would look like a rewritten one. `targets` is what the move
    touches; None: unknown, so everything. `ours` are those of `prs` that our App itself landed
    although this queue has no record of it, each with its commit.
    """

    tip: Tip
    prs: tuple[int, ...] = ()
    rewritten: bool = False
    targets: Targets | None = None
    ours: tuple[tuple[int, Sha | None], ...] = ()


@dataclass(frozen=True, slots=True)
class TargetGone:
    """The target branch does not exist."""


@dataclass(frozen=True, slots=True)
class Landed:
    """One position landed and was proved."""

    run: str
    position: int
    sha: Sha
    tree: Sha


class LandingStopCode(StrEnum):
    """Why a landing did not happen (docs/design/landing.md 5).

    UNAVAILABLE: the provider was too slow, or could not be reached; it has refused nothing.
    """

    RETRY = "retry"
    UNAVAILABLE = "unavailable"
    CHECKS_MISSING = "checks_missing"
    STALE = "stale"
    BASE_MOVED = "base_moved"
    CHANGE_DIFFERS = "change_differs"
    HEAD_CHANGED = "head_changed"
    CLOSED = "closed"
    DRAFT = "draft"
    CONFLICT = "conflict"
    RULE_DENIED = "rule_denied"
    METHOD_DENIED = "method_denied"
    OTHER = "other"
    NOT_PERMITTED = "not_permitted"
    WORKFLOWS = "workflows"
    REBASE_DIFFERS = "rebase_differs"
    PR_REFUSED = "pr_refused"
    STRICT = "strict"
    PROVIDER_QUEUE = "provider_queue"


@dataclass(frozen=True, slots=True)
class LandingStopped:
    """One position did not land; the provider's words in `text`.

    `blockers` are causes of the pull request's own, as read right after the refusal.
    """

    run: str
    position: int
    code: LandingStopCode
    text: str
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True)
class AdvanceRefused:
    """The atomic update was refused for this branch: land by the merge call for a while."""

    run: str
    text: str


@dataclass(frozen=True, slots=True)
class LandingMismatch:
    """A landing of something untested or unproved; `evidence` says how.

    `merged`: the positions of this landing that the provider shows as merged all the same.
    """

    run: str
    position: int
    merged: tuple[int, ...]
    tip: Tip
    evidence: str


@dataclass(frozen=True, slots=True)
class EstimateChanged:
    """A new chance that this pull request fails its tests."""

    pr: int
    p_fail: float


@dataclass(frozen=True, slots=True)
class RatesMeasured:
    """The queue's own history was measured: a chance each, and the minutes of each check by name.

    The fields are those of `reported.Rates`.
    """

    flake: float
    conflict: float
    minutes: Mapping[str, float]
    foreseen: float = 0.0


@dataclass(frozen=True, slots=True)
class RepositoryChanged:
    """A change of the repository or of our rights on it; `hold` names what is wrong.

    `sends_results`: whether its tests' results come in. `reruns`: whether we may run failed checks
    again where they ran. None: nothing new of that.
    """

    available: bool | None = None
    hold: HoldReason | None = None
    text: str = ""
    sends_results: bool | None = None
    reruns: bool | None = None


@dataclass(frozen=True, slots=True)
class RepositoryFileRead:
    """The repository's file on the target branch was read, and differs from what is known.

    `settings` are those that it sets, by field name; None: it has faults, so that no setting
    changes. `file` None: there is none any more. `test_branch_reason` is as in `Configure`.
    """

    file: RepositoryFile | None
    settings: Mapping[str, ConfigValue] | None
    test_branch_reason: str | None = None


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing happened but time."""


Command = (
    Submit
    | Cancel
    | Restart
    | SetImpactedTargets
    | Configure
    | SetState
    | PlaceHold
    | ReleaseHold
    | Delete
)

Report = (
    FactsChanged
    | LandedWorkJudged
    | PullRequestGone
    | TestBranchBuilt
    | NothingToTest
    | TestBranchConflicted
    | TestBranchRefused
    | TestBranchDelayed
    | TestBranchLost
    | ChecksReported
    | RerunStarted
    | RerunRefused
    | EvidenceReported
    | PassRevoked
    | FailureForeseen
    | RequiredChanged
    | RulesChanged
    | WorkflowsChanged
    | TargetMoved
    | TargetGone
    | Landed
    | LandingStopped
    | AdvanceRefused
    | LandingMismatch
    | EstimateChanged
    | RatesMeasured
    | RepositoryChanged
    | RepositoryFileRead
    | TimePassed
)

Input = Command | Report
