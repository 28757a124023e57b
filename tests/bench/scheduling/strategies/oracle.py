"""Strategies that are told the truth: bounds, not competitors."""

from collections import deque
from collections.abc import Iterator
from functools import partial

from tests.bench.scheduling.ideal import fifo_outcome
from tests.bench.scheduling.interface import (
    Action,
    Eject,
    Event,
    MakeStrategy,
    Merge,
    PrSubmitted,
    PrView,
    RunFinished,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.strategies.conflicts import ConflictIndex
from tests.bench.scheduling.workload import Workload


def make_oracle(workload: Workload) -> MakeStrategy:
    """The oracle of this workload."""
    return partial(Oracle, good=fifo_outcome(workload))


def make_batch_oracle(workload: Workload) -> MakeStrategy:
    """The oracle of this workload that may batch and reorder."""
    return partial(BatchOracle, good=fifo_outcome(workload))


class Oracle:
    """Exactly one run for each, always on the right base."""

    name = "oracle"

    def __init__(self, config: StrategyConfig, good: list[bool]) -> None:
        self.good = good
        self.index = ConflictIndex(use_targets=config.use_targets)
        self.open: dict[int, dict[int, None]] = {}
        self.waiting_for: dict[int, list[int]] = {}
        self.done: set[int] = set()

    def answer(self, event: Event) -> list[Action]:
        if isinstance(event, PrSubmitted):
            return [self._start(event.pr)]
        if isinstance(event, RunFinished):
            self.done.add(event.run)
            return list(self._decide(event.run))
        return []

    def _start(self, pr: PrView) -> Action:
        if self.index.use_targets:
            ahead = self.index.query(pr.targets)
        else:  # a chain: to depend on the last undecided one is enough
            last = next(reversed(self.index.members), None)
            ahead = [] if last is None else [last]
        self.index.add(pr.id, pr.targets)
        self.open[pr.id] = dict.fromkeys(ahead)
        for other in ahead:
            self.waiting_for.setdefault(other, []).append(pr.id)
        return StartRun(pr.id, tuple(each for each in ahead if self.good[each]), (pr.id,))

    def _decide(self, run: int) -> Iterator[Action]:
        stack = [run]
        while stack:
            pr = stack.pop()
            if pr not in self.done or pr not in self.open or self.open[pr]:
                continue
            del self.open[pr]
            self.index.remove(pr)
            yield Merge((pr,), pr) if self.good[pr] else Eject(pr, pr)
            for other in self.waiting_for.pop(pr, ()):
                self.open[other].pop(pr, None)
                stack.append(other)


class BatchOracle:
    """Knows the outcomes and may batch: a bound for what CI costs when workers are scarce.

    Good ones that wait when a worker is free are spread over the free workers in order; broken
    ones travel alone, last, for their authors need a log.
    """

    name = "oracle-batch"

    def __init__(self, config: StrategyConfig, good: list[bool], max_batch: int = 64) -> None:
        self.workers = config.workers
        self.good = good
        self.max_batch = max_batch
        self.waiting: deque[int] = deque()
        self.bad: deque[int] = deque()
        self.running: dict[int, tuple[int, ...]] = {}
        self.run = 0

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, PrSubmitted):
            (self.waiting if self.good[event.pr.id] else self.bad).append(event.pr.id)
        elif isinstance(event, RunFinished):
            prs = self.running.pop(event.run)
            is_good = self.good[prs[0]]
            out.append(Merge(prs, event.run) if is_good else Eject(prs[0], event.run))
        out += self._fill()
        return out

    def _fill(self) -> Iterator[Action]:
        while (free := self.workers - len(self.running)) > 0 and self.waiting:
            count = min(self.max_batch, -(-len(self.waiting) // free))
            yield self._start(tuple(self.waiting.popleft() for _ in range(count)))
        while len(self.running) < self.workers and self.bad:
            yield self._start((self.bad.popleft(),))

    def _start(self, prs: tuple[int, ...]) -> Action:
        self.run += 1
        self.running[self.run] = prs
        return StartRun(self.run, (), prs)
