"""Properties that must hold whatever happens (docs/design/invariants.md 1).

Looks at what landed, at what CI said of it, and at events; asks the engine nothing. Raises
Violation with the property's name.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.mergequeue.engine import outputs
from service.mergequeue.engine.config import Mode, OptimizationMode
from service.mergequeue.engine.inputs import (
    ChecksReported,
    FactsChanged,
    Input,
    Landed,
    PassRevoked,
    SetImpactedTargets,
    Submit,
    TestBranchBuilt,
    TimePassed,
)
from service.mergequeue.engine.model import LandMode, MergeQueue, Proof, Run
from service.mergequeue.engine.outputs import (
    Action,
    BuildTestBranch,
    Land,
    LandStep,
    PlacedWhy,
    Step,
)
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import SPARE, EntryState, QueueState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.vocabulary import Check, CheckOutcome, RequiredName, Sha
from tests.harness import foreseen, stacked, whole_units
from tests.mergequeue import trees
from tests.mergequeue.stage import START
from tests.mergequeue.trees import Change, Tree
from tests.simulation import order
from tests.simulation.order import ENDS, Lanes, Submission, Violation
from tests.simulation.truth import Truth, number_of

_MERGED = EntryState.MERGED
_ASIDE = EntryState.NOT_READY
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
ALWAYS_REQUIRED = "unit"
"""The one status that every history requires from its beginning."""

_RAN_ONCE = {CheckOutcome.PASSED, CheckOutcome.SKIPPED}
"""A name that passed in one suite and was skipped in another has passed."""

_HAS_RUN = frozenset({CheckOutcome.PASSED, CheckOutcome.FAILED})

STANDSTILL_MAX = timedelta(hours=6)
"""Without faults something moves within this time (S9): a test run may take five hours."""

_NAMES_SOMEBODY = _BY_OTHERS - {Reason.TARGET_MOVED, Reason.AHEAD_CHANGED}
_HOLDS_ENTRIES = frozenset({RunKind.MAIN, RunKind.DIRECT})
_TAKES_A_SLOT = frozenset({RunKind.MAIN, RunKind.SCREEN}) | SPARE


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
    pinned: dict[int, Sha] = field(default_factory=dict)
    claims: dict[int, Targets | None] = field(default_factory=dict)
    moves: dict[Change, Targets | None] = field(default_factory=dict)
    landed: Counter[tuple[int, Sha]] = field(default_factory=Counter)
    landed_by: dict[int, str] = field(default_factory=dict)
    required: tuple[RequiredName, ...] = ()
    is_known: bool = True
    builds: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    batches: set[frozenset[int]] = field(default_factory=set)
    passed: dict[tuple[Sha, frozenset[RequiredName]], datetime] = field(default_factory=dict)
    reported: dict[Sha, tuple[Check, ...]] = field(default_factory=dict)
    proven: set[Sha] = field(default_factory=set)
    revoked: set[str] = field(default_factory=set)
    own_skips: dict[Sha, frozenset[str]] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    moved_at: datetime = START
    unit: tuple[str, int] | None = None
    part: tuple[str, str] | None = None
    lanes: Lanes | None = None
    time: int = 0
    mode: Mode | None = None

    def after(self, taken: Sequence[Input], step: Step, now: datetime) -> None:
        """Look at one step, by an input or by several reports of one kind."""
        if step.refusal is None:
            for each in taken:
                self._heard(each)
        one = taken[-1]
        if isinstance(one, PassRevoked):
            self._revoke(one, step)
        self.lanes = Lanes(self.mode or step.queue.config.mode, self.claims)
        self.mode = step.queue.config.mode
        for recorded in step.events:
            self.time += 1
            if isinstance(recorded.event, outputs.EntryMoved | outputs.RunFinished):
                self.moved_at = now
            if isinstance(recorded.event, outputs.HoldReleased) and step.queue.untested is None:
                # A person takes the tip as it is, or a pull request has passed on top of it.
                self.part = None
            if isinstance(recorded.event, outputs.ModeChanged):
                self.lanes = Lanes(recorded.event.mode, self.claims)
            self._event(recorded.event, one, step)
        for action in step.actions:
            self._action(action, step)
        live = {entry.id for entry in step.queue.entries.values()}
        known = {key for key, entry in self.entries.items() if entry.state not in ENDS}
        if live != known:
            raise Violation("I12", f"entries vanished or appeared: {live ^ known}")
        self._two_runs(step.queue)
        self._unit_goes_on(step.queue)
        self._is_held(step.queue)
        self._reused(one, step, now)

    def landing(self, action: Land, step: LandStep, run: Run | None, tree: Tree) -> None:
        """A step of ours landed on the branch, which has this content now."""
        self.landed[step.pr, step.head] += 1
        self.landed_by[step.pr] = action.run
        if self.landed[step.pr, step.head] > 1:
            raise Violation("S2", f"pull request {step.pr} landed twice")
        if not self.is_known:
            raise Violation("I2", f"pull request {step.pr} landed with unreadable rules")
        if run is None:
            raise Violation("S1", f"pull request {step.pr} landed by a run that is over")
        self._was_tested(action, step, run, tree)
        self.ran |= {check.name for check in self._reports_of(run) if check.outcome in _HAS_RUN}

    def at_rest(self, queue: MergeQueue) -> None:
        """Nothing is left to happen: every ready entry has ended (S5, S6)."""
        for entry in queue.entries.values():
            if entry.state is not EntryState.NOT_READY:
                raise Violation("S5", f"pull request {entry.pr} is stuck in {entry.state.value}")
            if entry.head != self.heads[entry.pr]:
                raise Violation("S6", f"pull request {entry.pr} is pinned to an old head")
        if queue.state is QueueState.SWITCHING_MODES or queue.target_mode is not None:
            raise Violation("S5", "the queue is switching modes for ever")
        if queue.bisections:
            raise Violation("S5", f"{len(queue.bisections)} bisections never ended")
        left = self.builds - self.retired
        if left:
            raise Violation("I35", f"{len(left)} test branches were never given back")

    def is_green(
        self,
        checks: tuple[Check, ...],
        also: tuple[RequiredName, ...] = (),
        skippable: Collection[str] = (),
    ) -> bool:
        """Every required status passed in all suites, by the App it is pinned to.

        Those that may be skipped were skipped or passed, and at least one status passed. A pass
        that was revoked is none.
        """
        said: set[CheckOutcome] = set()
        for required in (*self.required, *also):
            own = {
                CheckOutcome.FAILED if self._is_revoked(check) else check.outcome
                for check in checks
                if check.name == required.name
                and (required.source_id is None or check.source_id == required.source_id)
            }
            may_be = {CheckOutcome.PASSED}
            if required.name in skippable:
                may_be.add(CheckOutcome.SKIPPED)
            if not own or not (own <= may_be or own == _RAN_ONCE):
                return False
            said |= own
        return CheckOutcome.PASSED in said

    def _is_revoked(self, check: Check) -> bool:
        return check.id in self.revoked and check.outcome is CheckOutcome.PASSED

    def is_green_tree(self, tree: Tree, skippable: Collection[str] = ()) -> bool:
        """Whether CI's present word on some commit of this content is good."""
        return any(
            seen.tree == tree and self.is_green(seen.checks, (), skippable)
            for seen in self.commits.values()
        )

    def skippable(self, run: Run) -> frozenset[str]:
        """Names that each head of the run skipped, and that ran on something that landed."""
        if run.kind is RunKind.DIRECT:
            return frozenset(one.name for one in run.required) & self.ran
        heads = [self.own_skips.get(one.head, frozenset()) for one in run.entries]
        return frozenset.intersection(*heads) & self.ran

    def stands_still(self, queue: MergeQueue, now: datetime) -> None:
        """S9: without faults something moves within a bound, until all have ended."""
        if all(entry.state is EntryState.NOT_READY for entry in queue.entries.values()):
            self.moved_at = now
        if now > self.moved_at + STANDSTILL_MAX:
            raise Violation("S9", f"nothing has moved since {self.moved_at:%H:%M}")

    # --- what was said

    def _heard(self, one: Input) -> None:
        if isinstance(one, ChecksReported):
            self.reported[one.sha] = one.checks
        elif isinstance(one, FactsChanged | Submit):
            facts = one.facts
            self.reported[facts.head] = facts.own_checks
            self.heads[facts.pr] = facts.head
            self.own_skips[facts.head] = frozenset(facts.own_skipped)
        if isinstance(one, Submit) and self.pinned.get(one.facts.pr) == one.facts.head:
            # Submitted again, a word that was said stands; only an upload replaces it.
            self.claims[one.facts.pr] = self.claims.get(one.facts.pr) or one.targets
        if isinstance(one, SetImpactedTargets) and self.pinned.get(one.pr) == one.head:
            self.claims[one.pr] = one.targets

    def _revoke(self, one: PassRevoked, step: Step) -> None:
        """The tree that the run tested is proved no more; what others proved of its parts is.

        A pass of a check that is not required never proved it.
        """
        self.revoked |= set(one.checks)
        run = _run_of(one.run, step)
        if (
            run is not None
            and run.steps
            and any(
                check.id in one.checks and _counts(check, run) for check in self._reports_of(run)
            )
        ):
            tested = run.steps[-1].tree
            self.passed = {key: at for key, at in self.passed.items() if key[0] != tested}
            self.proven.discard(tested)

    def _reports_of(self, run: Run) -> tuple[Check, ...]:
        return self.reported.get(run.sha or Sha(""), ())

    def _submitted(self, event: outputs.EntrySubmitted, one: Input) -> None:
        if any(e.pr == event.pr and e.state not in ENDS for e in self.entries.values()):
            raise Violation("I13", f"pull request {event.pr} is queued twice")
        alone = isinstance(one, Submit) and bool(one.no_batch)
        self.claims[event.pr] = one.targets if isinstance(one, Submit) else None
        self.pinned[event.pr] = event.head
        entry = Submission(event.pr, event.head, event.priority, alone)
        self.entries[event.entry] = entry

    def _event(self, event: outputs.Event, one: Input, step: Step) -> None:
        match event:
            case outputs.EntrySubmitted():
                self._submitted(event, one)
            case outputs.EntryUpdated():
                entry = self.entries[event.entry]
                entry.priority, entry.no_batch = event.priority, event.no_batch
                entry.excused_at = self.time
            case outputs.EntryPlaced():
                entry = self.entries[event.entry]
                entry.excused_at = self.time
                if event.why is PlacedWhy.URGENT and entry.priority != order.URGENT:
                    raise Violation("I20", f"pull request {entry.pr} interrupts unurgently")
                entry.placed_at = entry.placed_at or self.time
            case outputs.EntryMoved():
                self._moved(event, one, step)
                self._kept_its_place(event, step)
            case outputs.RunStarted():
                self._started(event, step)
            case outputs.RunFinished(status=RunStatus.SUCCEEDED):
                self._succeeded(event, step)
            case outputs.BisectionOpened():
                self._opened(event, step)
            case _:
                pass

    def _moved(self, event: outputs.EntryMoved, one: Input, step: Step) -> None:
        entry = self.entries[event.entry]
        if entry.state in ENDS or entry.state is not event.origin:
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
        if event.state is EntryState.TESTING:
            self._tested(entry, _run_of(event.run, step))
        if event.state is EntryState.MERGED and event.reason is Reason.LANDED:
            order.judge_landing(entry, self.entries.values(), self._lanes())
        if event.state is EntryState.PENDING_FAILURE:
            self._failing(event, step)
        if event.state is EntryState.FAILED and event.reason.record.blames:
            self._blamed(event, step)
            self._was_not_cleared(event, one, step)
        if event.state is EntryState.PENDING and event.origin in _COUNTED_ON:
            self._restarted(event, one, step)

    def _kept_its_place(self, event: outputs.EntryMoved, step: Step) -> None:
        if foreseen.costs_a_place(event, step):
            raise Violation("I19", f"{event.pr} lost its place by what was taken back")

    def _tested(self, entry: Submission, run: Run | None) -> None:
        if run is not None and run.kind is RunKind.SCREEN:
            # Screened beside the line: it comes into it when it has passed.
            entry.excused_at = self.time
        elif entry.placed_at is None:
            entry.placed_at = self.time
            order.judge_start(entry, self.entries.values(), self._lanes())

    def _lanes(self) -> Lanes:
        assert self.lanes is not None
        return self.lanes

    # --- S1: what lands was tested

    def _was_tested(self, action: Land, step: LandStep, run: Run, tree: Tree) -> None:
        """As that tree, at its place in a run whose whole tree is green, or with strangers."""
        place = next((k for k, one in enumerate(run.steps) if one.pr == step.pr), None)
        if place is None or run.steps[place].tree != step.tree:
            raise Violation("S1", f"{step.pr} landed as a tree that its run does not have")
        tested = self.trees[run.steps[place].commit]
        if run.kind in SPARE:
            raise Violation("S8", f"{step.pr} landed by a run that counts for nothing")
        skipped = self.own_skips.get(step.head, frozenset()) & self.ran
        if run.kind is RunKind.DIRECT:
            skipped = self.skippable(run)
        if not self.is_green_tree(self.trees[run.steps[-1].commit], skipped):
            raise Violation("S1", f"pull request {step.pr} landed by a tree that never passed")
        if tree == tested:
            return
        if action.proof is Proof.EXACT_TREE or not tested < tree:
            raise Violation("S1", f"pull request {step.pr} landed as another tree than was tested")
        # Those who landed before it by runs of their own had the same right to: who meets them
        # and stands behind them was tested on top of them.
        mine = [one.pr for one in run.steps[: place + 1] if self.landed_by.get(one.pr) == run.id]
        for change in tree - tested:
            if self._lanes().meets_any(self._targets_of(change), mine):
                raise Violation("S1", f"{step.pr} landed on top of {change[0]}, which it meets")

    def _targets_of(self, change: Change) -> Targets | None:
        pr = number_of(change)
        return self.moves.get(change) if pr is None else self.claims.get(pr)

    def _unit_goes_on(self, queue: MergeQueue) -> None:
        """S1: what one run proves together is not left half landed for somebody else's sake."""
        landing = queue.landing
        if landing is None:
            return
        if self.unit is not None and self.unit[0] != landing.run:
            run = queue.runs.get(self.unit[0])
            other = queue.runs.get(landing.run)
            if run is None or other is None or run.status is not RunStatus.SUCCEEDED:
                return
            left = [one.pr for one in run.entries if one.pr in queue.entries]
            if any(self._lanes().meet(pr, next_) for pr in left for next_ in other.prs):
                raise Violation("S1", f"{left} were left behind by their unit")

    # --- S3, S8: who is blamed

    def _failing(self, event: outputs.EntryMoved, step: Step) -> None:
        run = _run_of(event.detail.run, step)
        if run is not None and run.kind in SPARE:
            raise Violation("S8", f"{event.pr} failed by a run that counts for nothing")

    def _blamed(self, event: outputs.EntryMoved, step: Step) -> None:
        """S3, I18: the base was good, and this change makes it bad."""
        if event.reason in (Reason.CONFLICT_TARGET, Reason.REBASE_DIFFERS):
            return
        run = _run_of(event.detail.run, step)
        if run is None or not run.steps:
            raise Violation("I18", f"{event.pr} is blamed without a run")
        if run.kind in SPARE:
            raise Violation("S8", f"{event.pr} is blamed by a run that counts for nothing")
        if foreseen.blames_alone(event, run, step):
            raise Violation("I18", f"{event.pr} is blamed by one run that shows no failure")
        # A change that the target contains already is in the branch without a commit of its own.
        added = [made for made in run.steps if not made.contained]
        if not added or added[-1].pr != event.pr:
            raise Violation("I18", f"{event.pr} is blamed by a run of others too")
        below = added[-2].tree if len(added) > 1 else run.base_tip.tree
        greens = self.proven
        for member in run.members:
            if member.pr == event.pr:
                continue
            ahead = self.entries.get(member.entry)
            is_sound = ahead is not None and ahead.state in (
                EntryState.MERGED,
                EntryState.TESTS_PASSED,
            )
            if not is_sound and below not in greens:
                raise Violation("I18", f"{event.pr} is blamed on top of {member.pr}")
        if not self.has_flakes and event.reason is not Reason.RUN_TIMED_OUT:
            self._is_guilty(event, run)

    def _was_not_cleared(self, event: outputs.EntryMoved, one: Input, step: Step) -> None:
        """S3: with optimistic merging a follower that passed clears it, before it is judged."""
        is_judged = isinstance(one, ChecksReported | TimePassed)
        if not is_judged or not step.queue.config.can_optimistically_merge:
            return
        for run in (*step.queue.runs.values(), *step.finished_runs):
            stands_on_it = any(member.entry == event.entry for member in run.base)
            reports = self._reports_of(run)
            if stands_on_it and run.kind is RunKind.MAIN and self.is_green(reports, run.required):
                raise Violation("S3", f"{event.pr} is blamed although run {run.number} passed")

    def _is_guilty(self, event: outputs.EntryMoved, run: Run) -> None:
        tree = self.trees[run.steps[-1].commit]
        names = tuple(one.name for one in run.required)
        if self.truth.is_good(tree, names):
            raise Violation("S3", f"{event.pr} is innocent")
        # What is required later may be broken already by what landed before, and a change that
        # others merged by hand may have broken the branch itself, or one that landed by the pass of
        # another App than CI where any App may report: that is nobody's case here.
        always = (ALWAYS_REQUIRED,)
        own = next(made.head for made in run.steps if made.pr == event.pr)
        change = trees.change_of(event.pr, own)
        is_broken_below = not self.truth.is_good(tree - {change}, always)
        landed = {trees.change_of(pr, head) for pr, head in self.landed}
        branch = self.trees[run.base_tip.sha] | (tree & landed)
        if is_broken_below and self.truth.is_good(branch, always):
            raise Violation("S3", f"{event.pr} is blamed for another's fault")

    def _restarted(self, event: outputs.EntryMoved, one: Input, step: Step) -> None:
        """S7: a predicted landing restarts nobody, and who restarts learns because of whom."""
        if event.reason in _NAMES_SOMEBODY and not event.detail.prs:
            raise Violation("S7", f"{event.pr} restarted for {event.reason.value} of nobody")
        if not isinstance(one, Landed) or event.reason not in _BY_OTHERS:
            return
        # Who was cancelled or lost its readiness during the landing leaves with its result.
        left = {entry.pr for entry in step.finished_entries if entry.state is not _MERGED}
        left |= {pr for pr, entry in step.queue.entries.items() if entry.state is _ASIDE}
        if left & set(event.detail.prs):
            return
        others = any(
            isinstance(r.event, outputs.TipMoved) and not r.event.landed for r in step.events
        )
        if not others:
            raise Violation("S7", f"a landing restarted {event.pr}: {event.reason.value}")

    # --- starts

    def _repeated(self, event: outputs.RunStarted, step: Step) -> None:
        """A run that repeats another one has its test branch, of exactly its tree."""
        runs = {**step.queue.runs, **{run.id: run for run in step.finished_runs}}
        run = runs[event.run]
        if run.repeats is None:
            return
        failed = runs[run.repeats]
        is_same = (run.members, run.base_tip, run.sha) == (
            failed.members,
            failed.base_tip,
            failed.sha,
        )
        if not is_same or failed.status is not RunStatus.FAILED or failed.repeats is not None:
            raise Violation("S11", f"run {run.number} repeats the checks of another tree")
        self.builds.add(event.run)

    def _started(self, event: outputs.RunStarted, step: Step) -> None:
        self._repeated(event, step)
        if event.kind in (RunKind.DIRECT, RunKind.TIP):
            return
        queue = step.queue
        if queue.state is not QueueState.RUNNING:
            raise Violation("I22", f"run {event.number} started while {queue.state.value}")
        if any(hold.reason is HoldReason.PROVIDER_LIMIT for hold in queue.holds):
            raise Violation("I22", f"run {event.number} started without a slot at the provider")
        if not self.is_known:
            raise Violation("I2", f"run {event.number} started without readable rules")
        if event.kind in _TAKES_A_SLOT and _in_progress(queue, _TAKES_A_SLOT) > (
            queue.config.concurrency
        ):
            raise Violation("E4", f"run {event.number} has no slot")
        batch = frozenset(event.prs)
        if event.kind is RunKind.MAIN and batch not in self.batches:
            self.batches.add(batch)
            members = [e for e in self.entries.values() if e.state not in ENDS and e.pr in batch]
            if stacked.is_unit(event.prs, queue):
                order.judge_stack(members)
            else:
                order.judge_batch(members, self.claims, queue.config)

    def _opened(self, event: outputs.BisectionOpened, step: Step) -> None:
        """A bisection starts its parts together, as far as there are slots for them."""
        queue, own = step.queue, step.queue.config.bisection_concurrency
        leaves = any(queue.entries[pr].cancel for pr in event.prs if pr in queue.entries)
        is_free = queue.state is QueueState.RUNNING and not queue.holds and not leaves
        if not is_free or own == 0 or event.bisection not in queue.bisections:
            return
        wanted = min(own, len(event.prs) - 1)
        if _in_progress(queue, frozenset({RunKind.PROBE, RunKind.CONFIRMATION})) < wanted:
            raise Violation("S8", f"the bisection of {event.prs} did not begin its parts together")

    # --- actions

    def _action(self, action: Action, step: Step) -> None:
        if isinstance(action, BuildTestBranch):
            self.builds.add(action.run)
            run = step.queue.runs.get(action.run)
            early = None if run is None else stacked.tested_early(run, step.queue)
            if early is not None:
                raise Violation("S10", f"{early} is tested before what is below it")
        elif isinstance(action, outputs.RetireRun):
            if action.run in self.retired or action.run not in self.builds:
                raise Violation("I35", "a run was retired twice, or was never built")
            self.retired.add(action.run)
        elif isinstance(action, Land):
            self._land(action, step.queue)

    def _land(self, action: Land, queue: MergeQueue) -> None:
        if queue.state is QueueState.PAUSED:
            raise Violation("I21", "a paused queue lands")
        if whole_units.is_stopped(queue, action.run):
            raise Violation("I28", "a held queue lands")
        if queue.landing is None or queue.landing.run != action.run:
            raise Violation("I23", "two landings at once")
        run = queue.runs[action.run]
        if run.status is not RunStatus.SUCCEEDED:
            raise Violation("S1", f"run {run.number} is to land and has not passed")
        if any(self._is_revoked(check) and _counts(check, run) for check in run.checks):
            raise Violation("S1", f"run {run.number} is to land by a pass that was revoked")
        for step in action.steps:
            if step.head != self.heads[step.pr]:
                raise Violation("I5", f"an old head of {step.pr} is about to land")
            _check_stack(queue.entries[step.pr].facts, action, queue)
            if queue.entries[step.pr].verified_by != action.run:
                raise Violation("S1", f"{step.pr} is to land by a run that does not prove it")
        if action.mode is LandMode.CAS and action.steps[-1].tree != run.steps[-1].tree:
            raise Violation("S1", f"run {run.number} lands in parts although it need not")
        rest = len(run.steps) - [one.pr for one in run.steps].index(action.steps[-1].pr) - 1
        self.unit = (action.run, rest) if rest else None
        is_more = self.part is not None and self.part[0] == action.run
        self.part = (action.run, run.members[-1].entry) if rest or is_more else None

    def _is_held(self, queue: MergeQueue) -> None:
        if self.part is None:
            return
        run, last = self.part
        is_whole = bool(queue.landed) and queue.landed[-1].entry == last
        if not is_whole and whole_units.is_unheld(queue, run, self.proven):
            raise Violation("I49", "the target has a part of a unit, and nothing holds the queue")

    def _two_runs(self, queue: MergeQueue) -> None:
        tested: Counter[str] = Counter()
        for run in queue.runs.values():
            # A failed one is evidence in a bisection, whose proven members go on elsewhere.
            if run.kind in _HOLDS_ENTRIES and run.status is not RunStatus.FAILED:
                tested.update(member.entry for member in run.entries)
        twice = [entry for entry, count in tested.items() if count > 1]
        if twice:
            raise Violation("I23", f"entries in two runs: {twice}")

    def _reused(self, one: Input, step: Step, now: datetime) -> None:
        """S8: nobody waits for CI on a tree that passed within the last day."""
        if isinstance(one, TestBranchBuilt):
            run = step.queue.runs.get(one.run)
            if run is not None and run.status is RunStatus.IN_PROGRESS and _may_reuse(run):
                at = self.passed.get((run.steps[-1].tree, frozenset(run.required)))
                if at is not None and now < at + timedelta(hours=24):
                    raise Violation("S8", f"run {run.number} waits on a tree that is green")

    def _succeeded(self, event: outputs.RunFinished, step: Step) -> None:
        run = _run_of(event.run, step)
        if run is None or run.contained or event.cause is not None:
            return
        tree = run.steps[-1].tree if run.steps else run.base_tip.tree
        key = tree, frozenset(run.required)
        if run.reused_from is not None:
            if key not in self.passed:
                raise Violation("I44", f"run {run.number} took another tree's result")
            return
        reports = self._reports_of(run)
        self.proven.add(key[0])
        if self.is_green(reports, run.required):
            self.passed[key] = step.events[0].at
        elif not self.is_green(reports, run.required, self.skippable(run)):
            raise Violation("I2", f"run {run.number} passed without its reports")


def _counts(check: Check, run: Run) -> bool:
    return any(
        check.name == required.name and required.source_id in (None, check.source_id)
        for required in run.required
    )


def _run_of(name: str | None, step: Step) -> Run | None:
    live = step.queue.runs.get(name or "")
    return live or next((run for run in step.finished_runs if run.id == name), None)


def _in_progress(queue: MergeQueue, kinds: frozenset[RunKind]) -> int:
    return sum(
        run.kind in kinds and run.status is RunStatus.IN_PROGRESS for run in queue.runs.values()
    )


def _may_reuse(run: Run) -> bool:
    if run.fresh or not run.config.result_reuse_enabled:
        return False
    skips = run.config.optimization_mode is OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS
    return run.kind is not RunKind.CONFIRMATION and (run.kind is not RunKind.PROBE or skips)


def _check_stack(facts: Facts, action: Land, queue: MergeQueue) -> None:
    """S10, for one that is about to land."""
    if stacked.lands_early(facts, action, queue):
        raise Violation("S10", f"{facts.pr} is to land before what is below it")
    if (facts.in_stack or facts.below) and action.mode is LandMode.CAS:
        raise Violation("S10", f"{facts.pr} of a stack is to land by the atomic update")
