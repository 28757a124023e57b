"""The jobs of a check suite after which a required check failed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine.culprits import suites, verdict
from service.mergequeue.engine.reported import JOBS_MAX, FailedBefore
from service.vocabulary import Check, CheckKind, CheckOutcome, RequiredName
from tests.mergequeue.stage import START, a_check
from tests.mergequeue.test_verdict import a_run

FAILED = CheckOutcome.FAILED
LINT = FailedBefore((("lint", "https://ci.example/2"),))


def ran(name: str, number: int, begins: float, ends: float, **more: object) -> Check:
    """A failed job that ran from one minute to another."""
    times = {
        "started_at": START + timedelta(minutes=begins),
        "completed_at": START + timedelta(minutes=ends),
    }
    return replace(a_check(name, FAILED, number), **times, **more)  # type: ignore[arg-type]


GATE = ran("gate", 1, 5, 6)
JOB = ran("lint", 2, 0, 5)


def test_a_required_check_that_failed_after_others_names_them() -> None:
    run = a_run(GATE, JOB, required=(RequiredName("gate"), RequiredName("lint")))
    gate, lint = verdict.failed_of(run)
    assert (gate.after, lint.after) == (LINT, None)


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, outcome=CheckOutcome.PASSED),
        replace(JOB, outcome=CheckOutcome.INTERRUPTED),
        replace(JOB, raw="skipped"),
        replace(JOB, group="g2"),
        replace(JOB, source_id="8"),
        replace(JOB, kind=CheckKind.STATUS),
        replace(JOB, completed_at=START + timedelta(minutes=5, seconds=1)),
        replace(JOB, completed_at=None),
    ],
    ids=["passed", "stopped", "skipped", "suite", "app", "status", "later", "time"],
)
def test_a_job_that_it_cannot_have_looked_at_is_not_named(other: Check) -> None:
    assert suites.failed_before(GATE, (GATE, other)) is None


def test_a_job_of_an_earlier_attempt_is_not_named() -> None:
    run = replace(a_run(GATE, JOB, required=(RequiredName("gate"),)), rerun_ids=(JOB.id,))
    (gate,) = verdict.failed_of(run)
    assert gate.after is None
    again = ran("lint", 3, 0, 4, attempt=4)
    (gate,) = verdict.failed_of(replace(run, checks=(GATE, JOB, again)))
    assert gate.after == FailedBefore((("lint", again.url),))


def test_a_check_that_was_skipped_or_that_began_at_an_unknown_time_names_none() -> None:
    for gate in (replace(GATE, raw="skipped"), replace(GATE, started_at=None)):
        assert suites.failed_before(gate, (gate, JOB)) is None


def test_of_many_jobs_the_first_that_failed_are_named_and_the_rest_is_counted() -> None:
    jobs = [ran(f"unit ({nth})", 100 + nth, 0, 5 - nth / 10) for nth in range(JOBS_MAX + 3)]
    found = suites.failed_before(GATE, (GATE, *jobs))
    assert found is not None
    assert found.more == 3
    assert found.jobs[0][0] == f"unit ({JOBS_MAX + 2})"
