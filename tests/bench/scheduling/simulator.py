"""The loop of events: one strategy against one workload, on a number of CI workers."""

import heapq
import time
from collections import deque
from dataclasses import dataclass

from tests.bench.scheduling.audit import Findings, Ledger, ProtocolError, PrState, Run, RunState
from tests.bench.scheduling.ci import OwnRun, Times, own_slots
from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Clock,
    Eject,
    Event,
    MakeStrategy,
    Merge,
    PrCancelled,
    PrSubmitted,
    RunFinished,
    SetTimer,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.workload import Workload

CPU_CHECKED_EVERY = 100
"""Events between two looks at the time that a simulation takes."""

Happening = Run | OwnRun | int | None
"""A run that ends, an own one that begins or ends, a pull request that is withdrawn, a timer."""

Due = tuple[float, int, Happening]
"""(second, order of asking, what)."""


@dataclass(frozen=True)
class Options:
    """How to simulate.

    `is_oracle`: runs never flake and merges need no proof; `start_overhead` seconds are added to
    each run; a simulation is cut off after `max_cpu_s` seconds of CPU time, 0: never.
    """

    is_oracle: bool = False
    start_overhead: float = 0.0
    max_cpu_s: float = 0.0


PLAIN, ORACLE = Options(), Options(is_oracle=True)


@dataclass
class Result:
    """What happened. `busy` are worker-seconds used, `wasted` those of aborted runs.

    `runs_doomed`: those started that hold two pull requests which conflict.
    """

    strategy: str
    workers: int
    workload: Workload
    state: list[PrState]
    decided: list[float]
    findings: Findings
    runs_started: int = 0
    runs_finished: int = 0
    runs_aborted: int = 0
    runs_doomed: int = 0
    busy: float = 0.0
    wasted: float = 0.0
    events: int = 0
    wrong_ejects: int = 0
    cpu_s: float = 0.0
    is_truncated: bool = False

    @property
    def stuck(self) -> int:
        """Pull requests never decided."""
        return sum(state is PrState.PENDING for state in self.state)

    @property
    def merged(self) -> int:
        """Pull requests that are in main."""
        return sum(state is PrState.MERGED for state in self.state)

    @property
    def merged_in_window(self) -> int:
        """Those merged up to the last arrival."""
        last = self.workload.arrive[-1]
        return sum(
            state is PrState.MERGED and at <= last
            for state, at in zip(self.state, self.decided, strict=True)
        )


def simulate(
    workload: Workload, make: MakeStrategy, workers: int, options: Options = PLAIN
) -> Result:
    """Run the strategy to the end of the workload. Raises ProtocolError for senseless actions."""
    return _Simulator(workload, make, workers, options).run()


class _Simulator:
    def __init__(
        self, workload: Workload, make: MakeStrategy, workers: int, options: Options
    ) -> None:
        config = workload.config
        self.workload = workload
        self.options = options
        self.strategy = make(
            StrategyConfig(
                workers=workers,
                use_targets=config.use_targets,
                conflict_prior=workload.pair_prior,
                flake_prior=config.flake,
                full_suite=config.full_suite,
                conflict_rate=config.conflict_rate,
                minutes=config.minutes,
                sends_results=config.sends_results,
                foreseen=workload.foreseen,
            )
        )
        self.ledger = Ledger(workload, options.is_oracle)
        self.result = Result(
            strategy=self.strategy.name,
            workers=workers,
            workload=workload,
            state=self.ledger.state,
            decided=self.ledger.decided,
            findings=self.ledger.findings,
        )
        self.times = Times(workload, self.ledger, is_oracle=options.is_oracle)
        self.runs: dict[int, Run] = {}
        self.due: list[Due] = []
        self.waiting: list[tuple[float, int, Run]] = []
        self.own_waiting: deque[tuple[int, OwnRun]] = deque()
        self.asked = 0
        # `free` slots for the queue, and all of the account; more are free than it may use only
        # while few pull requests run their own CI.
        self.free = workers
        self.free_of_all = workers + own_slots(workload)
        self.slow_from = workers * config.world.slow_share
        self.now = 0.0

    def run(self) -> Result:
        """Events in order of time; arrivals first."""
        arrive, views = self.workload.arrive, self.workload.views
        for pr, t in self.workload.cancel_at.items():
            self._put_due(t, pr)
        for t, takes in self.workload.own_runs:
            self._put_due(t, OwnRun(takes))
        begun = time.process_time()
        arrived, events, n = 0, 0, len(views)
        while arrived < n or self.due:
            event: Event | None
            if arrived < n and (not self.due or arrive[arrived] <= self.due[0][0]):
                self.now = arrive[arrived]
                event = PrSubmitted(self.now, views[arrived])
                arrived += 1
            else:
                event = self._next_due()
            if event is None:
                continue
            events += 1
            self._apply(event)
            self._fill()
            if events % CPU_CHECKED_EVERY == 0 and self._is_late(begun):
                self.result.is_truncated = True
                break
        self.result.cpu_s = time.process_time() - begun
        self.result.events = events
        self.result.wrong_ejects = self.ledger.wrong_ejects()
        return self.result

    def _is_late(self, begun: float) -> bool:
        limit = self.options.max_cpu_s
        return limit > 0 and time.process_time() - begun > limit

    def _put_due(self, t: float, what: Happening) -> None:
        self.asked += 1
        heapq.heappush(self.due, (t, self.asked, what))

    def _next_due(self) -> Event | None:
        """The next thing that happens; None for one that does not happen any more."""
        t, _, what = heapq.heappop(self.due)
        if what is None:
            self.now = t
            return Clock(t)
        if isinstance(what, Run):
            return self._finish(what, t)
        if isinstance(what, OwnRun):
            self._own(what, t)
            return None
        if self.ledger.state[what] is not PrState.PENDING or self.workload.arrive[what] > t:
            return None
        self.now = t
        self.ledger.cancel(what, t)
        return PrCancelled(t, what)

    def _finish(self, run: Run, t: float) -> Event | None:
        if run.state is not RunState.RUNNING:
            return None
        self.now = t
        run.state = RunState.FINISHED
        self.free += 1
        self.free_of_all += 1
        self.result.runs_finished += 1
        self.result.busy += t - run.t_start
        is_flake = not run.passed
        run.passed = run.passed and self.ledger.passes(run)
        is_hit = not self.options.is_oracle and self.workload.is_hit(run.t_start, t)
        if is_hit:
            run.passed = False
        self.times.end(run, t, has_failed=not run.passed)
        if run.passed or not self.workload.config.sends_results:
            return RunFinished(t, run.id, run.passed)
        failed = self.times.failed_tests(run, is_flake=is_flake, is_hit=is_hit)
        return RunFinished(t, run.id, run.passed, failed)

    def _own(self, run: OwnRun, t: float) -> None:
        """An own run asks for a slot of the account, or ends."""
        self.now = t
        if run.is_running:
            self.free_of_all += 1
        else:
            self.asked += 1
            self.own_waiting.append((self.asked, run))
        self._fill()

    def _apply(self, event: Event) -> None:
        for action in self.strategy.answer(event):
            self._do(action)

    def _fill(self) -> None:
        """Give free slots to what waits; those of the account to who has asked first."""
        while self.free_of_all:
            while self.waiting and self.waiting[0][2].state is not RunState.QUEUED:
                heapq.heappop(self.waiting)
            is_ready = bool(self.free and self.waiting)
            if self.own_waiting and not (is_ready and self.waiting[0][1] < self.own_waiting[0][0]):
                self._start_own(self.own_waiting.popleft()[1])
            elif is_ready:
                self._start(heapq.heappop(self.waiting)[2])
            else:
                return

    def _do(self, action: Action) -> None:
        if isinstance(action, StartRun):
            self._queue(action)
        elif isinstance(action, CancelRun):
            self._cancel(action.run)
        elif isinstance(action, Merge):
            self.ledger.merge(action, self.runs.get(action.proof), self.now)
        elif isinstance(action, Eject):
            self.ledger.eject(action, self.now)
        elif isinstance(action, SetTimer):
            self._put_due(max(action.t, self.now), None)
        else:
            raise ProtocolError(f"unknown action {action!r}")

    def _queue(self, action: StartRun) -> None:
        if action.run in self.runs:
            raise ProtocolError(f"run id {action.run} used again")
        if not action.prs:
            raise ProtocolError("a run tests nothing")
        run = Run(action.run, action.base, action.prs, len(self.ledger.merge_log))
        self.runs[action.run] = run
        self.asked += 1
        heapq.heappush(self.waiting, (action.rank, self.asked, run))

    def _cancel(self, number: int) -> None:
        run = self.runs.get(number)
        if run is None:
            raise ProtocolError(f"cancel of unknown run {number}")
        if run.state is RunState.RUNNING:
            used = self.now - run.t_start
            self.result.busy += used
            self.result.wasted += used
            self.result.runs_aborted += 1
            self.free += 1
            self.free_of_all += 1
            self.times.end(run, self.now, has_failed=False)
        if run.state in (RunState.QUEUED, RunState.RUNNING):
            run.state = RunState.CANCELLED
            del self.runs[number]

    def _start(self, run: Run) -> None:
        slow_s = self.workload.config.world.slow_start_s if self.free <= self.slow_from else 0.0
        run.state = RunState.RUNNING
        run.t_start = self.now
        takes = self.times.begin(run, self.now)
        self.free -= 1
        self.free_of_all -= 1
        self.result.runs_started += 1
        self.result.runs_doomed += self.ledger.is_doomed(run)
        self._put_due(self.now + takes + slow_s + self.options.start_overhead, run)

    def _start_own(self, run: OwnRun) -> None:
        run.is_running = True
        self.free_of_all -= 1
        self._put_due(self.now + run.takes, run)
