"""A queue with broken pull requests and outages of CI, to measure when the breaker holds it."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.mergequeue.engine import inputs, targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import EntryMoved, HoldPlaced, Recorded
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import EntryState, RunStatus
from service.vocabulary import CheckOutcome
from tests.mergequeue.stage import START, Stage, a_check

TESTS_TAKE = timedelta(minutes=10)
REST = timedelta(hours=8)
"""Time after the last submission, for what is undecided."""


NEVER = START + timedelta(days=365)


@dataclass(frozen=True)
class Plan:
    """What happens in a history: the broken ones among so many, and when CI fails everything."""

    config: QueueConfig
    pull_requests: int = 12
    broken: int = 0
    every: timedelta = timedelta(minutes=5)
    flake_rate: float = 0.0
    outage: tuple[timedelta, timedelta] | None = None
    p_fail: float | None = None


class Queue:
    """One history by its seed."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.chance = random.Random(seed)
        self.stage = Stage(plan.config)
        numbers = list(range(1, plan.pull_requests + 1))
        self.broken = frozenset(self.chance.sample(numbers, plan.broken))
        self.due = {
            number: START + plan.every * place * self.chance.uniform(0.8, 1.2)
            for place, number in enumerate(numbers)
        }
        self.ends: dict[str, tuple[datetime, bool]] = {}
        self.held_at: list[datetime] = []
        self.rejected: set[int] = set()
        self.merged: dict[int, datetime] = {}

    def play(self) -> "Queue":
        """Let it happen to its end."""
        stage = self.stage
        last = max(self.due.values()) + REST
        while stage.now < last and (self.due or stage.queue.entries):
            at = min([*self.due.values(), *(end for end, _ in self.ends.values()), last])
            if stage.wake_at is not None:
                at = min(at, max(stage.wake_at, stage.now + timedelta(seconds=1)))
            self._note(stage.passes(max(at - stage.now, timedelta())).events)
            for number in [one for one, due in self.due.items() if due <= stage.now]:
                self.due.pop(number)
                own = targets.of([str(number)]) if self._is_parallel else None
                told = stage.submit(number, p_fail=self.plan.p_fail, targets=own)
                self._note(stage.tell(told).events)
            self._test()
        return self

    @property
    def _is_parallel(self) -> bool:
        return self.plan.config.mode is Mode.PARALLEL

    def _test(self) -> None:
        """Report what has ended, and begin to test what has been built."""
        stage = self.stage
        self._begin()
        for run_id, (end, passes) in list(self.ends.items()):
            live = stage.queue.runs.get(run_id)
            if live is None or live.sha is None:
                del self.ends[run_id]
            elif end <= stage.now:
                self.ends[run_id] = NEVER, passes
                outcome = CheckOutcome.PASSED if passes else CheckOutcome.FAILED
                checks = (a_check("unit", outcome),)
                report = inputs.ChecksReported(run_id, live.sha, checks, complete=True)
                self._note(stage.tell(report).events)
        self._begin()

    def _begin(self) -> None:
        for run in self.stage.queue.runs.values():
            is_under_way = run.status is RunStatus.IN_PROGRESS and run.sha is not None
            if is_under_way and run.id not in self.ends:
                self.ends[run.id] = self.stage.now + TESTS_TAKE, self._passes(run)

    def _passes(self, run: Run) -> bool:
        now = self.stage.now - START
        is_out = self.plan.outage is not None and self.plan.outage[0] <= now < self.plan.outage[1]
        is_broken = self.broken & {*run.prs, *run.base_prs}
        return not (is_out or is_broken or self.chance.random() < self.plan.flake_rate)

    def _note(self, events: tuple[Recorded, ...]) -> None:
        for recorded in events:
            event = recorded.event
            if isinstance(event, HoldPlaced) and event.reason is HoldReason.REPEATED_FAILURE:
                self.held_at.append(recorded.at)
            if isinstance(event, EntryMoved) and event.state is EntryState.FAILED:
                self.rejected.add(event.pr)
            if isinstance(event, EntryMoved) and event.state is EntryState.MERGED:
                self.merged[event.pr] = recorded.at
