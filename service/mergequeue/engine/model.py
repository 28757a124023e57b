"""The queue as one value: everything a decision may depend on (docs/design/engine.md 6).

Only frozen dataclasses: a change is a new value, made by `draft.py`. Finished entries and runs
leave the value and stay as rows. `replacing.py` copies the dict of the three that have no slots.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from service.landed_work import WorkJudged
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.records import Record, UntestedTip
from service.mergequeue.engine.reported import (
    CheckHistory,
    Doomed,
    Evidence,
    Facts,
    FailedBefore,
    Rates,
)
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunPhase, RunStatus
from service.mergequeue.engine.suspicion import Suspicion
from service.mergequeue.engine.targets import Targets
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import (
    Actor,
    Blocker,
    Check,
    Foreign,
    RequiredName,
    RequiredSource,
    Resolved,
    Sha,
)

PRIORITY_NAMES = {"urgent": 0, "high": 10, "medium": 100, "low": 200, "lowest": 255}
"""Named priorities, lower first; `medium` is the default (docs/design/testing.md 1)."""

DEFAULT_PRIORITY = PRIORITY_NAMES["medium"]


WaitingKey = tuple[int, tuple[int, int], int]
"""Priority, turn and order of arrival, pull request."""


@dataclass(frozen=True, slots=True)
class Tip:
    """The target branch's newest commit and its tree."""

    sha: Sha
    tree: Sha


@dataclass(frozen=True, slots=True)
class Named:
    """A check with its page; `raw`: the word for one that did not run; `foreign` does not count.

    `because`: the job for which CI skipped it. `why`: where it runs, if not on test branches.
    `doom`: the part of CI by which it fails before its end. `after`: jobs that failed before it.
    """

    name: str
    url: str
    because: str | None = None
    foreign: Foreign | None = None
    raw: str = ""
    why: str = ""
    doom: Doomed | None = None
    after: FailedBefore | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """Evidence behind a reason: whatever of it is known (docs/design/engine.md 4).

    `is_confirmed`: two runs blame the pull request for a failure, or one run and its own head.
    """

    text: str = ""
    run: str | None = None
    checks: tuple[Named, ...] = ()
    prs: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    sha: Sha | None = None
    suspicion: Suspicion | None = None
    is_confirmed: bool = False


NOTHING = Detail()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A rule that makes an entry wait, and for what; `until` None: until facts or rules change."""

    rule: str
    text: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an entry waits although its facts do not show it: the provider refused its merge.

    It waits until `until`, until the `blockers` are others than at the refusal, or until rules
    change. `name` is the check, the rule or the provider's words.
    """

    reason: Reason
    name: str
    until: datetime
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A refusal that no fact of the pull request explained; `words` without names and numbers."""

    pr: int
    words: str
    at: datetime


@dataclass(frozen=True)
class Entry:
    """One submission of a pull request, pinned to one head.

    `seq` orders submissions and is given at the first readiness, `rank` is the place in the
    line (None: waiting). `run` is its live run, `verified_by` the succeeded run it lands by,
    `held_by` the pull requests whose conflict keeps it out. `restarts` counts returns from
    testing by reason, `losses` test branches lost to others. `fresh` demands a real run.

    `targets` is the newest upload for this head, `wide` what it touches while it is in a run:
    everything it ever said since that began. `batch` is the number of the run in which it was
    put together with others; `failed_batches` counts those that failed. A failed entry that is
    `kept` is still counted on by those behind it (optimistic merging). `screened` says that it
    passed alone. `stops` counts its stopped landings by code, `refusals` how often it was set
    aside for one; `refusal` is the one it waits for now. `rested_on` is the base it had in a chain,
    before that became the target. `waits` are the rules that make it wait now. `is_priority_given`:
    a person gave its priority, which no rule changes.
    `would_land_at` is when a queue in shadow would have landed it. `work` is how its newest merge
    result stands to landed work; None: not judged. `undoes` names landings that it takes back on
    purpose, as a command says: by `#` and number, or by the beginning of a commit.
    """

    id: str
    pr: int
    facts: Facts
    head: Sha
    submitted_by: Actor
    submitted_at: datetime
    priority: int
    no_batch: bool
    state: EntryState
    state_since: datetime
    reason: Reason
    detail: Detail = NOTHING
    seq: int | None = None
    rank: int | None = None
    run: str | None = None
    verified_by: str | None = None
    bisection: str | None = None
    held_by: tuple[int, ...] = ()
    unmet: tuple[Reason, ...] = ()
    barred: tuple[Reason, ...] = ()
    unready_since: datetime | None = None
    p_fail: float = 0.0
    cancel: Reason | None = None
    cancel_detail: Detail = NOTHING
    canceller: Actor | None = None
    retries: int = 0
    build_tries: int = 0
    build_after: datetime | None = None
    taken_apart: bool = False
    fresh: bool = False
    restarts: Mapping[str, int] = field(default_factory=dict)
    losses: int = 0
    landed_sha: Sha | None = None
    targets: Targets | None = None
    wide: Targets | None = None
    batch: int | None = None
    failed_batches: int = 0
    kept: bool = False
    screened: bool = False
    stops: Mapping[str, int] = field(default_factory=dict)
    refusals: int = 0
    refusal: Refusal | None = None
    rested_on: str | None = None
    waits: tuple[Waiting, ...] = ()
    is_priority_given: bool = False
    would_land_at: datetime | None = None
    work: WorkJudged | None = None
    undoes: tuple[str, ...] = ()
    turn: int = 0

    @property
    def waiting_key(self) -> WaitingKey:
        """Its place among waiting entries: by priority, turn, and when they were first ready."""
        return self.priority, (self.turn, self.seq or 0), self.pr

    @property
    def priority_rule(self) -> str:
        """The rule that gives its priority; empty if no rule does."""
        ruled = self.facts.ruled
        is_by_rule = not self.is_priority_given and ruled.priority == self.priority
        return ruled.priority_rule if is_by_rule else ""

    @property
    def touches(self) -> Targets | None:
        """Return the targets that it counts as touching now; None: unknown, so everything."""
        return self.wide if self.run is not None and self.wide is not None else self.targets


@dataclass(frozen=True, slots=True)
class Member:
    """An entry as a run holds it: frozen with its head."""

    pr: int
    entry: str
    head: Sha


@dataclass(frozen=True, slots=True)
class RunStep:
    """Commit and tree of a test branch after one head; `contained` heads add no commit.

    `resolved`: the conflicts of this merge that rules resolved.
    """

    pr: int
    head: Sha
    commit: Sha
    tree: Sha
    contained: bool
    resolved: tuple[Resolved, ...] = ()


@dataclass(frozen=True)
class Run:
    """One test of a batch on a test branch.

    `entries` are tested, `base` are the unlanded entries ahead it was built on, both in queue
    order; `steps` covers base and entries once built. `required` is copied at the start and
    only grows. `fresh` runs take no earlier result; `reused_from` names the run whose result
    an equal tree took over. `asked_evidence` is when the flaky half was asked about a failure,
    `deadline` the next instant at which time alone changes the verdict. A `contained` run has
    no branch: its heads were in its base already. Probes and confirmations name their
    `bisection`; a hedge names in `without` the entries it was built without on purpose, a witness
    in `witness_of` the failed run of its suspect. `revoked` are ids of reports that count as failed
    although they passed. `is_flaky`: an earlier attempt failed by known flaky tests alone. `doomed`
    are the required checks of this attempt that cannot pass any more; `is_foreseen`: it has failed
    by such alone, and no required check has reported a failure. `repeats` is the failed run whose
    failed checks this one runs again on the same commit: the first run of that commit began at
    `first_at`, and `share` is the part of a whole run's time that this one probably takes. A run
    that `is_repeated` is not repeated again.
    """

    id: str
    number: int
    kind: RunKind
    entries: tuple[Member, ...]
    base: tuple[Member, ...]
    base_tip: Tip
    status: RunStatus
    phase: RunPhase
    required: tuple[RequiredName, ...]
    required_source: RequiredSource | None
    config: QueueConfig
    created_at: datetime
    steps: tuple[RunStep, ...] = ()
    sha: Sha | None = None
    branch: str | None = None
    attempt: int = 1
    checks: tuple[Check, ...] = ()
    checks_complete: bool = True
    built_at: datetime | None = None
    start_clock: datetime | None = None
    last_report_at: datetime | None = None
    failed_at: datetime | None = None
    finished_at: datetime | None = None
    cause: Cause | None = None
    excused: tuple[str, ...] = ()
    asked_evidence: datetime | None = None
    evidence: Evidence | None = None
    rerun_at: datetime | None = None
    rerun_ids: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    is_flaky: bool = False
    fresh: bool = False
    published: bool = True
    contained: bool = False
    deadline: datetime | None = None
    reused_from: str | None = None
    bisection: str | None = None
    without: tuple[str, ...] = ()
    witness_of: str | None = None
    doomed: tuple[Doomed, ...] = ()
    is_foreseen: bool = False
    repeats: str | None = None
    first_at: datetime | None = None
    share: float = 1.0
    is_repeated: bool = False

    @property
    def reported_since(self) -> datetime:
        """The time from which on CI may have reported on the commit."""
        return self.first_at or self.created_at

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Everything that the test branch contains: the base, then the tested entries."""
        return (*self.base, *self.entries)

    @cached_property
    def entry_ids(self) -> frozenset[str]:
        """Ids of everything that the test branch contains; no run gets others."""
        return frozenset([member.entry for member in self.members])

    @property
    def prs(self) -> tuple[int, ...]:
        """Numbers of the tested pull requests, in order."""
        return tuple([member.pr for member in self.entries])

    @property
    def base_prs(self) -> tuple[int, ...]:
        """Numbers the run depends on without testing them (`dependentPrs`)."""
        return tuple([member.pr for member in self.base])


@dataclass(frozen=True, slots=True)
class Bisection:
    """The search for the culprit in a failed run (docs/design/testing.md 8).

    `entries` and `base` are those of the failed `run`. The first `lo` entries are proven on top
    of the base, the first `hi` are known to fail. `reds` maps a number of leading entries to
    the runs of that tree that failed, `probes` to the run of it that is under way; `weights`
    are the suspicion weights of the entries, in order.
    """

    id: str
    run: str
    entries: tuple[Member, ...]
    base: tuple[Member, ...]
    base_tip: Tip
    lo: int
    hi: int
    reds: Mapping[int, tuple[str, ...]]
    probes: Mapping[int, str] = field(default_factory=dict)
    weights: tuple[float, ...] = ()


class LandMode(StrEnum):
    """The ways in which the target moves (docs/design/landing.md 2)."""

    CAS = "CAS"
    CALL = "CALL"


class Proof(StrEnum):
    """The kinds of proof a landing needs; SAME_CHANGE: others landed that meet nothing of it."""

    EXACT_TREE = "exact_tree"
    SAME_CHANGE = "same_change"


@dataclass(frozen=True, slots=True)
class Landing:
    """The one landing in flight: positions are places among the run's steps, from 1."""

    number: int
    run: str
    positions: tuple[int, ...]
    mode: LandMode
    expected_tip: Tip
    since: datetime
    proof: Proof = Proof.EXACT_TREE


@dataclass(frozen=True, slots=True)
class LandedStep:
    """A move of the target, the newest ones and all since the oldest live base.

    `pr` None: adopted from others with an unchanged tree; 0: of others, no earlier base holds.
    A step that moves nothing (`before` = `sha`) says that a pull request is in already.
    `targets` is what it touched; None: unknown, so everything. `is_proved` is False for a pull
    request that others merged before its tests had passed. `entry` is its submission, `run` the one
    it landed by, and `batch` the batch in which it did.
    """

    pr: int | None
    before: Sha
    sha: Sha
    tree: Sha
    targets: Targets | None = None
    is_proved: bool = True
    entry: str | None = None
    run: str | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class KeptMove:
    """A read of the target that may not be taken in yet.

    A landing is in flight, or a hold waits for a person to look at the branch.
    """

    tip: Tip
    prs: tuple[int, ...]
    rewritten: bool
    targets: Targets | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A reason not to start or land, beside the state."""

    id: str
    reason: HoldReason
    scope: HoldScope
    by: Actor
    text: str
    since: datetime
    until: datetime | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Green:
    """A tree that passed a required set: named run and commit, for reuse by equal tree."""

    tree: Sha
    required: str
    run: str
    sha: Sha
    at: datetime


@dataclass(frozen=True, slots=True)
class RequiredSet:
    """The statuses that a new run must pass, `on_heads` heads alone; `notes` are for humans."""

    names: tuple[RequiredName, ...] = ()
    source: RequiredSource | None = None
    notes: tuple[str, ...] = ()
    on_heads: tuple[RequiredName, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFault:
    """A mistake in a file of the repository: where it is and what to change.

    `line` None: it concerns the whole file. `field` is empty if no setting is named.
    """

    path: str
    line: int | None
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class RepositoryFile:
    """The values that a queue takes from the files of its repository (docs/design/engine.md 6).

    `names` are the settings whose value comes from a file, sorted; `required_path` is the file
    that lists the required statuses. `commit` of the target is the one at which the content with
    this `digest` was read first. With `faults` that content changed nothing: `names` are those of
    the version at `good_commit`; None: there was no valid version.
    """

    commit: Sha
    digest: str
    names: tuple[str, ...] = ()
    required_path: str | None = None
    faults: tuple[FileFault, ...] = ()
    good_commit: Sha | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """One blaming failure as the breaker remembers it.

    `fingerprint` is that of the test results or, without results, the required check. `chance` is
    how probable the failure was beforehand.
    """

    run: str
    entries: tuple[int, ...]
    base: tuple[int, ...]
    fingerprint: str
    at: datetime
    chance: float = 1.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """Memory of repeated failures (docs/design/testing.md 6).

    `troubled` are the groups of the present streak of attempts without a result. `passed_at` is
    when a run passed last by checks of its own. The rest is of a hold: `since` is when the run
    began that placed it, and `older_pass` says that one which began earlier has passed since. The
    next try may begin at `try_at`; by pull request, `tries` counts those that failed, and `minutes`
    is how long its last failed tests took.
    """

    failures: tuple[Failure, ...] = ()
    troubled: tuple[tuple[int, ...], ...] = ()
    passed_at: datetime | None = None
    since: datetime | None = None
    older_pass: bool = False
    try_at: datetime | None = None
    tries: Mapping[str, int] = field(default_factory=dict)
    minutes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShadowTime:
    """The time for which a queue was in shadow last; `until` None: it is."""

    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """The turn that the starts of one priority have reached (docs/design/fair-shares.md 1).

    `agents` counts apart where they have their own shares; `is_agent_last` says who started last.
    """

    priority: int
    people: int = 0
    agents: int = 0
    is_agent_last: bool = True


@dataclass(frozen=True)
class MergeQueue:
    """One queue. `entries` by pull request number and `runs` by id hold only what is live.

    `bisections` are by id. `uid` seeds the ids of entries and runs, so that the same inputs always
    give the same ids. `revision` and `version` belong to the store: `version` counts every
    change, `revision` those of what is shown as the queue (configuration, state, mode, holds).
    `test_branch_reason` says why test branches are of the kind that the settings name.
    `records` are failed runs that are not explained yet, the oldest first; `rates` are measured.
    `config` is in force. `own_config` is what would be without the repository's file; None: the
    file sets nothing. `chosen` names the settings that were set on the queue itself, sorted.
    `turns` has each priority once, in order, as far as something of it has started. From
    `reruns_from` on a failed check may run again where it ran; None: the provider does not let us.
    """

    id: int
    uid: str
    branch: str
    config: QueueConfig
    own_config: QueueConfig | None = None
    chosen: tuple[str, ...] = ()
    file: RepositoryFile | None = None
    tip: Tip | None = None
    state: QueueState = QueueState.RUNNING
    state_reason: str | None = None
    state_since: datetime | None = None
    state_by: Actor | None = None
    test_branch_reason: str | None = None
    target_mode: Mode | None = None
    sends_results: bool = False
    rates: Rates = field(default_factory=Rates)
    check_history: CheckHistory = field(default_factory=CheckHistory)
    entries: Mapping[int, Entry] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    bisections: Mapping[str, Bisection] = field(default_factory=dict)
    landing: Landing | None = None
    holds: tuple[Hold, ...] = ()
    landed: tuple[LandedStep, ...] = ()
    greens: Mapping[str, Green] = field(default_factory=dict)
    breaker: Breaker = Breaker()
    records: tuple[Record, ...] = ()
    required: RequiredSet | None = None
    kept_move: KeptMove | None = None
    untested: UntestedTip | None = None
    advance_refused_at: datetime | None = None
    land_after: datetime | None = None
    unexplained: tuple[Unexplained, ...] = ()
    shadow_time: ShadowTime | None = None
    reruns_from: datetime | None = None
    turns: tuple[Turns, ...] = ()
    next_seq: int = 1
    next_run: int = 1
    next_bisection: int = 1
    next_entry: int = 1
    next_landing: int = 1
    next_hold: int = 1
    deleted: bool = False
    revision: int = 0
    version: int = 0
