"""Rates of a queue: smoothed, timed by check, and told only when they differ."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.explaining import rates
from service.mergequeue.engine.explaining.rates import Outcomes
from service.mergequeue.engine.reported import Rates
from service.vocabulary import CheckOutcome, RequiredName
from tests.mergequeue.script import Script
from tests.mergequeue.stage import START, Stage, a_check

MINUTE = timedelta(minutes=1)


def test_without_a_past_the_rates_are_those_assumed():
    assert rates.measured(Outcomes()) == Rates()


def test_rates_move_from_the_assumed_to_the_seen():
    few = rates.measured(Outcomes(passed=9, flaked=1, decided=10, interactions=1))
    many = rates.measured(Outcomes(passed=450, flaked=50, decided=1000, interactions=100))
    assert Rates().flake < few.flake < many.flake < 0.1
    assert Rates().conflict < few.conflict < many.conflict < 0.1


def test_a_past_without_flakes_never_says_that_there_are_none():
    assert rates.measured(Outcomes(passed=500)).flake == pytest.approx(2 / 600, abs=1e-4)


def test_a_check_is_timed_by_the_median_of_five_runs_or_more():
    minutes = {"unit": (10.0, 12.0, 11.0, 300.0, 11.5), "lint": (1.0, 1.0)}
    assert rates.measured(Outcomes(minutes=minutes)).minutes == {"unit": 11.5}


def test_a_check_ends_with_its_own_report_or_with_the_run():
    stage = Stage(QueueConfig())
    stage.tell(stage.submit(1))
    unit, lint = (a_check(name, CheckOutcome.PASSED, 1) for name in ("unit", "lint"))
    run = replace(
        next(iter(stage.queue.runs.values())),
        required=(RequiredName("unit"), RequiredName("lint")),
        checks=(replace(unit, completed_at=START + 5 * MINUTE), lint),
        built_at=START + MINUTE,
        finished_at=START + 9 * MINUTE,
    )
    assert rates.minutes_of([run, replace(run, built_at=None)]) == {"unit": [4.0], "lint": [8.0]}


def test_a_check_that_is_required_only_from_the_landing_on_is_not_timed():
    script = Script("queue SINGLE manual land")
    for line in ("submit 1", "+10m", "pass r1", "require unit lint", "land r1"):
        script.play(line)
    run = script.stage.run(1)
    assert [one.name for one in run.required] == ["unit", "lint"]
    assert rates.minutes_of([run]) == {"unit": [10.0]}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (Rates(0.021, 0.1, {"unit": 20.0}), False),
        (Rates(0.02, 0.1, {"unit": 23.0}), False),
        (Rates(0.03, 0.1, {"unit": 20.0}), True),
        (Rates(0.02, 0.07, {"unit": 20.0}), True),
        (Rates(0.02, 0.1, {"unit": 26.0}), True),
        (Rates(0.02, 0.1, {"unit": 20.0, "lint": 1.0}), True),
        (Rates(0.02, 0.1), True),
    ],
)
def test_rates_have_changed_only_by_more_than_a_fifth(now, expected):
    assert rates.have_changed(Rates(0.02, 0.1, {"unit": 20.0}), now) is expected
