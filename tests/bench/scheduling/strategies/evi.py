"""A feasibility proof for chains: one probability for each pull request, and all follows from it.

What a ledger of evidence adds to `proto_chain.py`. It is not the engine, and knows no targets:
where they may be trusted, `make_evi` gives the other proof.

- ledger: each failed run is a record of its members. The odds of a pull request to be bad are its
  prior odds, divided for each record by the chance that the run would have failed if it were good:
  1 - (1 - flake) x the product of (1 - q) of the other members when the run failed. A member that
  merges drops out of its records, which sharpens them; one that is rejected explains them;
- verdict: from a posterior of `convict` on, after a failure alone;
- lane: suspects and risky ones are tested in pools, filled while the chance to pass is high; while
  slots are scarce a member of a record waits for another that is under test;
- wait or out: a failed node stays in the chain while waiting costs less than starting anew what was
  built on it;
- apart: a new group holds at most half of any group that failed;
- budget: a risky one enters the chain directly while slots are idle and few failures are expected.
"""

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.bench.scheduling.interface import (
    NO_PROOF,
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
    Strategy,
    StrategyConfig,
)
from tests.bench.scheduling.strategies.chain import State
from tests.bench.scheduling.strategies.proto_graph import make_proto

Q_MAX, PRIOR_MAX = 0.9999, 0.98
FLAKE_MIN = 0.005
SETS_MAX = 4
"""Failed groups that are remembered of each."""


@dataclass(frozen=True)
class Rules:
    """The numbers of the proof.

    A risk above `gate` goes to the lane, unless it is at most `gate_max` and the failures expected
    in the line stay within `budget`. `kappa`: prior chance of a conflict. `cap`: least chance to
    pass of a group, `pool` of a pool of risky ones, `pool_suspects` of suspects. `wait_idle`,
    `wait_busy`: weight of waiting with idle slots and without. `spare`: share of the slots kept
    free of second looks, which begin at a posterior of `look`. `merged`, `passed_alone`: the
    priors that are left after these. One that passed in the lane `solo_after` times is alone in
    its group; a suspect above `late` comes last in the lane.
    """

    gate: float = 0.05
    gate_max: float = 0.5
    budget: float = 0.5
    kappa: float = 0.03
    convict: float = 0.98
    cap: float = 0.5
    max_batch: int = 16
    lane_share: float = 0.5
    pool: float = 0.6
    pool_suspects: float = 0.5
    wait_idle: float = 1.5
    wait_busy: float = 4.0
    leaves_at: float = 0.3
    spare: float = 0.25
    look: float = 0.3
    merged: float = 0.005
    passed_alone: float = 0.01
    solo_after: int = 3
    late: float = 0.6


@dataclass(slots=True, eq=False)
class _Record:
    """A failed run: the sum of log(1 - q) of its suspects, and the lane runs that hold any."""

    suspicion: float = 0.0
    is_explained: bool = False
    under_test: int = 0


@dataclass(slots=True, eq=False)
class _Pr:
    """A pull request and what is known of it; each record comes with its own share of it."""

    view: PrView
    prior: float
    records: list[tuple[_Record, float]] = field(default_factory=list)
    failures_alone: int = 0
    passes: int = 0
    in_lane: bool = False
    runs: set[int] = field(default_factory=set)
    last_failure: int = NO_PROOF
    keeps_turn: bool = False
    failed_groups: list[frozenset[int]] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.view.id

    @property
    def risk(self) -> float:
        return 1.0 - self.view.p_ok


@dataclass(slots=True, eq=False)
class _Node:
    """A group in the chain, tested on the nodes before it."""

    id: int
    prs: list[_Pr]
    run: int
    base: tuple[int, ...]
    begun: float
    ends: float
    state: State = State.RUNNING


@dataclass(frozen=True, slots=True)
class _LaneRun:
    prs: tuple[_Pr, ...]
    merges_before: int
    records: tuple[_Record, ...]


class Evidence:
    """The posterior of each pull request, from the runs that failed with it."""

    def __init__(self, flake: float) -> None:
        self.flake = max(flake, FLAKE_MIN)

    def q(self, pr: _Pr) -> float:
        """The chance that it is bad."""
        odds = pr.prior / (1.0 - pr.prior)
        for record, share in pr.records:
            if not record.is_explained:
                others = math.exp(min(0.0, record.suspicion - share))
                odds /= max(1.0 - (1.0 - self.flake) * others, self.flake)
        return min(Q_MAX, odds / (1.0 + odds))

    def failed(self, members: Iterable[_Pr]) -> None:
        """A run of these has failed."""
        record = _Record()
        for pr in members:
            share = math.log1p(-min(PRIOR_MAX, self.q(pr)))
            record.suspicion += share
            pr.records.append((record, share))

    def after_failing_alone(self, pr: _Pr) -> float:
        """The chance that it is bad if it fails alone once more."""
        q = self.q(pr)
        odds = q / (1.0 - q) / self.flake
        return odds / (1.0 + odds)

    @staticmethod
    def clear(pr: _Pr, prior: float) -> None:
        """It is good: its records charge the others alone."""
        for record, share in pr.records:
            record.suspicion = min(0.0, record.suspicion - share)
        pr.records = []
        pr.prior = prior


class Evi:
    """The chain, and a lane in which suspects and risky ones are tested on main."""

    name = "evi"

    def __init__(self, config: StrategyConfig, rules: Rules | None = None) -> None:
        self.config = config
        self.rules = rules = rules or Rules()
        self.evidence = Evidence(config.flake_prior)
        self.lane_slots = max(1, int(config.workers * rules.lane_share))
        self.prs: dict[int, _Pr] = {}
        self.waiting: list[_Pr] = []
        self.chain: dict[int, _Node] = {}
        self.node_of_run: dict[int, int] = {}
        self.lane: list[_Pr] = []
        self.lane_runs: dict[int, _LaneRun] = {}
        self.next_node = 0
        self.next_run = 0
        self.merges = 0
        self.now = 0.0
        self.out: list[Action] = []

    def answer(self, event: Event) -> list[Action]:
        self.now, self.out = event.t, []
        if isinstance(event, Clock):
            return self.out
        if isinstance(event, PrSubmitted):
            self._admit(event.pr)
        elif isinstance(event, RunFinished) and event.run in self.lane_runs:
            self._lane_finished(event)
        elif isinstance(event, RunFinished):
            self._chain_finished(event)
        elif isinstance(event, PrCancelled):
            self._withdrawn(self.prs[event.pr])
        if not isinstance(event, PrSubmitted):
            self._review()
        self._fill()
        return self.out

    # -- events ----------------------------------------------------------------------------------

    def _admit(self, view: PrView) -> None:
        rules = self.rules
        prior = min(PRIOR_MAX, 1.0 - view.p_ok * (1.0 - rules.kappa))
        pr = self.prs[view.id] = _Pr(view, prior)
        is_risky = pr.risk > rules.gate
        if is_risky and not (pr.risk <= rules.gate_max and self._has_budget(pr)):
            self._to_lane(pr)
        else:
            self._wait(pr)

    def _has_budget(self, pr: _Pr) -> bool:
        """Slots are idle, and with it few failures are expected in the line."""
        line = [each for node in self.chain.values() for each in node.prs]
        expected = sum(map(self.evidence.q, [*line, *self.waiting]))
        return self._is_idle() and expected + pr.prior <= self.rules.budget

    def _is_idle(self) -> bool:
        """Nobody waits for the chain, and some slots are free."""
        busy = len(self.node_of_run) + len(self.lane_runs)
        return not self.waiting and busy <= (1 - self.rules.spare) * self.config.workers

    def _lane_finished(self, event: RunFinished) -> None:
        run = self.lane_runs.pop(event.run)
        for record in run.records:
            record.under_test -= 1
        for pr in run.prs:
            pr.runs.discard(event.run)
        prs = [pr for pr in run.prs if pr.in_lane]
        if not prs:
            return
        if not event.passed:
            for pr in prs:
                pr.last_failure = event.run
                pr.failures_alone += len(prs) == 1
            self.evidence.failed(prs)
        elif not self.chain and self.merges == run.merges_before:
            self._merge(prs, event.run)
        else:
            for pr in prs:
                self._leave_lane(pr)
                self.evidence.clear(pr, self.rules.passed_alone)
                pr.passes += 1
                self._wait(pr)

    def _chain_finished(self, event: RunFinished) -> None:
        node = self.chain[self.node_of_run.pop(event.run)]
        node.state = State.FAILED
        base = [self.chain[ahead] for ahead in node.base if ahead in self.chain]
        if event.passed:
            for each in (*base, node):
                self._remove(each)
            self._merge([pr for each in (*base, node) for pr in each.prs], event.run)
            return
        group = frozenset(pr.id for pr in node.prs)
        for pr in node.prs:
            pr.last_failure = event.run
            if len(group) > 1:
                others = [failed for failed in pr.failed_groups if not group <= failed]
                pr.failed_groups = [*others[1 - SETS_MAX :], group]
        self.evidence.failed([*(pr for each in base for pr in each.prs), *node.prs])

    def _withdrawn(self, pr: _Pr) -> None:
        if pr.in_lane:
            self._leave_lane(pr)
        elif pr in self.waiting:
            self.waiting.remove(pr)
        else:
            node = next(each for each in self.chain.values() if pr in each.prs)
            self._take_out(node)
            for other in node.prs:
                if other is not pr:
                    self._wait(other)

    # -- where they are --------------------------------------------------------------------------

    def _wait(self, pr: _Pr) -> None:
        insort(self.waiting, pr, key=lambda each: each.id)

    def _to_lane(self, pr: _Pr) -> None:
        pr.in_lane = True
        self.lane.append(pr)

    def _leave_lane(self, pr: _Pr) -> None:
        """Its own runs are cancelled, those of pools go on."""
        pr.in_lane = False
        self.lane.remove(pr)
        for run in list(pr.runs):
            if len(self.lane_runs[run].prs) == 1:
                for record in self.lane_runs.pop(run).records:
                    record.under_test -= 1
                self.out.append(CancelRun(run))
        pr.runs.clear()

    def _merge(self, prs: Sequence[_Pr], run: int) -> None:
        self.out.append(Merge(tuple(pr.id for pr in prs), run))
        self.merges += 1
        for pr in prs:
            if pr.in_lane:
                self._leave_lane(pr)
            self.evidence.clear(pr, self.rules.merged)

    def _reject(self, pr: _Pr) -> None:
        self._leave_lane(pr)
        for record, _ in pr.records:
            record.is_explained = True
        self.out.append(Eject(pr.id, pr.last_failure))

    def _remove(self, node: _Node) -> None:
        if node.state is State.RUNNING:
            del self.node_of_run[node.run]
            self.out.append(CancelRun(node.run))
        del self.chain[node.id]

    def _take_out(self, node: _Node) -> None:
        """What was built on it waits again, to be grouped anew."""
        self._remove(node)
        for other in list(self.chain.values()):
            if node.id in other.base:
                self._remove(other)
                for pr in other.prs:
                    pr.keeps_turn = True
                    self._wait(pr)

    # -- deciding --------------------------------------------------------------------------------

    def _review(self) -> None:
        """Failed nodes that have to go, verdicts, and suspects that are cleared; to the end."""
        is_changed = True
        while is_changed:
            is_out = self._take_one_out()
            is_changed = self._judge_lane() or is_out

    def _take_one_out(self) -> bool:
        failed = (node for node in self.chain.values() if node.state is State.FAILED)
        node = next((node for node in failed if self._is_out(node)), None)
        if node is None:
            return False
        self._take_out(node)
        for pr in node.prs:
            pr.keeps_turn = False
            self._to_lane(pr)
        return True

    def _is_out(self, node: _Node) -> bool:
        """Whether waiting for what tells more costs more than starting the followers anew."""
        rules = self.rules
        bad = 1.0 - math.prod(1.0 - self.evidence.q(pr) for pr in node.prs)
        chain = self.chain.values()
        behind = [each for each in chain if each.state is State.RUNNING and node.id in each.base]
        ahead = [each for each in chain if each.state is State.RUNNING and each.id in node.base]
        if not behind:
            return not ahead or bad >= rules.leaves_at
        soonest = min(
            max(each.ends - self.now, 0.1 * (each.ends - each.begun)) for each in behind + ahead
        )
        elapsed = sum(self.now - each.begun for each in behind) / len(behind)
        weight = rules.wait_idle if self._is_idle() else rules.wait_busy
        return bad * soonest * weight >= (1.0 - bad) * elapsed

    def _judge_lane(self) -> bool:
        """Whether any was rejected or cleared."""
        rules, found = self.rules, False
        for pr in list(self.lane):
            is_risky = pr.risk > rules.gate and not pr.passes
            if is_risky and not pr.records:
                continue
            q = self.evidence.q(pr)
            if q >= rules.convict and pr.failures_alone:
                self._reject(pr)
                found = True
            elif q <= rules.gate + rules.kappa and not pr.runs and not is_risky:
                self._leave_lane(pr)
                self._wait(pr)
                found = True
        return found

    # -- starting --------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Use free slots: restarts, the lane's share, the chain, the lane, second looks."""
        free = self.config.workers - len(self.node_of_run) - len(self.lane_runs)
        while free > 0 and self.waiting and self.waiting[0].keeps_turn:
            self._start_group(self._next_group(free))
            free -= 1
        free -= self._start_pools(min(free, self.lane_slots - len(self.lane_runs)))
        while free > 0 and self.waiting:
            self._start_group(self._next_group(free))
            free -= 1
        free -= self._start_pools(free)
        self._look_twice(free - int(self.rules.spare * self.config.workers))

    def _next_group(self, free: int) -> list[_Pr]:
        """Those first in turn: as many as the load asks for, while they probably pass."""
        rules = self.rules
        wanted = min(rules.max_batch, math.ceil(len(self.waiting) / free))
        group = [self.waiting.pop(0)]
        chance = 1.0 - self.evidence.q(group[0])
        while self.waiting and len(group) < wanted and group[0].passes < rules.solo_after:
            pr = self.waiting[0]
            chance *= 1.0 - self.evidence.q(pr)
            if pr.passes >= rules.solo_after or chance < rules.cap or _met_before(pr, group):
                break
            group.append(self.waiting.pop(0))
        return group

    def _start_group(self, prs: list[_Pr]) -> None:
        self.next_node += 1
        run = self._start(prs, [pr for node in self.chain.values() for pr in node.prs])
        ends = self.now + max(pr.view.d_hat for pr in prs)
        node = _Node(self.next_node, prs, run, tuple(self.chain), self.now, ends)
        self.chain[node.id] = node
        self.node_of_run[run] = node.id

    def _start(self, prs: Sequence[_Pr], base: Sequence[_Pr] = ()) -> int:
        self.next_run += 1
        below, tested = tuple(pr.id for pr in base), tuple(pr.id for pr in prs)
        self.out.append(StartRun(self.next_run, below, tested))
        return self.next_run

    def _start_pools(self, slots: int) -> int:
        """Test those in the lane in at most so many slots; how many were used."""
        idle = sorted((pr for pr in self.lane if not pr.runs), key=self._turn)
        free = slots
        while free > 0 and idle:
            wanted = min(self.rules.max_batch, math.ceil(len(idle) / free))
            first = idle.pop(0)
            if len(idle) >= free and _is_under_test(first):
                continue
            pool = self._pool(first, idle, wanted)
            idle = [pr for pr in idle if pr not in pool]
            self._start_in_lane(pool)
            free -= 1
        return max(slots, 0) - max(free, 0)

    def _turn(self, pr: _Pr) -> tuple[bool, bool, int]:
        return self.evidence.q(pr) > self.rules.late, not pr.records, pr.id

    def _pool(self, first: _Pr, idle: Sequence[_Pr], wanted: int) -> tuple[_Pr, ...]:
        least = self.rules.pool_suspects if first.records else self.rules.pool
        pool, chance = [first], 1.0 - self.evidence.q(first)
        for pr in idle:
            together = chance * (1.0 - self.evidence.q(pr))
            if len(pool) < wanted and together >= least and not _is_under_test(pr):
                pool.append(pr)
                chance = together
        return tuple(pool)

    def _start_in_lane(self, prs: tuple[_Pr, ...]) -> None:
        records = tuple(record for pr in prs for record, _ in pr.records)
        for record in records:
            record.under_test += 1
        run = self._start(prs)
        self.lane_runs[run] = _LaneRun(prs, self.merges, records)
        for pr in prs:
            pr.runs.add(run)

    def _look_twice(self, slots: int) -> None:
        """Test again, at the same time, those whose first failure alone would not decide."""
        for pr in [pr for pr in self.lane if len(pr.runs) == 1]:
            q = self.evidence.q(pr)
            is_open = self.evidence.after_failing_alone(pr) < self.rules.convict
            if slots > 0 and q >= self.rules.look and is_open:
                self._start_in_lane((pr,))
                slots -= 1


def make_evi(config: StrategyConfig) -> Strategy:
    """The evidence chain, or `proto` where targets may be trusted."""
    return make_proto(config) if config.use_targets else Evi(config)


def _met_before(pr: _Pr, group: Sequence[_Pr]) -> bool:
    """Whether with it the group would hold more than half of a group that failed."""
    return any(
        1 + sum(other.id in failed for other in group) > max(1, len(failed) // 2)
        for failed in pr.failed_groups
    )


def _is_under_test(pr: _Pr) -> bool:
    """Whether a lane run holds a suspect of one of its records."""
    return any(record.under_test and not record.is_explained for record, _ in pr.records)
