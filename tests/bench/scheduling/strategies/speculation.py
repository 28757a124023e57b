"""Speculation on a graph: the most probable paths are tested first.

- predecessors of a pull request are earlier undecided ones that may conflict with it;
- a path assumes of each of them that it merges or not; its score is the product of chances;
- a run is aborted when an assumption is refuted, or when evidence makes its path improbable;
- one whose path has passed (failed) is believed to merge (fail).
"""

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Clock,
    Eject,
    Event,
    Merge,
    PrCancelled,
    PrSubmitted,
    PrView,
    RunFinished,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.strategies.conflicts import ConflictIndex
from tests.bench.scheduling.strategies.paths import Path, Paths

P_MIN, P_MAX = 0.01, 0.99
BELIEF_MIN, BELIEF_MAX = 0.02, 0.97
NEVER_BELOW = -1e18
"""A floor under every score."""


@dataclass(frozen=True)
class Rules:
    """How to speculate.

    `is_uniform`: every outcome counts as even, breadth first; `prior`: one chance for all, in
    place of the estimates. At most `depth` undecided predecessors; 0 starts one only when
    nothing that may conflict is ahead. Paths below `floor` are not tested, running ones that
    fall below `abort` are stopped.
    """

    name: str = "submitqueue"
    is_uniform: bool = False
    depth: int = 48
    learns: bool = True
    floor: float = 0.0
    abort: float = 0.02
    retries: int = 0
    prior: float | None = None


@dataclass(slots=True, eq=False)
class Head:
    """One undecided pull request.

    `open` are its undecided predecessors in order, `fixed` those that merged; `p` is the present
    belief that it merges, `version` outdates what lies in the heap of paths.
    """

    pr: PrView
    open: dict[int, None]
    p: float
    fixed: Path = frozenset()
    runs: dict[Path, int] = field(default_factory=dict)
    results: dict[Path, tuple[bool, int]] = field(default_factory=dict)
    version: int = 0
    paths: Paths | None = None


class Speculation:
    """Best-first speculation within a budget of `workers` runs."""

    def __init__(self, config: StrategyConfig, rules: Rules | None = None) -> None:
        self.config = config
        self.rules = rules = rules or Rules()
        self.name = rules.name
        self.learns = rules.learns and not rules.is_uniform
        self.log_floor = math.log(rules.floor) if rules.floor > 0 else NEVER_BELOW
        abort = 0.0 if rules.is_uniform else max(rules.abort, rules.floor)
        self.log_abort = math.log(abort) if abort > 0 else NEVER_BELOW
        self.active_max = 2 * config.workers + 64 if config.use_targets else max(rules.depth, 1)
        self.index = ConflictIndex(use_targets=config.use_targets)
        self.heads: dict[int, Head] = {}
        self.behind: dict[int, dict[int, None]] = {}
        self.waiting: deque[PrView] = deque()
        self.of_run: dict[int, tuple[int, Path]] = {}
        self.tries: dict[tuple[int, Path], int] = {}
        self.aborts: list[Action] = []
        self.heap: list[tuple[float, int, int]] = []
        self.clock = 0
        self.next_run = 0
        self.in_flight = 0

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, Clock):
            return out
        if isinstance(event, PrSubmitted):
            self._submitted(event.pr)
        elif isinstance(event, RunFinished):
            self._finished(event, out)
        else:
            self._cancelled(event, out)
        self._activate()
        out += self.aborts
        self.aborts = []
        out += self._fund()
        return out

    def _submitted(self, pr: PrView) -> None:
        self.waiting.append(pr)

    def _cancelled(self, event: PrCancelled, out: list[Action]) -> None:
        if event.pr in self.heads:
            for ready in self._settle(event.pr, merged=False, out=out):
                self._decide(ready, out)
        else:
            self.waiting = deque(pr for pr in self.waiting if pr.id != event.pr)

    # -- chances ---------------------------------------------------------------------------------

    def _prior(self, pr: PrView, predecessors: int) -> float:
        if self.rules.is_uniform:
            return 0.5
        if self.rules.prior is not None:
            return self.rules.prior
        alone = pr.p_ok * (1.0 - self.config.flake_prior)
        p = alone * (1.0 - self.config.conflict_prior) ** min(predecessors, 50)
        return min(max(p, P_MIN), P_MAX)

    def _belief(self, pr: int) -> float:
        return self.heads[pr].p

    def _chance_of_base(self, head: Head, path: Path) -> float:
        """That a run of the path fails for no other reason than the head itself."""
        good = 1.0 - self.config.flake_prior
        for pr in head.open:
            if pr in path:
                good *= self.heads[pr].p
        return good

    # -- the graph -------------------------------------------------------------------------------

    def _activate(self) -> None:
        while self.waiting and len(self.heads) < self.active_max:
            pr = self.waiting.popleft()
            ahead = self.index.query(pr.targets)
            head = Head(pr, dict.fromkeys(ahead), self._prior(pr, len(ahead)))
            self.heads[pr.id] = head
            for other in ahead:
                self.behind.setdefault(other, {})[pr.id] = None
            self.index.add(pr.id, pr.targets)
            self._refresh(head)

    def _refresh(self, head: Head) -> None:
        """Rank its paths anew; abort those running that have become improbable."""
        self.clock += 1
        head.version = self.clock
        if len(head.open) > self.rules.depth:
            head.paths = None
            return
        head.paths = Paths(head.open, self._belief)
        self._push(head, head.paths)
        if head.runs and self.log_abort > NEVER_BELOW and head.open:
            self._preempt(head, head.paths.best)

    def _preempt(self, head: Head, best: float) -> None:
        for path in list(head.runs):
            score = 0.0
            for pr in head.open:
                p = self.heads[pr].p
                score += math.log(p if pr in path else 1.0 - p)
            if score < self.log_abort and score < best - 1.0:
                self.aborts.append(self._cancel(head, path))

    def _cancel(self, head: Head, path: Path) -> Action:
        run = head.runs.pop(path)
        del self.of_run[run]
        self.in_flight -= 1
        return CancelRun(run)

    def _push(self, head: Head, paths: Paths) -> None:
        score = paths.next_score()
        if score is not None and score >= self.log_floor:
            heapq.heappush(self.heap, (-score, head.pr.id, head.version))

    # -- results ---------------------------------------------------------------------------------

    def _finished(self, event: RunFinished, out: list[Action]) -> None:
        pr, path = self.of_run.pop(event.run)
        self.in_flight -= 1
        head = self.heads[pr]
        del head.runs[path]
        if not event.passed and self.tries.get((pr, path), 0) < self.rules.retries:
            self.tries[pr, path] = self.tries.get((pr, path), 0) + 1
            out.append(self._start(head, path))
            return
        head.results[path] = (event.passed, event.run)
        if not head.open:
            self._decide(pr, out)
        elif self.learns:
            self._learn(head, path, passed=event.passed)

    def _learn(self, head: Head, path: Path, *, passed: bool) -> None:
        """Believe it more or less; those behind it are ranked anew."""
        p = BELIEF_MAX
        if not passed:
            s = self._chance_of_base(head, path)
            p = min(BELIEF_MAX, max(BELIEF_MIN, head.p * (1.0 - s) / (1.0 - s * head.p)))
        if abs(p - head.p) > 0.02:
            head.p = p
            for other in self.behind.get(head.pr.id, ()):
                self._refresh(self.heads[other])

    def _decide(self, pr: int, out: list[Action]) -> None:
        """All predecessors are settled: act on the path that came true, if it is known."""
        stack = [pr]
        while stack:
            head = self.heads.get(stack.pop())
            known = head.results.get(head.fixed) if head is not None and not head.open else None
            if head is None or known is None:
                continue
            stack.extend(reversed(self._act(head, known, out)))

    def _act(self, head: Head, known: tuple[bool, int], out: list[Action]) -> list[int]:
        """Merge or reject; those that may be decided now."""
        passed, run = known
        out.append(Merge((head.pr.id,), run) if passed else Eject(head.pr.id, run))
        return self._settle(head.pr.id, merged=passed, out=out)

    def _settle(self, pr: int, *, merged: bool, out: list[Action]) -> list[int]:
        """Take a decided one out of the graph; those that have nobody undecided ahead now."""
        head = self.heads.pop(pr)
        self.index.remove(pr)
        head.version = -1
        out += [self._cancel(head, path) for path in list(head.runs)]
        for ahead in head.open:
            self.behind[ahead].pop(pr, None)
        ready = []
        for number in self.behind.pop(pr, ()):
            other = self.heads[number]
            other.open.pop(pr, None)
            if merged:
                other.fixed |= {pr}
            refuted = [path for path in other.runs if (pr in path) != merged]
            out += [self._cancel(other, path) for path in refuted]
            for path in [path for path in other.results if (pr in path) != merged]:
                del other.results[path]
            self._refresh(other)
            if not other.open:
                ready.append(number)
        return ready

    # -- starting --------------------------------------------------------------------------------

    def _start(self, head: Head, path: Path) -> Action:
        self.next_run += 1
        run = self.next_run
        head.runs[path] = run
        self.of_run[run] = (head.pr.id, path)
        self.in_flight += 1
        base = tuple(sorted(pr for pr in path if pr in head.open))
        return StartRun(run, base, (head.pr.id,))

    def _fund(self) -> Iterator[Action]:
        while self.in_flight < self.config.workers and self.heap:
            _, pr, version = heapq.heappop(self.heap)
            head = self.heads.get(pr)
            if head is None or head.version != version or head.paths is None:
                continue
            path = head.fixed | head.paths.pop()
            self._push(head, head.paths)
            if path not in head.runs and path not in head.results:
                yield self._start(head, path)
