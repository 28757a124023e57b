"""The feasibility proof on the speculation graph, for repositories with impacted targets.

Best-first speculation, plus: a risk gate, blame only with a good base, suspects leave the graph
at once and get a second look alone.
"""

from collections import deque
from collections.abc import Iterator

from tests.bench.scheduling.interface import (
    Action,
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
from tests.bench.scheduling.strategies.proto_chain import P_AFTER_PASS_ALONE, ProtoChain
from tests.bench.scheduling.strategies.speculation import Head, Rules, Speculation

GATE = 0.95
"""Who passes with less chance is tested alone first."""

BLAME = 0.6
"""Chance of a good base from which a failure is charged to the one tested."""

MAX_FAILS = 2


def make_proto(config: StrategyConfig) -> Strategy:
    """The form that fits: a graph needs targets, a chain does not."""
    return ProtoGraph(config) if config.use_targets else ProtoChain(config)


class ProtoGraph(Speculation):
    """The speculation graph, and a lane in which pull requests are tested alone on main."""

    def __init__(self, config: StrategyConfig) -> None:
        super().__init__(config, Rules(name="proto", floor=0.02, abort=0.02, depth=64))
        self.fails: dict[int, int] = {}
        self.views: dict[int, PrView] = {}
        self.lane: deque[int] = deque()
        self.lane_runs: dict[int, int] = {}
        self.gone: set[int] = set()

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, Clock):
            return out
        if isinstance(event, PrSubmitted):
            self._submitted(event.pr)
        elif isinstance(event, RunFinished):
            if event.run in self.lane_runs:
                out += self._lane_finished(event)
            else:
                self._finished(event, out)
        else:
            self._cancelled(event, out)
        self._activate()
        out += self.aborts
        self.aborts = []
        out += self._fill_lane()
        out += self._fund()
        return out

    def _submitted(self, pr: PrView) -> None:
        self.views[pr.id] = pr
        self.fails[pr.id] = 0
        if pr.p_ok < GATE:
            self.lane.append(pr.id)
        else:
            self.waiting.append(pr)

    def _cancelled(self, event: PrCancelled, out: list[Action]) -> None:
        self.gone.add(event.pr)
        super()._cancelled(event, out)

    def _fill_lane(self) -> Iterator[Action]:
        while self.lane and self.in_flight < self.config.workers:
            pr = self.lane.popleft()
            if pr not in self.gone:
                self.next_run += 1
                self.lane_runs[self.next_run] = pr
                self.in_flight += 1
                yield StartRun(self.next_run, (), (pr,))

    def _lane_finished(self, event: RunFinished) -> Iterator[Action]:
        pr = self.lane_runs.pop(event.run)
        self.in_flight -= 1
        if pr in self.gone:
            return
        if event.passed:
            view = self.views[pr]
            known = view._replace(p_ok=max(view.p_ok, P_AFTER_PASS_ALONE))
            self.views[pr] = known
            self.waiting.append(known)
            return
        self.fails[pr] += 1
        if self.fails[pr] >= MAX_FAILS:
            yield Eject(pr, event.run)
        else:
            self.lane.appendleft(pr)

    def _finished(self, event: RunFinished, out: list[Action]) -> None:
        pr, path = self.of_run[event.run]
        head = self.heads[pr]
        if event.passed or self._chance_of_base(head, path) < BLAME:
            super()._finished(event, out)
            return
        del self.of_run[event.run]
        del head.runs[path]
        self.in_flight -= 1
        self._suspect(head, event.run, out, is_exact=not head.open)

    def _suspect(self, head: Head, run: int, out: list[Action], *, is_exact: bool) -> None:
        """It leaves the graph at once."""
        pr = head.pr.id
        for ready in self._settle(pr, merged=False, out=out):
            self._decide(ready, out)
        self.fails[pr] += 1
        if is_exact and self.fails[pr] >= MAX_FAILS:
            out.append(Eject(pr, run))
        else:
            self.fails[pr] = min(self.fails[pr], MAX_FAILS - 1)
            self.lane.append(pr)

    def _act(self, head: Head, known: tuple[bool, int], out: list[Action]) -> list[int]:
        passed, run = known
        if not passed:
            self._suspect(head, run, out, is_exact=True)
            return []
        out.append(Merge((head.pr.id,), run))
        return self._settle(head.pr.id, merged=True, out=out)
