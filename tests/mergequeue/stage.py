"""One queue and the smallest world around it: builds and landings are answered at once.

Every step is checked in full: invariants over the whole value, and that planning again changes
nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from service.landed_work import LandedWork, WorkJudged
from service.mergequeue.engine import engine, invariants
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import (
    Input,
    Landed,
    NothingToTest,
    RequiredChanged,
    RerunStarted,
    Submit,
    TargetMoved,
    TestBranchBuilt,
    TimePassed,
)
from service.mergequeue.engine.model import MergeQueue, RequiredSet, Run, RunStep
from service.mergequeue.engine.outputs import (
    Action,
    BuildTestBranch,
    Land,
    Recorded,
    Refused,
    RerunChecks,
    RunStarted,
    Step,
)
from service.mergequeue.engine.reported import Facts, Rates
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
from tests.mergequeue import trees
from tests.mergequeue.trees import Target, Tree

START = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
ALICE = Actor(ActorKind.PERSON, "alice", "1", Channel.COMMENT)
REQUIRED = RequiredSet((RequiredName("unit"),), RequiredSource.BRANCH_PROTECTION)


def a_queue(config: QueueConfig | None = None) -> MergeQueue:
    """A fresh queue that has read its branch and what is required on it.

    Its estimates foresee who fails, so it needs no early looks: `rates foreseen=0` brings them.
    """
    queue = MergeQueue(
        id=1,
        uid="5f0c1a52-8a0c-4c1a-9a55-3f3b1d6f2c10",
        branch="main",
        config=config or QueueConfig(),
        rates=Rates(foreseen=1.0),
    )
    queue = engine.step(queue, TargetMoved(Target().tip), START).queue
    return engine.step(queue, RequiredChanged(REQUIRED), START).queue


def facts_of(pr: int, version: int = 1) -> Facts:
    """An open pull request against main that is ready for everything."""
    return Facts(
        pr=pr,
        head=trees.head_of(pr, version),
        base="main",
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title=f"Change {pr}",
        author="alice",
        is_fork=False,
    )


def a_check(
    name: str, outcome: CheckOutcome, number: int = 1, source_id: str | None = "7"
) -> Check:
    """A report by the CI's App; a higher number is a later one."""
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=name,
        source_id=source_id,
        group="g1",
        id=str(number),
        outcome=outcome,
        raw=outcome.value,
        url=f"https://ci.example/{number}",
        attempt=number,
    )


@dataclass
class Told:
    """What one input led to."""

    events: tuple[Recorded, ...]
    refusal: Refused | None


def together(told: Iterable[Told]) -> Told:
    """What several inputs led to, in order, with the first refusal."""
    answers = list(told)
    refusals = (each.refusal for each in answers if each.refusal is not None)
    events = tuple(event for each in answers for event in each.events)
    return Told(events, next(refusals, None))


def a_work(pr: int) -> LandedWork:
    """What landed with a pull request."""
    commit = trees.sha("landed", str(pr))
    return LandedWork(commit, pr, f"Change {pr}", "alice", (commit,), 9, ("x = 1",), ("app.py",))


class Stage:
    """A queue, its target branch, and the answers of a shell that never fails."""

    def __init__(
        self, config: QueueConfig, *, manual_build: bool = False, manual_land: bool = False
    ) -> None:
        self.now = START
        self.target = Target()
        self.queue = a_queue(config)
        self.facts: dict[int, Facts] = {}
        self.versions: dict[int, int] = {}
        self.runs: dict[int, str] = {}
        self.last: dict[str, Run] = {}
        self.manual_build = manual_build
        self.manual_land = manual_land
        self.builds: dict[str, BuildTestBranch] = {}
        self.lands: dict[str, Land] = {}
        self.told: list[Action] = []
        self.reports = 0
        self.contained: set[int] = set()
        self.undoing: dict[int, int] = {}
        self.twins: dict[int, int] = {}
        self.made: dict[tuple[Sha, ...], Sha] = {}
        self.wake_at: datetime | None = None
        self.steps: list[tuple[MergeQueue, Step]] = []

    def tell(self, one: Input) -> Told:
        """Take the input and whatever follows from it at once."""
        step = self._step(one)
        events = list(step.events)
        waiting = list(step.actions)
        while waiting:
            action = waiting.pop(0)
            self.told.append(action)
            for answer in self._answers(action):
                after = self._step(answer)
                events += after.events
                waiting += after.actions
        return Told(tuple(events), step.refusal)

    def passes(self, span: timedelta) -> Told:
        """Let time pass, waking the queue at every instant it asked for."""
        end = self.now + span
        told: list[Told] = []
        while self.wake_at is not None and self.wake_at <= end:
            self.now = self.wake_at
            told.append(self.tell(TimePassed()))
        self.now = end
        told.append(self.tell(TimePassed()))
        return together(told)

    def run(self, number: int) -> Run:
        """A run by its number, as last seen: a report may come when it is over."""
        return self.last[self.run_id(number)]

    def run_id(self, number: int) -> str:
        """Also of a run that is over."""
        assert number in self.runs, f"r{number} has not started; runs: {sorted(self.runs)}"
        return self.runs[number]

    def build(self, run_id: str, *, otherwise: bool = False) -> Told:
        """Answer a build that waits; `otherwise`: its merges have other trees than before."""
        assert run_id in self.builds, "no build of this run waits"
        return self.tell(self._built(self.builds.pop(run_id), otherwise=otherwise))

    def land(self, run_id: str) -> Told:
        """Answer a landing that waits: all its positions succeed, one after another."""
        assert run_id in self.lands, "no landing of this run waits"
        return together([self.tell(answer) for answer in self.landed(self.lands.pop(run_id))])

    def submit(self, pr: int, **options: object) -> Submit:
        """A submission by alice; facts are kept for later changes."""
        version = self.versions.setdefault(pr, 1)
        known = self.facts.get(pr)
        if known is None or known.head != trees.head_of(pr, version):
            known = facts_of(pr, version)
        self.facts[pr] = replace(known, state=PullRequestState.OPEN)
        work = self.judged(pr, self.target.tip.sha, self.target.tree)
        return replace(Submit(self.facts[pr], ALICE, work=work), **options)  # type: ignore[arg-type]

    def judged(
        self, pr: int, tip: Sha, tree: Tree, ahead: Collection[int] = ()
    ) -> WorkJudged | None:
        """How a pull request stands to what is there; None where nothing is planned of that.

        `undoing` says which one it takes back, `twins` of which it has the work. `ahead`: those
        in the tree that have yet to land.
        """
        undone, twin = self.undoing.get(pr), self.twins.get(pr)
        if undone is None and twin is None:
            return None
        there = {name for name, _ in tree}
        works: tuple[LandedWork, ...] = ()
        if undone is not None and f"pr {undone}" in there:
            works = (replace(a_work(undone), is_ahead=undone in ahead),)
        by = a_work(twin) if twin is not None and f"pr {twin}" in there else None
        return WorkJudged(self.head(pr), tip, works, by is not None, by)

    def _step(self, one: Input) -> Step:
        step = engine.step(self.queue, one, self.now)
        invariants.check_whole(step.queue, self.now)
        again = engine.step(step.queue, TimePassed(), self.now)
        assert again.queue is step.queue, "planning again changed something"
        assert not again.actions
        assert not again.events
        self.steps.append((self.queue, step))
        self.queue = step.queue
        self.last |= step.queue.runs
        self.last |= {run.id: run for run in step.finished_runs}
        self.wake_at = step.wake_at
        for recorded in step.events:
            if isinstance(recorded.event, RunStarted):
                self.runs[recorded.event.number] = recorded.event.run
        return step

    def _answers(self, action: Action) -> list[Input]:
        if isinstance(action, BuildTestBranch):
            self.builds[action.run] = action
            return [] if self.manual_build else [self._built(self.builds.pop(action.run))]
        if isinstance(action, Land):
            self.lands[action.run] = action
            return [] if self.manual_land else self.landed(self.lands.pop(action.run))
        if isinstance(action, RerunChecks):
            return [RerunStarted(action.run, action.attempt)]
        return []

    def _built(self, action: BuildTestBranch, *, otherwise: bool = False) -> Input:
        if not action.steps:
            commit = trees.sha(action.base_tip.sha, "tip", action.run)
            return TestBranchBuilt(action.run, commit, (), f"headgate/{action.run}", True)
        tree: Tree = self.target.tree_of(action.base_tip.sha)
        if otherwise:
            tree |= {("merged", "otherwise")}
        steps: list[RunStep] = []
        judged: dict[int, WorkJudged] = {}
        commit = action.base_tip.sha
        for step in action.steps:
            is_in = step.pr in self.contained
            ahead = {one.pr for one in steps}
            work = self.judged(step.pr, commit, tree, ahead)
            if step.tested and work is not None:
                judged[step.pr] = work
            if not is_in:
                tree = tree | {trees.change_of(step.pr, step.head)}
                commit = self._commit_of(action, len(steps), commit)
            steps.append(RunStep(step.pr, step.head, commit, trees.tree_id(tree), is_in))
        tested = [step for step, head in zip(steps, action.steps, strict=True) if head.tested]
        if all(step.contained for step in tested):
            return NothingToTest(action.run)
        published = steps[-1].tree not in action.known_trees
        return TestBranchBuilt(
            action.run, commit, tuple(steps), f"headgate/{action.run}", published, judged
        )

    def _commit_of(self, action: BuildTestBranch, index: int, parent: Sha) -> Sha:
        """The commit another run made of the same steps; the last step is always new."""
        key = (action.base_tip.sha, *(step.head for step in action.steps[: index + 1]))
        is_last = index == len(action.steps) - 1
        if is_last or key not in self.made:
            self.made[key] = trees.sha(parent, action.steps[index].head, action.run)
        return self.made[key]

    def landed(self, action: Land) -> list[Input]:
        """The landing happens: each step brings its change onto what is there by then.

        What the shell reports of it, one answer a step, in order.
        """
        answers: list[Input] = []
        for step in action.steps:
            tree = self.target.tree
            if step.pr not in self.contained:
                tree |= {trees.change_of(step.pr, step.head)}
            commit = self.target.move(tree, step.commit if action.mode == "CAS" else None)
            answers.append(Landed(action.run, step.position, commit, trees.tree_id(tree)))
        return answers

    def a_report(
        self, known: tuple[Check, ...], outcomes: dict[str, CheckOutcome]
    ) -> tuple[Check, ...]:
        """The reports known so far with newer ones; `@unit` is another App's report of unit."""
        kept = {(check.name, check.source_id): check for check in known}
        for word, outcome in outcomes.items():
            self.reports += 1
            name = word.removeprefix("@")
            source = "13" if word.startswith("@") else "7"
            kept[name, source] = a_check(name, outcome, self.reports, source)
        return tuple(kept.values())

    def foreign(
        self, tree: Tree, *, prs: tuple[int, ...] = (), rewritten: bool = False
    ) -> TargetMoved:
        """Somebody else moves the target."""
        self.target.move(tree)
        return TargetMoved(self.target.tip, prs, rewritten)

    def head(self, pr: int) -> Sha:
        return trees.head_of(pr, self.versions.get(pr, 1))
