"""Where only broken pull requests are left, the breaker does not keep them for ever."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from service.mergequeue.engine import inputs, targets
from service.mergequeue.engine.config import BatchSizing, ConfirmFailures, Mode, QueueConfig
from service.mergequeue.engine.culprits.breaker import TRY_PERIOD
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind, RunStatus
from service.vocabulary import CheckOutcome, Sha
from tests.mergequeue.stage import Stage, a_check

STEP = timedelta(minutes=1)
TESTS_TAKE = timedelta(minutes=10)
WITHIN = timedelta(days=2)
RUNS_MAX = 20
"""Test runs of each pull request."""


class Failing:
    """A queue of which every test run fails the same check after a while."""

    def __init__(self, config: QueueConfig) -> None:
        self.stage = Stage(config)
        self.ends: dict[str, datetime] = {}

    def goes_on(self, until: datetime) -> None:
        """Let time pass and tests fail, at most until then, while anything is undecided."""
        stage = self.stage
        while stage.queue.entries and stage.now < until:
            for run in list(stage.queue.runs.values()):
                if run.status is RunStatus.IN_PROGRESS and run.sha is not None:
                    self._tests(run, run.sha)
            stage.passes(STEP)

    def _tests(self, run: Run, sha: Sha) -> None:
        ends = self.ends.setdefault(run.id, self.stage.now + TESTS_TAKE)
        outcome = CheckOutcome.FAILED if ends <= self.stage.now else CheckOutcome.RUNNING
        checks = (a_check("unit", outcome),)
        self.stage.tell(inputs.ChecksReported(run.id, sha, checks, complete=True))


@pytest.mark.parametrize("sizing", BatchSizing)
@pytest.mark.parametrize("mode", [Mode.SINGLE, Mode.PARALLEL])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_broken_pull_requests_that_are_left_alone_are_decided(
    count: int, mode: Mode, sizing: BatchSizing
) -> None:
    config = QueueConfig(mode=mode, batch_sizing=sizing, concurrency=30, bisection_concurrency=0)
    failing = Failing(replace(config, batch=True, confirm_failures=ConfirmFailures.ALWAYS))
    stage = failing.stage
    for pr in range(1, count + 1):
        stage.tell(stage.submit(pr, p_fail=0.01, targets=targets.of([str(pr)])))
    failing.goes_on(stage.now + WITHIN)
    assert not stage.queue.entries
    assert len(stage.runs) <= RUNS_MAX * count


OUTAGE = timedelta(hours=6)


@pytest.mark.parametrize(
    ("count", "concurrency", "in_period"),
    [(8, 30, 1), (70, 30, 3), (120, 40, 5), (120, 2, 2)],
)
def test_in_a_long_outage_few_are_tried_and_nobody_is_rejected(
    count: int, concurrency: int, in_period: int
) -> None:
    config = QueueConfig(mode=Mode.PARALLEL, batch_sizing=BatchSizing.ADAPTIVE)
    failing = Failing(replace(config, concurrency=concurrency, bisection_concurrency=0))
    stage = failing.stage
    for pr in range(1, count + 1):
        stage.tell(stage.submit(pr, p_fail=0.01, targets=targets.of([str(pr)])))
    failing.goes_on(stage.now + OUTAGE)
    tries = [run for run in stage.last.values() if run.kind is RunKind.TRY]
    begun = sorted(run.created_at for run in tries)
    assert max(_in_span(begun, at, TRY_PERIOD) for at in begun) == in_period
    assert len(stage.queue.entries) == count


def _in_span(instants: list[datetime], start: datetime, span: timedelta) -> int:
    return sum(start <= at < start + span for at in instants)
