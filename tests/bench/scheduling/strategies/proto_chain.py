"""A feasibility proof for chains: risk-gated, sized by load, aware of flakes.

How much of the gap to the oracle ordinary bookkeeping closes, with no predictor but a chance for
each pull request. It is not the engine.

- admission: one with a high risk is tested alone on main first, and so is everybody while the
  chain is long and workers are idle;
- chain: the others are tested in batches on top of the undecided nodes ahead;
- batch: those that wait spread over free workers, closed when the joint chance of success falls
  below `cap`;
- failure: a node is blamed only when its base is probably good, and leaves the chain at once;
- second look: the blamed are tested alone; two failures reject, a pass enters again at the back;
  batches are cut where the risk is halved;
- proof: a node merges by its own pass once everything ahead that may conflict has merged; where
  runs test their whole tree one pass proves the whole prefix.
"""

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
    PrSubmitted,
    PrView,
    RunFinished,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.strategies.chain import State

Batch = tuple[PrView, ...]

P_AFTER_PASS_ALONE = 0.985
"""It passed alone: conflicts and flakes are left."""

BELIEF_MIN, BELIEF_MAX = 0.02, 0.98


@dataclass(frozen=True)
class Rules:
    """The numbers of the proof; `screen_chain` nodes make a chain long."""

    gate: float = 0.95
    cap: float = 0.75
    max_batch: int = 16
    blame: float = 0.4
    floor: float = 0.03
    lane_share: float = 0.5
    max_fails: int = 2
    screen_chain: int = 6
    screen_busy: float = 0.8


@dataclass(slots=True, eq=False)
class _Node:
    """`ahead` and `behind` are ids of nodes that may conflict, `base` those in the tested tree."""

    id: int
    prs: Batch
    p: float
    fails: int
    targets: frozenset[int] | None
    ahead: dict[int, None] = field(default_factory=dict)
    behind: dict[int, None] = field(default_factory=dict)
    state: State = State.WAITING
    run: int = -1
    base: tuple[int, ...] = ()


class ProtoChain:
    """The chain, and a lane in which pull requests are tested alone on main."""

    name = "proto"

    def __init__(self, config: StrategyConfig, rules: Rules | None = None) -> None:
        self.config = config
        self.rules = rules = rules or Rules()
        self.lane_slots = max(1, int(config.workers * rules.lane_share))
        self.waiting: deque[tuple[PrView, int]] = deque()
        self.chain: dict[int, _Node] = {}
        self.node_of_run: dict[int, int] = {}
        self.lane: deque[tuple[Batch, int]] = deque()
        self.lane_runs: dict[int, tuple[Batch, int]] = {}
        self.next_id = 0
        self.next_run = 0
        self.gone: set[int] = set()

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, Clock):
            return out
        if isinstance(event, PrSubmitted):
            self._admit(event.pr)
        elif isinstance(event, RunFinished):
            if event.run in self.lane_runs:
                out += self._lane_finished(event)
            else:
                out += self._chain_finished(event)
        else:
            out += self._cancelled(event.pr)
        out += self._fill()
        return out

    # -- events ----------------------------------------------------------------------------------

    def _admit(self, pr: PrView) -> None:
        if pr.p_ok < self.rules.gate or self._is_screening():
            self.lane.append(((pr,), 0))
        else:
            self.waiting.append((pr, 0))

    def _is_screening(self) -> bool:
        """Whether everybody is tested alone first: a long chain, and idle workers."""
        busy = len(self.node_of_run) + len(self.lane_runs)
        has_idle = busy < self.rules.screen_busy * self.config.workers
        is_long = len(self.chain) >= self.rules.screen_chain
        return not self.config.use_targets and is_long and has_idle

    def _lane_finished(self, event: RunFinished) -> Iterator[Action]:
        prs, fails = self.lane_runs.pop(event.run)
        prs = self._present(prs)
        if event.passed:
            for pr in prs:
                known = pr._replace(p_ok=max(pr.p_ok, P_AFTER_PASS_ALONE))
                self.waiting.append((known, fails))
        elif len(prs) > 1:
            first, second = _cut(prs)
            self.lane.appendleft((second, 0))
            self.lane.appendleft((first, 0))
        elif prs:
            if fails + 1 >= self.rules.max_fails:
                yield Eject(prs[0].id, event.run)
            else:
                self.lane.appendleft((prs, fails + 1))

    def _chain_finished(self, event: RunFinished) -> Iterator[Action]:
        node = self.chain[self.node_of_run.pop(event.run)]
        if event.passed:
            node.state = State.PASSED
            node.p = BELIEF_MAX
            yield from self._passed(node, event.run)
            return
        node.state = State.FAILED
        good = 1.0 - self.config.flake_prior
        for each in node.base:
            if each in self.chain:
                good *= self.chain[each].p
        if good >= self.rules.blame or not node.ahead:
            yield from self._suspect(node, event.run)
        else:
            believed = node.p * (1.0 - good) / (1.0 - good * node.p)
            node.p = min(BELIEF_MAX, max(BELIEF_MIN, believed))

    def _passed(self, node: _Node, run: int) -> Iterator[Action]:
        if self.config.full_suite:
            prefix = [self.chain[each] for each in node.base if each in self.chain]
            yield from self._merge([*prefix, node], run)
            return
        stack = [node]
        while stack:
            each = stack.pop()
            if each.id in self.chain and each.state is State.PASSED and not each.ahead:
                behind = [self.chain[other] for other in each.behind]
                yield from self._merge([each], each.run)
                stack.extend(reversed(behind))

    def _merge(self, nodes: list[_Node], proof: int) -> Iterator[Action]:
        yield Merge(tuple(pr.id for node in nodes for pr in node.prs), proof)
        for node in nodes:
            yield from self._remove(node)

    def _suspect(self, node: _Node, run: int) -> Iterator[Action]:
        """The node leaves the chain; every tree that held it is void."""
        is_exact = not node.ahead
        yield from self._take_out(node)
        if len(node.prs) > 1:
            self.lane.extend((half, 0) for half in _cut(node.prs))
            return
        fails = node.fails + 1
        if is_exact and fails >= self.rules.max_fails:
            yield Eject(node.prs[0].id, run)
        else:
            self.lane.append((node.prs, min(fails, self.rules.max_fails - 1)))

    def _cancelled(self, pr: int) -> Iterator[Action]:
        self.gone.add(pr)
        node = next((n for n in self.chain.values() if any(x.id == pr for x in n.prs)), None)
        if node is not None:
            yield from self._take_out(node)
            for other in reversed(node.prs):
                if other.id != pr:
                    self.waiting.appendleft((other, node.fails))

    # -- the chain -------------------------------------------------------------------------------

    def _take_out(self, node: _Node) -> Iterator[Action]:
        behind = [self.chain[each] for each in node.behind]
        yield from self._remove(node)
        for each in behind:
            yield from self._reset_from(each, node.id)

    def _remove(self, node: _Node) -> Iterator[Action]:
        yield from self._stop(node)
        del self.chain[node.id]
        for each in node.behind:
            self.chain[each].ahead.pop(node.id, None)
        for each in node.ahead:
            self.chain[each].behind.pop(node.id, None)

    def _stop(self, node: _Node) -> Iterator[Action]:
        if node.state is State.RUNNING:
            del self.node_of_run[node.run]
            yield CancelRun(node.run)

    def _reset_from(self, first: _Node, removed: int) -> Iterator[Action]:
        stack = [first]
        while stack:
            node = stack.pop()
            if node.id not in self.chain or removed not in node.base:
                continue
            yield from self._stop(node)
            node.state = State.WAITING
            node.base = ()
            stack.extend(self.chain[each] for each in node.behind)

    def _present(self, prs: Batch) -> Batch:
        return tuple(pr for pr in prs if pr.id not in self.gone)

    def _base_of(self, node: _Node) -> list[int]:
        if not self.config.use_targets:
            return list(node.ahead)
        seen = dict.fromkeys(node.ahead)
        stack = list(node.ahead) if self.config.full_suite else []
        while stack:
            for each in self.chain[stack.pop()].ahead:
                if each not in seen:
                    seen[each] = None
                    stack.append(each)
        return sorted(seen)

    # -- allocation ------------------------------------------------------------------------------

    @property
    def _free(self) -> int:
        return self.config.workers - len(self.node_of_run) - len(self.lane_runs)

    def _fill(self) -> Iterator[Action]:
        while self._free > 0 and self.lane and len(self.lane_runs) < self.lane_slots:
            yield from self._next_of_lane()
        if self._free > 0:
            yield from self._fill_chain()
        while self._free > 0 and self.lane:
            yield from self._next_of_lane()

    def _fill_chain(self) -> Iterator[Action]:
        is_chain = not self.config.use_targets
        ok = 1.0
        for node in list(self.chain.values()):
            if self._free <= 0:
                break
            is_again = node.state is State.FAILED and not node.ahead
            if node.state is State.WAITING or is_again:
                base = self._base_of(node)
                chance = ok if is_chain else math.prod(self.chain[each].p for each in base)
                if chance >= self.rules.floor:
                    yield self._start(node, base)
            ok *= node.p
        while self._free > 0 and self.waiting:
            if is_chain and ok < self.rules.floor:
                break
            new = self._next_node()
            if new is not None:
                yield self._start(new, self._base_of(new))
                ok *= new.p

    def _next_of_lane(self) -> Iterator[Action]:
        prs, fails = self.lane.popleft()
        prs = self._present(prs)
        if prs:
            self.next_run += 1
            self.lane_runs[self.next_run] = (prs, fails)
            yield StartRun(self.next_run, (), tuple(pr.id for pr in prs))

    def _next_batch(self) -> tuple[Batch, float, int]:
        """Those that go together now, their joint chance, and how often they failed."""
        want = min(self.rules.max_batch, -(-len(self.waiting) // self._free))
        prs: list[PrView] = []
        p, fails = 1.0, 0
        near = min(len(self.chain), 30)
        while self.waiting and len(prs) < want:
            pr, failed = self.waiting[0]
            if pr.id in self.gone:
                self.waiting.popleft()
                continue
            q = pr.p_ok * (1.0 - self.config.conflict_prior) ** near
            if prs and (p * q < self.rules.cap or failed != fails):
                break
            p *= q
            fails = failed
            prs.append(self.waiting.popleft()[0])
            if failed:
                break  # one under suspicion travels alone
        return tuple(prs), p, fails

    def _next_node(self) -> _Node | None:
        prs, p, fails = self._next_batch()
        if not prs:
            return None
        self.next_id += 1
        believed = min(max(p, BELIEF_MIN), BELIEF_MAX)
        node = _Node(self.next_id, prs, believed, fails, _targets_of(prs))
        for other in self.chain.values():
            if self._may_conflict(node, other):
                node.ahead[other.id] = None
                other.behind[node.id] = None
        self.chain[node.id] = node
        return node

    def _may_conflict(self, a: _Node, b: _Node) -> bool:
        if not self.config.use_targets or a.targets is None or b.targets is None:
            return True
        return not a.targets.isdisjoint(b.targets)

    def _start(self, node: _Node, base: list[int]) -> Action:
        self.next_run += 1
        node.run = self.next_run
        node.state = State.RUNNING
        node.base = tuple(base)
        self.node_of_run[node.run] = node.id
        below = tuple(pr.id for each in base for pr in self.chain[each].prs)
        return StartRun(node.run, below, tuple(pr.id for pr in node.prs))


def _targets_of(prs: Batch) -> frozenset[int] | None:
    found: set[int] = set()
    for pr in prs:
        if pr.targets is None:
            return None
        found |= pr.targets
    return frozenset(found)


def _cut(prs: Batch) -> tuple[Batch, Batch]:
    """Two parts of about the same risk."""
    weights = [-math.log(min(max(pr.p_ok, 0.01), 0.999)) for pr in prs]
    total, before = sum(weights), 0.0
    best, cut = math.inf, 1
    for place in range(1, len(weights)):
        before += weights[place - 1]
        if abs(2 * before - total) < best:
            best, cut = abs(2 * before - total), place
    return prs[:cut], prs[cut:]
