"""A commercial-style queue: a chain of batches, tested as prefixes in parallel.

- a node tests its batch on top of all nodes ahead;
- a failing front waits for the verdicts of up to `depth` nodes behind it;
- when optimistic, a passing node merges everything ahead of it;
- a batch that failed for good leaves the chain for a lane that tests halves on main; a half that
  passes enters again in front.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Eject,
    Event,
    Merge,
    PrCancelled,
    PrSubmitted,
    RunFinished,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.strategies.chain import State

Batch = tuple[int, ...]


@dataclass(slots=True, eq=False)
class _Node:
    prs: Batch
    run: int = -1
    state: State = State.WAITING


@dataclass(frozen=True)
class Rules:
    """`is_optimistic` None: where runs test their whole tree. The lane has its share of slots."""

    max_batch: int = 4
    depth: int = 2
    is_optimistic: bool | None = None
    lane_share: float = 0.25


class BatchChain:
    """The chain and its lane."""

    name = "batch-chain"

    def __init__(self, config: StrategyConfig, rules: Rules | None = None) -> None:
        self.rules = rules = rules or Rules()
        chosen = rules.is_optimistic
        self.is_optimistic = config.full_suite if chosen is None else chosen
        self.lane_slots = max(1, int(config.workers * rules.lane_share))
        self.slots = max(1, config.workers - self.lane_slots) if config.workers > 1 else 1
        self.waiting: deque[Batch] = deque()
        self.chain: list[_Node] = []
        self.of_run: dict[int, _Node] = {}
        self.lane: deque[Batch] = deque()
        self.lane_runs: dict[int, Batch] = {}
        self.next_run = 0
        self.gone: set[int] = set()

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, PrSubmitted):
            self.waiting.append((event.pr.id,))
        elif isinstance(event, RunFinished):
            out += self._finished(event)
        elif isinstance(event, PrCancelled):
            out += self._cancelled(event.pr)
        out += self._settle()
        out += self._fill_lane()
        out += self._fill_chain()
        return out

    def _finished(self, event: RunFinished) -> Iterator[Action]:
        if event.run in self.lane_runs:
            yield from self._bisected(self.lane_runs.pop(event.run), event)
        else:
            node = self.of_run.pop(event.run)
            node.state = State.PASSED if event.passed else State.FAILED

    def _bisected(self, batch: Batch, event: RunFinished) -> Iterator[Action]:
        batch = self._present(batch)
        if not batch:
            return
        if event.passed:
            self.waiting.appendleft(batch)
        elif len(batch) == 1:
            yield Eject(batch[0], event.run)
        else:
            self._halve(batch)

    def _cancelled(self, pr: int) -> Iterator[Action]:
        self.gone.add(pr)
        for index, node in enumerate(self.chain):
            if pr in node.prs:
                yield from self._reset(index)
                node.prs = tuple(each for each in node.prs if each != pr)
                if not node.prs:
                    del self.chain[index]
                return

    def _reset(self, first: int) -> Iterator[Action]:
        for node in self.chain[first:]:
            yield from self._stop(node)
            node.state = State.WAITING

    def _stop(self, node: _Node) -> Iterator[Action]:
        if node.state is State.RUNNING:
            del self.of_run[node.run]
            yield CancelRun(node.run)

    def _settle(self) -> Iterator[Action]:
        while self.chain:
            count = self._proven()
            if count:
                yield from self._merge(self.chain[:count])
                del self.chain[:count]
            elif self._is_front_lost():
                yield from self._give_up(self.chain[0])
            else:
                return

    def _proven(self) -> int:
        """How many at the front may merge."""
        passed = [node.state is State.PASSED for node in self.chain]
        if self.is_optimistic:
            return max((place + 1 for place, has in enumerate(passed) if has), default=0)
        return passed.index(False) if False in passed else len(passed)

    def _merge(self, nodes: list[_Node]) -> Iterator[Action]:
        for node in nodes:
            yield from self._stop(node)
        if self.is_optimistic:
            yield Merge(tuple(pr for node in nodes for pr in node.prs), nodes[-1].run)
        else:
            yield from (Merge(node.prs, node.run) for node in nodes)

    def _is_front_lost(self) -> bool:
        """Whether the front failed and no verdict behind it is awaited any more."""
        behind = self.chain[1 : 1 + self.rules.depth]
        has_failed = self.chain[0].state is State.FAILED
        return has_failed and all(node.state is not State.RUNNING for node in behind)

    def _give_up(self, front: _Node) -> Iterator[Action]:
        if len(front.prs) == 1:
            yield Eject(front.prs[0], front.run)
        else:
            self._halve(front.prs)
        yield from self._reset(1)
        del self.chain[0]

    def _halve(self, batch: Batch) -> None:
        middle = len(batch) // 2
        self.lane.extend((batch[:middle], batch[middle:]))

    def _present(self, batch: Batch) -> Batch:
        return tuple(pr for pr in batch if pr not in self.gone)

    def _fill_lane(self) -> Iterator[Action]:
        while self.lane and len(self.lane_runs) < self.lane_slots:
            batch = self._present(self.lane.popleft())
            if batch:
                self.next_run += 1
                self.lane_runs[self.next_run] = batch
                yield StartRun(self.next_run, (), batch)

    def _fill_chain(self) -> Iterator[Action]:
        base: list[int] = []
        for node in self.chain:
            if node.state is State.WAITING and len(self.of_run) < self.slots:
                yield self._start(node, base)
            base.extend(node.prs)
        while len(self.of_run) < self.slots and self.waiting:
            batch = self._next_batch()
            if batch:
                node = _Node(batch)
                self.chain.append(node)
                yield self._start(node, base)
                base.extend(batch)

    def _next_batch(self) -> Batch:
        batch: list[int] = []
        free = self.slots - len(self.of_run)
        while self.waiting:
            first = self.waiting[0]
            if len(batch) + len(first) > max(self.rules.max_batch, len(first)):
                break
            batch.extend(self._present(self.waiting.popleft()))
            if len(self.waiting) + 1 <= free:
                break  # enough free workers: no need to batch
        return tuple(batch)

    def _start(self, node: _Node, base: list[int]) -> Action:
        self.next_run += 1
        node.run = self.next_run
        node.state = State.RUNNING
        self.of_run[node.run] = node
        return StartRun(node.run, tuple(base), node.prs)
