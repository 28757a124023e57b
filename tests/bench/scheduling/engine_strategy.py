"""The engine itself as a strategy: events become its inputs, its actions become ours.

Only translation: whatever decides stands in `service/mergequeue`. The world around it never
fails: branches are built and landings happen at once. A pull request's number is the
simulator's plus one. Trees are sets of merged heads: a tree's id is the exclusive or of the
heads in it, so that equal content has an equal id, whatever the order.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b

from service.mergequeue.engine import engine, targets
from service.mergequeue.engine.inputs import (
    Cancel,
    ChecksReported,
    EvidenceReported,
    Input,
    Landed,
    RatesMeasured,
    Report,
    RepositoryChanged,
    RequiredChanged,
    Submit,
    TargetMoved,
    TestBranchBuilt,
    TimePassed,
)
from service.mergequeue.engine.model import MergeQueue, RequiredSet, RunStep, Tip
from service.mergequeue.engine.outputs import Action as EngineAction
from service.mergequeue.engine.outputs import (
    AskEvidence,
    BuildTestBranch,
    HeadToMerge,
    Land,
    RerunChecks,
    RetireRun,
    Step,
    Tell,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Evidence, Facts
from service.mergequeue.engine.states import EntryState
from service.vocabulary import (
    Actor,
    ActorKind,
    Channel,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    RequiredName,
    RequiredSource,
    Sha,
)
from tests.bench.scheduling.audit import ProtocolError
from tests.bench.scheduling.interface import (
    NO_PROOF,
    Action,
    CancelRun,
    Clock,
    Eject,
    Event,
    MakeStrategy,
    Merge,
    PrCancelled,
    PrSubmitted,
    PrView,
    RunFinished,
    SetTimer,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.settings import RECOMMENDED, settings_of
from tests.bench.scheduling.workload import MINUTE_S

START = datetime(2026, 3, 2, tzinfo=UTC)
SHA_DIGITS = 40
BRANCH = "main"
UNIT = "unit"
AUTHOR = Actor(ActorKind.PERSON, "author", "1", Channel.API)
FIRST_TIP = Tip(Sha("f" * SHA_DIGITS), Sha("0" * SHA_DIGITS))
REQUIRED = RequiredSet((RequiredName(UNIT),), RequiredSource.MERGE_INSTANCE)
PREFIXES_MAX = 10_000
"""Steps kept for branches that begin alike."""

CHECKED_EVERY = 100
"""One step in so many is checked; the tests of the engine check them all."""

UID = "c0ffee00-0000-4000-8000-000000000001"

Answers = Iterable[Report]


def _report(outcome: CheckOutcome) -> tuple[Check, ...]:
    url = "https://ci.example/1"
    return (Check(CheckKind.STATUS, UNIT, None, "", "1", outcome, outcome.value, url),)


REPORTS = {True: _report(CheckOutcome.PASSED), False: _report(CheckOutcome.FAILED)}


def engines() -> dict[str, MakeStrategy]:
    """The engine under each of its recommended settings."""
    return {name: partial(EngineStrategy, name=name) for name in RECOMMENDED}


class EngineStrategy:
    """A queue of the engine, and the shell of a world in which nothing goes wrong."""

    def __init__(self, told: StrategyConfig, name: str) -> None:
        self.name = name
        self.queue = MergeQueue(id=1, uid=UID, branch=BRANCH, config=settings_of(name, told))
        self.now = START
        self.wake_at: datetime | None = None
        self.timer: datetime | None = None
        # Of each run of the engine the run that the simulator has for it: by its own tests, or
        # those of an earlier run whose result it took over.
        self.numbers: dict[str, int] = {}
        self.unfinished: dict[int, tuple[str, Sha]] = {}
        self.prefixes: dict[tuple[int, Sha], tuple[RunStep, int]] = {}
        self.commits = 0
        self.untested: dict[str, Sha] = {}
        self.failed_tests: dict[str, tuple[str, ...]] = {}
        self.steps = 0
        self.tested = 0
        self.out: list[Action] = []
        self._take(TargetMoved(FIRST_TIP))
        self._take(RequiredChanged(REQUIRED))
        self._take(_rates_of(told))
        if told.sends_results:
            self._take(RepositoryChanged(sends_results=True))

    def answer(self, event: Event) -> list[Action]:
        self.now = START + timedelta(seconds=event.t)
        if isinstance(event, PrSubmitted):
            self._take(self._submission(event.pr))
        elif isinstance(event, RunFinished):
            run, sha = self.unfinished.pop(event.run)
            self.failed_tests[run] = event.failed_tests
            self._take(ChecksReported(run, sha, REPORTS[event.passed], complete=True))
        elif isinstance(event, PrCancelled):
            self._take(Cancel(event.pr + 1, Reason.USER_REQUESTED, AUTHOR))
        elif isinstance(event, Clock):
            self._wake()
        self._set_timer()
        out, self.out = self.out, []
        return out

    # -- time ------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self.timer is not None and self.timer <= self.now:
            self.timer = None
        if self.wake_at is not None and self.wake_at <= self.now:
            self._take(TimePassed())

    def _set_timer(self) -> None:
        """Ask for the instant the engine asked for, unless an earlier one is asked for already."""
        wake_at = self.wake_at
        if wake_at is not None and (self.timer is None or wake_at < self.timer):
            self.timer = wake_at
            self.out.append(SetTimer((wake_at - START).total_seconds()))

    # -- steps -----------------------------------------------------------------------------------

    def _submission(self, view: PrView) -> Submit:
        """What the product would know of it: never the truth."""
        touched = targets.ALL if view.targets is None else targets.of(map(str, view.targets))
        return Submit(
            _facts_of(view), AUTHOR, priority=view.priority, p_fail=1.0 - view.p_ok, targets=touched
        )

    def _take(self, one: Input) -> None:
        """Take one input, and whatever follows from it at once."""
        actions = self._keep(engine.step(self.queue, one, self.now, is_checked=self._is_checked()))
        while actions:
            reports = [report for action in actions for report in self._answers(action)]
            if not reports:
                return
            is_checked = self._is_checked()
            step = engine.step_reports(self.queue, reports, self.now, is_checked=is_checked)
            asked, actions = actions, self._keep(step)
            self._begin_tests(asked)

    def _is_checked(self) -> bool:
        self.steps += 1
        return self.steps % CHECKED_EVERY == 0

    def _keep(self, step: Step) -> tuple[EngineAction, ...]:
        if step.refusal is not None:
            raise ProtocolError(f"the engine refused: {step.refusal.text}")
        self.queue = step.queue
        self.wake_at = step.wake_at
        for entry in step.finished_entries:
            is_withdrawn = entry.reason is Reason.USER_REQUESTED
            if entry.state is not EntryState.MERGED and not is_withdrawn:
                self.out.append(Eject(entry.pr - 1, self.numbers.get(entry.run or "", NO_PROOF)))
        return step.actions

    def _answers(self, action: EngineAction) -> Answers:
        """Do what the engine asks for, and give the reports of it."""
        match action:
            case Tell():
                return ()
            case BuildTestBranch():
                return self._build(action)
            case Land():
                return self._land(action)
            case RetireRun(run=run):
                self._retire(run)
                return ()
            case RerunChecks(run=run):
                raise ProtocolError(f"run {run} is to be repeated, but no check is ever flawed")
            case AskEvidence():
                return (self._evidence(action),)

    # -- the shell -------------------------------------------------------------------------------

    def _build(self, action: BuildTestBranch) -> Iterator[Report]:
        """A branch with the base and the tested heads; its tests, unless the tree is known."""
        steps: list[RunStep] = []
        tree = int(action.base_tip.tree, 16)
        for head in action.steps[:-1]:
            step, tree = self._below(tree, head)
            steps.append(step)
        last, tree = self._merged(tree, action.steps[-1])
        steps.append(last)
        is_known = last.tree in action.known_trees
        yield TestBranchBuilt(
            action.run, last.commit, tuple(steps), f"headgate/{action.run}", not is_known
        )
        if not is_known:
            self.untested[action.run] = last.commit

    def _begin_tests(self, actions: Iterable[EngineAction]) -> None:
        """Test the branches that were built; a run of a known tree took a result over."""
        for action in actions:
            if not isinstance(action, BuildTestBranch):
                continue
            commit = self.untested.pop(action.run, None)
            run = self.queue.runs.get(action.run)
            if run is not None and run.reused_from is not None:
                self.numbers[action.run] = self.numbers[run.reused_from]
            elif commit is not None:
                self._test(action, commit)

    def _evidence(self, asked: AskEvidence) -> EvidenceReported:
        """The tests that failed in a run, whose results are complete and excuse nothing."""
        tests = self.failed_tests[asked.run]
        evidence = Evidence(
            asked.attempt,
            explanations={},
            fingerprint=", ".join(tests),
            failed_tests={UNIT: tests},
            unexplained_tests=tests,
        )
        return EvidenceReported(asked.run, evidence)

    def _below(self, tree: int, head: HeadToMerge) -> tuple[RunStep, int]:
        """A step that is not the last: made once, and used by every branch that begins so."""
        key = (tree, head.head)
        if key not in self.prefixes:
            if len(self.prefixes) >= PREFIXES_MAX:
                self.prefixes.clear()
            self.prefixes[key] = self._merged(tree, head)
        return self.prefixes[key]

    def _merged(self, tree: int, head: HeadToMerge) -> tuple[RunStep, int]:
        """The step that merges the head into the tree, and the tree after it."""
        self.commits += 1
        after = self._tree_after(tree, head)
        step = RunStep(head.pr, head.head, _sha(self.commits), _sha(after), contained=False)
        return step, after

    def _tree_after(self, tree: int, head: HeadToMerge) -> int:
        return tree ^ int(head.head, 16)

    def _test(self, action: BuildTestBranch, sha: Sha) -> None:
        self.tested += 1
        self.numbers[action.run] = self.tested
        self.unfinished[self.tested] = (action.run, sha)
        base: list[int] = []
        tested: list[int] = []
        for step in action.steps:
            (tested if step.tested else base).append(step.pr - 1)
        self.out.append(StartRun(self.tested, tuple(base), tuple(tested)))

    def _land(self, action: Land) -> Iterator[Report]:
        """All positions land, one after the other; the simulator sees one merge."""
        prs = tuple(step.pr - 1 for step in action.steps)
        self.out.append(Merge(prs, self.numbers[action.run]))
        for step in action.steps:
            yield Landed(action.run, step.position, step.commit, step.tree)

    def _retire(self, run: str) -> None:
        number = self.numbers.get(run)
        known = self.unfinished.get(number) if number is not None else None
        if number is not None and known is not None and known[0] == run:
            del self.unfinished[number]
            self.out.append(CancelRun(number))


def _rates_of(told: StrategyConfig) -> RatesMeasured:
    """What the product would have measured: rates of the world, never what becomes of one."""
    return RatesMeasured(told.flake_prior, told.conflict_rate, {UNIT: told.minutes}, told.foreseen)


def _facts_of(view: PrView) -> Facts:
    head = blake2b(view.id.to_bytes(8), digest_size=SHA_DIGITS // 2).hexdigest()
    return Facts(
        pr=view.id + 1,
        head=Sha(head),
        base=BRANCH,
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title="",
        author=f"author-{view.author}",
        is_fork=False,
        own_minutes=view.d_hat / MINUTE_S,
    )


def _sha(number: int) -> Sha:
    return Sha(f"{number:0{SHA_DIGITS}x}")
