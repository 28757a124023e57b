"""Properties that must hold whatever happens (ENGINE.md 17, RELIABILITY.md 3).

Looks at what landed, at what CI said of it, and at events; asks the engine nothing. Raises
Violation with the property's name.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.mergequeue import outputs
from service.mergequeue.inputs import (
    ChecksReported,
    FactsChanged,
    Input,
    Landed,
    Submit,
    TestBranchBuilt,
)
from service.mergequeue.model import MergeQueue
from service.mergequeue.outputs import Action, BuildTestBranch, Land, PlacedWhy, RetireRun, Step
from service.mergequeue.reasons import MEANINGS, HoldScope, Reason
from service.mergequeue.states import EntryState, QueueState, RunKind, RunStatus
from service.vocabulary import Check, CheckOutcome, RequiredName, Sha
from tests.mergequeue.trees import Tree
from tests.simulation.truth import Truth

_COUNTED_ON = (EntryState.TESTING, EntryState.TESTS_PASSED)
_BY_OTHERS = frozenset(
    {
        Reason.TARGET_MOVED,
        Reason.AHEAD_FAILED,
        Reason.AHEAD_CANCELLED,
        Reason.AHEAD_MERGED_BY_HAND,
        Reason.AHEAD_OUT,
        Reason.AHEAD_RETURNED,
        Reason.AHEAD_CHANGED,
    }
)
_ENDS = frozenset({EntryState.MERGED, EntryState.FAILED, EntryState.CANCELLED})


class Violation(AssertionError):
    """A property does not hold."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


@dataclass
class Submission:
    """What the checker knows of one entry from events alone."""

    pr: int
    head: Sha
    priority: int
    ready_at: int | None = None
    placed_at: int | None = None
    excused_at: int = -1
    state: EntryState = EntryState.NOT_READY


@dataclass
class Seen:
    """What CI said of a commit when a landing rests on it."""

    tree: Tree
    checks: tuple[Check, ...]


@dataclass
class Checker:
    """Follows one history."""

    truth: Truth
    has_flakes: bool
    commits: dict[Sha, Seen] = field(default_factory=dict)
    entries: dict[str, Submission] = field(default_factory=dict)
    trees: dict[Sha, Tree] = field(default_factory=dict)
    heads: dict[int, Sha] = field(default_factory=dict)
    landed: Counter[tuple[int, Sha]] = field(default_factory=Counter)
    required: tuple[RequiredName, ...] = ()
    is_known: bool = True
    builds: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    passed: dict[tuple[Sha, frozenset[RequiredName]], datetime] = field(default_factory=dict)
    reported: dict[Sha, tuple[Check, ...]] = field(default_factory=dict)
    time: int = 0

    def after(self, one: Input, step: Step, now: datetime) -> None:
        """Look at one step."""
        self.time += 1
        for recorded in step.events:
            self._event(recorded.event, one, step)
        for action in step.actions:
            self._action(action, step)
        live = {entry.id for entry in step.queue.entries.values()}
        known = {key for key, entry in self.entries.items() if entry.state not in _ENDS}
        if live != known:
            raise Violation("I12", f"entries vanished or appeared: {live ^ known}")
        self._two_runs(step.queue)
        if isinstance(one, ChecksReported):
            self.reported[one.sha] = one.checks
        elif isinstance(one, FactsChanged | Submit):
            self.reported[one.facts.head] = one.facts.own_checks
        self._reused(one, step, now)

    def landing(self, pr: int, head: Sha, tree: Tree) -> None:
        """Something of ours landed on the branch with this content."""
        self.landed[pr, head] += 1
        if self.landed[pr, head] > 1:
            raise Violation("S2", f"pull request {pr} landed twice")
        if not self.is_known:
            raise Violation("I2", f"pull request {pr} landed with unreadable required statuses")
        if not any(
            seen.tree == tree and self.is_green(seen.checks) for seen in self.commits.values()
        ):
            raise Violation("S1", f"pull request {pr} landed as a tree that never passed")

    def at_rest(self, queue: MergeQueue) -> None:
        """Nothing is left to happen: every ready entry has ended (S5, S6)."""
        for entry in queue.entries.values():
            if entry.state is not EntryState.NOT_READY:
                raise Violation("S5", f"pull request {entry.pr} is stuck in {entry.state.value}")
            if entry.head != self.heads[entry.pr]:
                raise Violation("S6", f"pull request {entry.pr} is pinned to an old head")
        left = self.builds - self.retired
        if left:
            raise Violation("I35", f"{len(left)} test branches were never given back")

    def _event(self, event: outputs.Event, one: Input, step: Step) -> None:
        match event:
            case outputs.EntrySubmitted():
                if any(e.pr == event.pr and e.state not in _ENDS for e in self.entries.values()):
                    raise Violation("I13", f"pull request {event.pr} is queued twice")
                self.entries[event.entry] = Submission(event.pr, event.head, event.priority)
            case outputs.EntryUpdated():
                self.entries[event.entry].priority = event.priority
                self.entries[event.entry].excused_at = self.time
            case outputs.EntryPlaced():
                entry = self.entries[event.entry]
                entry.excused_at = self.time
                if event.why is PlacedWhy.URGENT and entry.priority != 0:
                    raise Violation("I20", f"pull request {entry.pr} interrupts unurgently")
                entry.placed_at = entry.placed_at or self.time
            case outputs.EntryMoved():
                self._moved(event, one, step)
            case outputs.RunStarted():
                self._started(event, step)
            case _:
                pass

    def _moved(self, event: outputs.EntryMoved, one: Input, step: Step) -> None:
        entry = self.entries[event.entry]
        if entry.state in _ENDS or entry.state is not event.origin:
            raise Violation("I14", f"pull request {entry.pr} moved from {event.origin.value}")
        entry.state = event.state
        if event.state in (EntryState.NOT_READY, EntryState.PENDING_FAILURE) or event.reason in (
            Reason.CONFLICT_AHEAD,
            Reason.CONFLICT_CLEARED,
        ):
            entry.excused_at = self.time
        if event.state is EntryState.NOT_READY:
            entry.placed_at = None
        if event.reason is Reason.NOW_READY and entry.ready_at is None:
            entry.ready_at = self.time
        if event.state is EntryState.TESTING and entry.placed_at is None:
            self._placed(entry)
        if event.state is EntryState.MERGED and event.reason is Reason.LANDED:
            self._in_order(entry)
        if event.state is EntryState.FAILED and MEANINGS[event.reason].blames:
            self._blamed(event, step)
        if event.state is EntryState.PENDING and event.origin in _COUNTED_ON:
            self._restarted(event, one, step)

    def _restarted(self, event: outputs.EntryMoved, one: Input, step: Step) -> None:
        """S7: a predicted landing restarts nobody."""
        if not isinstance(one, Landed) or event.reason not in _BY_OTHERS:
            return
        others = any(
            isinstance(r.event, outputs.TipMoved) and not r.event.landed for r in step.events
        )
        if not others:
            raise Violation("S7", f"a landing restarted {event.pr}: {event.reason.value}")

    def _placed(self, entry: Submission) -> None:
        """S4: among those that wait, priority and then age decide."""
        entry.placed_at = self.time
        if entry.excused_at >= 0:
            return
        for other in self.entries.values():
            if (
                other.state is EntryState.PENDING
                and other.placed_at is None
                and other.ready_at is not None
                and other.excused_at < 0
                and entry.ready_at is not None
                and (other.priority, other.ready_at) < (entry.priority, entry.ready_at)
            ):
                raise Violation("S4", f"{entry.pr} was started before {other.pr}")

    def _in_order(self, entry: Submission) -> None:
        """S4: landings follow the line, but for what was recorded."""
        for other in self.entries.values():
            if (
                other.state not in _ENDS
                and other.placed_at is not None
                and entry.placed_at is not None
                and other.placed_at < entry.placed_at
                and other.excused_at < 0
                and entry.excused_at < 0
            ):
                raise Violation("S4", f"{entry.pr} landed before {other.pr}")

    def _blamed(self, event: outputs.EntryMoved, step: Step) -> None:
        """S3, I18: the base was good, and this change makes it bad."""
        if event.reason in (Reason.CONFLICT_TARGET, Reason.REBASE_DIFFERS):
            return
        run = next((run for run in step.finished_runs if run.id == event.detail.run), None)
        if run is None or not run.steps:
            raise Violation("I18", f"{event.pr} is blamed without a run")
        for member in run.base:
            ahead = next((e for key, e in self.entries.items() if key == member.entry), None)
            if ahead is None or ahead.state not in (EntryState.MERGED, EntryState.TESTS_PASSED):
                raise Violation("I18", f"{event.pr} is blamed on top of {member.pr}")
        if not self.has_flakes and event.reason is Reason.REQUIRED_STATUS_FAILED:
            tree = self.trees[run.steps[-1].commit]
            if self.truth.is_good(tree, tuple(one.name for one in run.required)):
                raise Violation("S3", f"{event.pr} is innocent")

    def _started(self, event: outputs.RunStarted, step: Step) -> None:
        if event.kind is RunKind.DIRECT:
            return
        if step.queue.state is not QueueState.RUNNING:
            raise Violation("I22", f"run {event.number} started while {step.queue.state.value}")
        if not self.is_known:
            raise Violation("I2", f"run {event.number} started without readable rules")

    def _action(self, action: Action, step: Step) -> None:
        if isinstance(action, BuildTestBranch):
            self.builds.add(action.run)
        elif isinstance(action, RetireRun):
            if action.run in self.retired or action.run not in self.builds:
                raise Violation("I35", "a run was retired twice, or was never built")
            self.retired.add(action.run)
        elif isinstance(action, Land):
            self._land(action, step.queue)

    def _land(self, action: Land, queue: MergeQueue) -> None:
        if queue.state is QueueState.PAUSED:
            raise Violation("I21", "a paused queue lands")
        if any(hold.scope is not HoldScope.START for hold in queue.holds):
            raise Violation("I28", "a held queue lands")
        if queue.landing is None or queue.landing.run != action.run:
            raise Violation("I23", "two landings at once")
        for step in action.steps:
            if step.head != self.heads[step.pr]:
                raise Violation("I5", f"an old head of {step.pr} is about to land")

    def _two_runs(self, queue: MergeQueue) -> None:
        tested: Counter[str] = Counter()
        for run in queue.runs.values():
            if run.kind is not RunKind.CONFIRMATION:
                tested.update(member.entry for member in run.entries)
        twice = [entry for entry, count in tested.items() if count > 1]
        if twice:
            raise Violation("I23", f"entries in two runs: {twice}")

    def is_green(self, checks: tuple[Check, ...], also: tuple[RequiredName, ...] = ()) -> bool:
        """Every required status passed in all suites, by the App it is pinned to."""
        for required in (*self.required, *also):
            own = [
                check.outcome
                for check in checks
                if check.name == required.name
                and (required.source_id is None or check.source_id == required.source_id)
            ]
            if not own or any(outcome is not CheckOutcome.PASSED for outcome in own):
                return False
        return True

    def _reused(self, one: Input, step: Step, now: datetime) -> None:
        """S8: nobody waits for CI on a tree that passed within the last day."""
        if isinstance(one, TestBranchBuilt):
            run = step.queue.runs.get(one.run)
            if run is not None and run.status is RunStatus.IN_PROGRESS and not run.fresh:
                at = self.passed.get((run.steps[-1].tree, frozenset(run.required)))
                is_young = at is not None and now < at + timedelta(hours=24)
                if is_young and run.config.result_reuse_enabled:
                    raise Violation("S8", f"run {run.number} waits on a tree that is green")
        runs = {run.id: run for run in (*step.queue.runs.values(), *step.finished_runs)}
        for recorded in step.events:
            event = recorded.event
            if isinstance(event, outputs.RunFinished) and event.status is RunStatus.SUCCEEDED:
                run = runs[event.run]
                if run.contained or event.cause is not None:
                    continue
                tree = run.steps[-1].tree
                if run.reused_from is not None:
                    if (tree, frozenset(run.required)) not in self.passed:
                        raise Violation("I44", f"run {run.number} took another tree's result")
                    continue
                seen = self.reported.get(run.sha or Sha(""), ())
                if not self.is_green(seen, run.required):
                    raise Violation("I2", f"run {run.number} passed without its reports")
                self.passed[tree, frozenset(run.required)] = now
