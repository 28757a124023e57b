"""Virtual time: authors, CI with its slots, and one queue. The same seed gives the same result."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.bench.agents.gate import Gate
from tests.bench.agents.interface import MakeQueue
from tests.bench.agents.scripts import Authors, End, Work
from tests.bench.agents.world import HOUR_S, MINUTE_S, Head, Scenario, World, arrivals
from tests.bench.scheduling import chance
from tests.bench.scheduling.audit import ProtocolError
from tests.bench.scheduling.interface import (
    NO_PROOF,
    Action,
    CancelRun,
    Clock,
    Eject,
    Event,
    Merge,
    PrSubmitted,
    PrView,
    RunFinished,
    SetTimer,
    StartRun,
    StrategyConfig,
)

DRAIN_H = 16.0
"""After the last pull request is opened the queue has so long to decide what is left."""

D_NOISE = 0.1


@dataclass(frozen=True)
class Rules:
    """What the queue does for its submitters beside queueing."""

    guard: bool = False
    budget: bool = False
    verdict: bool = False
    radar: bool = False


@dataclass(slots=True)
class Run:
    """One test run: `members` are its base and what it tests, `branch` the landings below."""

    tested: tuple[int, ...]
    members: tuple[int, ...]
    branch: int
    started_s: float = -1.0
    minutes: float = 0.0
    passes: bool = False
    is_over: bool = False


@dataclass
class Played:
    """Everything that happened. `landed` are (second, head)."""

    world: World
    work: list[Work]
    runs: list[Run]
    landed: list[tuple[float, int]]
    end_s: float


def play(
    scenario: Scenario,
    make: MakeQueue,
    rules: Rules,
    world_of: Callable[[Scenario], World] = World,
) -> Played:
    """Play a scenario to its end. Raises ProtocolError for senseless actions of the queue."""
    return _Simulator(world_of(scenario), make, rules).play()


class _Simulator:
    def __init__(self, world: World, make: MakeQueue, rules: Rules) -> None:
        self.now = 0.0
        self._scenario = scenario = world.scenario
        self._world = world
        self._gate = Gate(self._world, guards=rules.guard, budgets=rules.budget)
        self._authors = Authors(
            self._world, self._gate, self, told=rules.verdict, warned=rules.radar
        )
        self._queue = make(_told(scenario), self._world)
        self._in_queue: dict[int, None] = {}
        self._runs: dict[int, Run] = {}
        self._all_runs: list[Run] = []
        self._attempts: dict[tuple[int, ...], int] = {}
        self._landed: list[tuple[float, int]] = []
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._waiting: list[tuple[float, int, Run, int]] = []
        self._asked = 0
        self._free = scenario.slots
        self._events: list[Event] = []

    def play(self) -> Played:
        for at, submitter, is_person in arrivals(self._scenario):
            self._at(at, _opening(self._authors, submitter, is_person=is_person))
        last_s = (self._scenario.hours + DRAIN_H) * HOUR_S
        while self._due and self._due[0][0] <= last_s:
            self.now, _, act = heapq.heappop(self._due)
            act()
            while self._events:
                self._tell(self._events.pop(0))
        for run in self._all_runs:
            if not run.is_over and run.started_s >= 0:
                run.minutes = (self.now - run.started_s) / MINUTE_S
        return Played(self._world, self._authors.work, self._all_runs, self._landed, self.now)

    # -- what authors ask ------------------------------------------------------------------------

    def after(self, minutes: float, act: Callable[[], None]) -> None:
        self._at(self.now + minutes * MINUTE_S, act)

    def enter(self, head: Head) -> None:
        pr = self._world.prs[head.pr]
        self._in_queue[head.id] = None
        p_ok, seconds = 1.0 - self._scenario.broken, pr.minutes * MINUTE_S
        view = PrView(head.id, self.now, None, p_ok, seconds, author=pr.submitter)
        self._events.append(PrSubmitted(self.now, view))

    def queued(self) -> Iterable[int]:
        return self._in_queue

    # -- what the queue asks ---------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        for action in self._queue.answer(event):
            self._do(action)
        while self._free and self._waiting:
            _, _, run, number = heapq.heappop(self._waiting)
            if not run.is_over:
                self._start(run, number)

    def _do(self, action: Action) -> None:
        match action:
            case StartRun(run=number, base=base, prs=tested, rank=rank):
                if number in self._runs:
                    raise ProtocolError(f"run {number} is started twice")
                run = Run(tested, (*base, *tested), len(self._world.landings))
                self._runs[number] = run
                self._asked += 1
                heapq.heappush(self._waiting, (rank, self._asked, run, number))
            case CancelRun(run=number):
                self._stop(self._runs[number])
            case Merge(prs=heads, proof=proof):
                self._land(heads, self._runs[proof])
            case Eject(pr=head, proof=proof):
                self._eject(head, proof)
            case SetTimer(t=t):
                self._at(max(t, self.now), lambda: self._events.append(Clock(self.now)))

    def _start(self, run: Run, number: int) -> None:
        attempt = self._attempts.get(run.members, 0)
        self._attempts[run.members] = attempt + 1
        key = chance.run_key(self._scenario.seed, run.members, attempt)
        slowest = max(self._world.prs[self._world.heads[each].pr].minutes for each in run.tested)
        takes = slowest * chance.noise(D_NOISE, key)
        is_flake = chance.flakes(self._scenario.flake, key)
        run.passes = not is_flake and self._world.passes(run.branch, run.members)
        run.started_s = self.now
        self._free -= 1
        self._all_runs.append(run)
        self.after(takes, lambda: self._finish(run, number))

    def _finish(self, run: Run, number: int) -> None:
        if not run.is_over:
            self._stop(run)
            self._events.append(RunFinished(self.now, number, run.passes))

    def _stop(self, run: Run) -> None:
        if run.is_over:
            return
        run.is_over = True
        if run.started_s >= 0:
            run.minutes = (self.now - run.started_s) / MINUTE_S
            self._free += 1

    def _land(self, heads: Iterable[int], proof: Run) -> None:
        if not (proof.is_over and proof.passes):
            raise ProtocolError("a merge without a passed run")
        for head in heads:
            self._landed.append((self.now, head))
            self._leave(head, End.LANDED)

    def _eject(self, head: int, proof: int) -> None:
        if proof == NO_PROOF:
            self._leave(head, End.CLASHED)
            return
        self._gate.blamed.add(head)
        self._leave(head, End.FAILED)

    def _leave(self, head: int, end: End) -> None:
        del self._in_queue[head]
        self._authors.ended(self._world.heads[head], end)

    def _at(self, t: float, act: Callable[[], None]) -> None:
        self._asked += 1
        heapq.heappush(self._due, (t, self._asked, act))


def _opening(authors: Authors, submitter: int, *, is_person: bool) -> Callable[[], None]:
    return lambda: authors.open(submitter, is_person=is_person)


def _told(scenario: Scenario) -> StrategyConfig:
    """What the history of such a repository would have shown a queue."""
    return StrategyConfig(
        workers=scenario.slots,
        use_targets=False,
        conflict_prior=0.0,
        flake_prior=scenario.flake,
        full_suite=True,
        minutes=scenario.ci_min,
    )
