"""The real engine, driven in virtual time over a history: translation, and no rule of its own."""

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, assert_never

from service.mergequeue.engine import engine, inputs
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.explaining import rates
from service.mergequeue.engine.explaining.estimates import Signs, Track
from service.mergequeue.engine.explaining.rates import MINUTE_S, Outcomes
from service.mergequeue.engine.inputs import Input, Report, Submit
from service.mergequeue.engine.model import Entry, LandMode, MergeQueue, RequiredSet
from service.mergequeue.engine.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    EntryMoved,
    Land,
    RerunChecks,
    RetireRun,
    Step,
    Tell,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts, Rates
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.targets import ALL
from service.mergequeue.simulation import ruling
from service.mergequeue.simulation.figures import Measured
from service.mergequeue.simulation.history import Arrival, History
from service.mergequeue.simulation.world import Attempt, Ci, Target
from service.vocabulary import (
    Actor,
    ActorKind,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    RequiredName,
    RequiredSource,
    Sha,
)

BRANCH = "main"
CHECK = "ci"
"""The one required status of a simulated queue: all of CI."""

RESUBMITTED_AFTER = timedelta(minutes=1)
"""The time after which a head that failed is submitted again, where it is."""

AFTER_LAST = timedelta(days=30)
"""Virtual time after the last submission at which a replay ends, whatever is left."""

BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of a history without submissions."""

ROUNDS_PER_ARRIVAL = 1000
"""A replay stops after this many inputs per submission, far more than any setting needs."""

UID = "00000000-0000-4000-8000-000000000000"
REQUIRED = RequiredSet((RequiredName(CHECK),), RequiredSource.MERGE_INSTANCE)
FROM_TESTING = frozenset({EntryState.TESTING, EntryState.TESTS_PASSED, EntryState.PENDING_FAILURE})

OnEnded = Callable[[int], None]
"""Called with how many submissions have ended."""


def replay(
    history: History, config: QueueConfig, seed: int, on_ended: OnEnded | None = None
) -> Measured:
    """Replay the history's submissions under these settings.

    The same arguments always give the same answer. A head is submitted once; a pull request
    that has merged is not submitted again.
    """
    world = _Replay(history, config, seed, on_ended)
    world.play()
    return world.measured()


class _Replay:
    """One queue, its world, and the measurements so far."""

    def __init__(
        self, history: History, config: QueueConfig, seed: int, on_ended: OnEnded | None
    ) -> None:
        self._history = history
        self._on_ended = on_ended
        self._target = Target(history.arrivals)
        self._ci = Ci(history, seed)
        # All arrivals are by one author, and nobody looks at what would land.
        config = replace(config, shadow=False, open_entries_per_submitter=0)
        self._queue = MergeQueue(id=0, uid=UID, branch=BRANCH, config=config)
        self._track = Track()
        self._now = history.arrivals[0].at if history.arrivals else BEGIN
        self._wake_at: datetime | None = None
        self._acts = deque(_acts(history))
        self._arrivals = {one.head: one for one in history.arrivals}
        self._resubmissions = {one.head: one.resubmissions for one in history.arrivals}
        self._built: dict[str, _Built] = {}
        self._checks = 0
        self._signs: dict[str, Signs] = {}
        self._failures: Counter[int] = Counter()
        self._first_at: dict[Sha, datetime] = {}
        self._merged: dict[int, timedelta] = {}
        self._ended = 0
        self._counts = dict.fromkeys(("restarts", "failed", "failed_good", "cancelled"), 0)

    def play(self) -> None:
        """Until nothing is left to happen."""
        if not self._history.arrivals:
            return
        self._take(inputs.TargetMoved(self._target.tip))
        self._take(inputs.RequiredChanged(REQUIRED))
        known = rates_of(self._history)
        self._take(inputs.RatesMeasured(known.flake, known.conflict, known.minutes, known.foreseen))
        end = self._history.arrivals[-1].at + AFTER_LAST
        for _ in range(ROUNDS_PER_ARRIVAL * len(self._history.arrivals)):
            self._now = max(self._now, self._next_at() or end)
            if self._now >= end:
                return
            self._happen()

    def measured(self) -> Measured:
        """Return the result of the replay."""
        return Measured(
            merged=tuple(self._merged),
            waits_s=tuple(wait.total_seconds() for wait in self._merged.values()),
            ci_runs=self._ci.runs,
            ci_s=self._ci.busy_s,
            unfinished=len(self._queue.entries),
            **self._counts,
        )

    def _next_at(self) -> datetime | None:
        """Return when something happens next: a person, the end of a test, the engine's clock."""
        next_act = self._acts[0].at if self._acts else None
        coming = (next_act, self._ci.next_end(), self._wake_at)
        return min((at for at in coming if at is not None), default=None)

    def _happen(self) -> None:
        next_end = self._ci.next_end()
        if next_end is not None and next_end <= self._now:
            self._ci_ends()
        elif self._acts and self._acts[0].at <= self._now:
            act = self._acts.popleft()
            (self._cancel if act.is_cancel else self._submit)(act.arrival)
        else:
            self._take(inputs.TimePassed())

    # --- people

    def _submit(self, arrival: Arrival) -> None:
        if arrival.pr in self._merged:
            return
        self._first_at.setdefault(arrival.head, self._now)
        self._take(self._submission(arrival))

    def _submit_again(self, entry: Entry) -> None:
        """Submit a head that has failed again, where its author does so."""
        left = self._resubmissions.get(entry.head, 0)
        if left:
            self._resubmissions[entry.head] = left - 1
            again = self._arrivals[entry.head]
            at = self._now + RESUBMITTED_AFTER
            insort(self._acts, _Act(at, self._ended, again, is_cancel=False), key=_moment)

    def _submission(self, arrival: Arrival) -> Submit:
        """Return the command with what the product would know of the pull request."""
        return Submit(
            facts=self._facts(arrival),
            actor=_submitter(arrival),
            priority=arrival.priority,
            no_batch=arrival.no_batch,
            p_fail=self._p_fail(arrival),
            # In PARALLEL mode unknown targets would wait for ever: here they count as all.
            targets=arrival.targets or ALL,
        )

    def _facts(self, arrival: Arrival) -> Facts:
        is_fresh = arrival.contains_tip
        return Facts(
            pr=arrival.pr,
            head=arrival.head,
            base=BRANCH,
            state=PullRequestState.OPEN,
            draft=False,
            mergeability=Mergeability.MERGEABLE,
            blockers=(),
            title="",
            author=arrival.author,
            is_fork=False,
            own_checks=(self._check(CheckOutcome.PASSED),) if is_fresh else (),
            contains_tip=self._target.tip.sha if is_fresh else None,
            head_tree=self._target.with_change(arrival.pr, arrival.head) if is_fresh else None,
            ruled=ruling.ruled(self._queue.config.rules, arrival, self._now),
        )

    def _p_fail(self, arrival: Arrival) -> float:
        signs = Signs(arrival.author, self._failures[arrival.pr])
        self._signs[arrival.head] = signs
        return self._track.p_fail(signs)

    def _cancel(self, arrival: Arrival) -> None:
        entry = self._queue.entries.get(arrival.pr)
        if entry is not None and entry.head == arrival.head:
            self._take(inputs.Cancel(arrival.pr, Reason.USER_REQUESTED, _submitter(arrival)))

    # --- the engine, and the shell around it

    def _take(self, one: Input) -> None:
        """Take one input and all that the shell answers at once."""
        actions = self._keep(engine.step(self._queue, one, self._now))
        while actions:
            reports = [report for action in actions for report in self._answers(action)]
            if not reports:
                return
            actions = self._keep(engine.step_reports(self._queue, reports, self._now))

    def _keep(self, step: Step) -> tuple[Action, ...]:
        self._queue = step.queue
        self._wake_at = step.wake_at
        self._count(step)
        return step.actions

    def _answers(self, action: Action) -> list[Report]:
        match action:
            case BuildTestBranch():
                return self._build(action)
            case Land():
                return self._land(action)
            case RerunChecks():
                begun = inputs.RerunStarted(action.run, action.attempt)
                return [begun, *self._test(action.run, action.attempt)]
            case RetireRun():
                self._ci.stop(action.run, self._now)
                self._built.pop(action.run, None)
                return []
            case AskEvidence() | Tell():
                return []
            case _:
                assert_never(action)

    def _build(self, action: BuildTestBranch) -> list[Report]:
        for one in action.steps:
            if self._target.fate_of(one.head).conflicts:
                return [inputs.TestBranchConflicted(action.run, one.pr, True, None, ())]
        steps = self._target.built(action.base_tip, action.steps)
        is_new = steps[-1].tree not in action.known_trees
        self._built[action.run] = built = _Built(action, steps[-1].commit)
        branch = f"headgate/{action.run}"
        report = inputs.TestBranchBuilt(action.run, built.sha, steps, branch, is_new)
        return [report, *self._test(action.run, 1)] if is_new else [report]

    def _land(self, action: Land) -> list[Report]:
        landed: list[Report] = []
        for step in action.steps:
            commit = step.commit if action.mode is LandMode.CAS else None
            tip = self._target.land(step.pr, step.head, commit)
            landed.append(inputs.Landed(action.run, step.position, tip.sha, tip.tree))
        return landed

    # --- CI

    def _test(self, run: str, number: int) -> list[Report]:
        """Ask CI for a test of a built run; it says at once that it has begun."""
        built = self._built[run]
        heads = built.action.steps
        fails = self._target.breaks(built.action.base_tip, heads)
        fails = fails or self._ci.flakes(run, number)
        takes_s = self._ci.seconds_of([one.head for one in heads if one.tested])
        self._ci.ask(Attempt(run, built.sha, not fails, takes_s), self._now)
        return [self._report(run, built.sha, CheckOutcome.RUNNING)]

    def _ci_ends(self) -> None:
        attempt = self._ci.ended()
        if attempt is not None and attempt.run in self._queue.runs:
            outcome = CheckOutcome.PASSED if attempt.passes else CheckOutcome.FAILED
            self._take(self._report(attempt.run, attempt.sha, outcome))

    def _report(self, run: str, sha: Sha, outcome: CheckOutcome) -> Report:
        return inputs.ChecksReported(run, sha, (self._check(outcome),), complete=True)

    def _check(self, outcome: CheckOutcome) -> Check:
        self._checks += 1
        number = str(self._checks)
        return Check(CheckKind.SUITE_RUN, CHECK, None, "", number, outcome, outcome.value, "ci:")

    # --- what is counted

    def _count(self, step: Step) -> None:
        for recorded in step.events:
            one = recorded.event
            if isinstance(one, EntryMoved) and one.state is EntryState.PENDING:
                self._counts["restarts"] += one.origin in FROM_TESTING
        for entry in step.finished_entries:
            self._count_end(entry)

    def _count_end(self, entry: Entry) -> None:
        is_failed = entry.state is EntryState.FAILED
        if entry.state is EntryState.MERGED:
            self._merged[entry.pr] = self._now - self._first_at[entry.head]
        elif is_failed:
            self._counts["failed"] += 1
            self._counts["failed_good"] += self._target.fate_of(entry.head).is_good
            self._failures[entry.pr] += 1
        else:
            self._counts["cancelled"] += 1
        if entry.state is not EntryState.CANCELLED:
            self._track.count(self._signs[entry.head], failed=is_failed)
            if is_failed:
                self._submit_again(entry)
        self._ended += 1
        if self._on_ended is not None:
            self._on_ended(self._ended)


def _submitter(arrival: Arrival) -> Actor:
    return arrival.submitted_by or Actor(ActorKind.PERSON, arrival.author)


def rates_of(history: History) -> Rates:
    """Return the rates that the service would have measured of this history."""
    tests = len(history.durations_s)
    flaked = round(history.flake_rate * tests)
    estimated = _estimated(history)
    return rates.measured(
        Outcomes(
            passed=tests - flaked,
            flaked=flaked,
            decided=len(estimated),
            interactions=sum(bool(one.fate.breaks_with) for one in history.arrivals),
            minutes={CHECK: [seconds / MINUTE_S for seconds in history.durations_s]},
            expected=sum(estimated),
            foreseen=rates.foreseen_of(estimated),
        )
    )


def _estimated(history: History) -> list[float]:
    """Return the chances of failing of what was decided, by authors and earlier failures."""
    track, failures, seen = Track(), Counter[int](), []
    for one in history.arrivals:
        if one.cancelled_at is None:
            signs = Signs(one.author, failures[one.pr])
            seen.append(signs)
            track.count(signs, failed=not one.fate.is_good)
            failures[one.pr] += not one.fate.is_good
    return [track.p_fail(signs) for signs in seen]


@dataclass(frozen=True, slots=True)
class _Built:
    """A test branch that exists: its request and its commit."""

    action: BuildTestBranch
    sha: Sha


class _Act(NamedTuple):
    """An act of a person and its time; `number` orders acts at the same time."""

    at: datetime
    number: int
    arrival: Arrival
    is_cancel: bool


def _acts(history: History) -> list[_Act]:
    """Everything that people do, in order."""
    acts = []
    for number, one in enumerate(history.arrivals):
        acts.append(_Act(one.at, number, one, is_cancel=False))
        if one.cancelled_at is not None:
            at = max(one.cancelled_at, one.at)
            acts.append(_Act(at, number, one, is_cancel=True))
    return sorted(acts, key=_moment)


def _moment(act: _Act) -> tuple[datetime, int, bool]:
    return act.at, act.number, act.is_cancel
