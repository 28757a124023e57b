"""The outputs of a queue: actions for the shell, events for everyone; closed unions.

The control lane's actions are performed in order, the notice lane's are best effort.

See docs/design/engine.md 8.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Detail, Entry, LandMode, MergeQueue, Proof, Run, Tip
from service.mergequeue.engine.past import Blamed, Over
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.vocabulary import Actor, MergeMethod, Sha


@dataclass(frozen=True, slots=True)
class HeadToMerge:
    """One head of a test branch, in order; `tested` ones are the batch."""

    pr: int
    head: Sha
    tested: bool


@dataclass(frozen=True, slots=True)
class BuildTestBranch:
    """Make the run's test branch.

    `number` is the first tested pull request; the performer finds commits to reuse among the runs
    ahead (docs/design/engine.md 8).
    """

    run: str
    number: int
    target: str
    base_tip: Tip
    steps: tuple[HeadToMerge, ...]
    known_trees: tuple[Sha, ...]
    bisection: bool


@dataclass(frozen=True, slots=True)
class RerunChecks:
    """Run the named checks of the run's commit once more, as attempt `attempt`."""

    run: str
    names: tuple[str, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class LandStep:
    """One position to land: from `parent_tree` to exactly `tree`; `commit` is the tested one.

    `tested_tree` is the tree that CI ran on: `tree` itself, or that of the whole unit; None in an
    effect of a version that did not note it.
    """

    position: int
    pr: int
    entry: str
    head: Sha
    parent_tree: Sha
    tree: Sha
    commit: Sha
    tested_tree: Sha | None = None


@dataclass(frozen=True, slots=True)
class Land:
    """Bring tested positions onto the target; `number` makes every try an effect of its own."""

    number: int
    run: str
    mode: LandMode
    method: MergeMethod
    expected_tip: Tip
    steps: tuple[LandStep, ...]
    proof: Proof


@dataclass(frozen=True, slots=True)
class RetireRun:
    """The run is over: branch and draft go; `stop_ci` when its checks may still run.

    `keeps_branch`: another run has the same branch, because one repeats the other's failed checks.
    """

    run: str
    stop_ci: bool
    keeps_branch: bool = False


@dataclass(frozen=True, slots=True)
class AskEvidence:
    """Ask the flaky half about the failed checks of an attempt; again when more of them fail."""

    run: str
    attempt: int
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """A pull request's comment and check run have something new to show.

    It changed its state or reason, its test branch was built, or what it waits for changed. A
    refresh changes less and may be late: a result of a check, a warning, a pause of the queue.
    """

    pr: int
    entry: str
    state: EntryState
    reason: Reason
    is_refresh: bool = False


ControlAction = BuildTestBranch | RerunChecks | Land | RetireRun
NoticeAction = AskEvidence | Tell
Action = ControlAction | NoticeAction


@dataclass(frozen=True, slots=True)
class EntrySubmitted:
    """A submission begins."""

    pr: int
    entry: str
    head: Sha
    reason: Reason
    priority: int


@dataclass(frozen=True, slots=True)
class EntryMoved:
    """An entry changed its state, or its reason inside one."""

    pr: int
    entry: str
    origin: EntryState
    state: EntryState
    reason: Reason
    run: str | None
    detail: Detail


@dataclass(frozen=True, slots=True)
class EntryUpdated:
    """Options of a queued entry changed."""

    pr: int
    entry: str
    priority: int
    no_batch: bool
    targets: Targets | None = None


class PlacedWhy(StrEnum):
    """Why an entry was put elsewhere than its order says."""

    URGENT = "urgent"
    REJOIN = "rejoin"
    RETURNED = "returned"
    BATCH = "batch"
    PROVEN = "proven"
    SCREENED = "screened"
    IMPACTS_ALL = "impacts_all"
    MENDS = "mends"


@dataclass(frozen=True, slots=True)
class EntryPlaced:
    """An entry got a rank that its order alone would not give."""

    pr: int
    entry: str
    rank: int | None
    why: PlacedWhy


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins."""

    run: str
    number: int
    kind: RunKind
    prs: tuple[int, ...]
    base_prs: tuple[int, ...]
    base_tip: Sha


@dataclass(frozen=True, slots=True)
class RunBuilt:
    """Its test branch was built at `sha`, or is that of the run that it `repeats`."""

    run: str
    sha: Sha
    repeats: str | None = None


@dataclass(frozen=True, slots=True)
class RunRetried:
    """Its checks restart for a reason outside its entries."""

    run: str
    attempt: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A verdict, or its correction."""

    run: str
    status: RunStatus
    cause: Cause | None
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunRetired:
    """No entry refers to the run any more; `why` is the reason its entries left it.

    `keeps_branch`: its test branch stays for another run.
    """

    run: str
    why: Reason
    keeps_branch: bool = False


@dataclass(frozen=True, slots=True)
class BisectionOpened:
    """The search for the culprit among these pull requests began, in this failed run."""

    bisection: str
    run: str
    prs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BisectionNarrowed:
    """The first `lo` are proven, the first `hi` fail."""

    bisection: str
    run: str
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class BisectionClosed:
    """The search is over: with a culprit, or why without one."""

    bisection: str
    run: str
    culprit: int | None
    why: Reason


@dataclass(frozen=True, slots=True)
class LandingStarted:
    """A landing was requested."""

    run: str
    positions: tuple[int, ...]
    mode: LandMode
    expected_tip: Sha


@dataclass(frozen=True, slots=True)
class LandingHalted:
    """A landing did not happen; `code` as docs/design/landing.md 5."""

    run: str
    position: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LandingMismatched:
    """A landing of something other than what was tested."""

    run: str
    position: int
    evidence: str


@dataclass(frozen=True, slots=True)
class TipMoved:
    """The target has a new tip; `adopted` when its tree is what was predicted."""

    sha: Sha
    landed: bool
    adopted: bool


@dataclass(frozen=True, slots=True)
class HoldPlaced:
    """The queue is held."""

    hold: str
    reason: HoldReason
    text: str


@dataclass(frozen=True, slots=True)
class HoldReleased:
    """A hold was lifted, by a person or by facts."""

    hold: str
    reason: HoldReason
    text: str


@dataclass(frozen=True, slots=True)
class QueueStateChanged:
    """The queue's own state changed."""

    origin: QueueState
    state: QueueState
    reason: str | None


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The queue's mode changed."""

    mode: Mode


@dataclass(frozen=True, slots=True)
class QueueConfigured:
    """Settings changed, by field name."""

    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueDrained:
    """A draining queue has no live run left."""


@dataclass(frozen=True, slots=True)
class QueueDeleted:
    """The queue is gone; its history stays."""


@dataclass(frozen=True, slots=True)
class RequiredStatusesChanged:
    """A change of the statuses that a run started now must pass."""

    names: tuple[str, ...]


Event = (
    EntrySubmitted
    | EntryMoved
    | EntryUpdated
    | EntryPlaced
    | RunStarted
    | RunBuilt
    | RunRetried
    | RunFinished
    | RunRetired
    | BisectionOpened
    | BisectionNarrowed
    | BisectionClosed
    | LandingStarted
    | LandingHalted
    | LandingMismatched
    | TipMoved
    | HoldPlaced
    | HoldReleased
    | QueueStateChanged
    | ModeChanged
    | QueueConfigured
    | QueueDrained
    | QueueDeleted
    | RequiredStatusesChanged
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its time and actor, as the journal stores it."""

    at: datetime
    actor: Actor
    event: Event


@dataclass(frozen=True, slots=True)
class Refused:
    """A command the queue does not take; nothing changed. `field` for `invalid_value`.

    For `conflict_after_landing`, `prs` are the pull request and the one below it, `head` is the
    head of that one, and `paths` are in conflict. `blamed` is for `failed_before`, `over` for
    `over_budget`.
    """

    reason: Reason
    text: str
    field: str | None = None
    prs: tuple[int, ...] = ()
    head: Sha | None = None
    paths: tuple[str, ...] = ()
    blamed: Blamed | None = None
    over: Over | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The answer to one input.

    `queue` is the next value; `finished_entries` and `finished_runs` left it in this step, in
    their last form. `wake_at` is the next instant at which time alone changes something.
    """

    queue: MergeQueue
    actions: tuple[Action, ...]
    events: tuple[Recorded, ...]
    refusal: Refused | None
    wake_at: datetime | None
    finished_entries: tuple[Entry, ...] = ()
    finished_runs: tuple[Run, ...] = ()
