"""Which rules hold by what was observed, and what the end of a check teaches."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.mergequeue import early_rules
from service.mergequeue.early_rules import Ending, Observation, PartKind, Rule
from service.mergequeue.operations import early_lessons
from service.provider.ci import CiJob, CiProgress, FailedStep
from service.provider.ci_plans import CiPlan, PlannedJob
from service.vocabulary import CheckOutcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULE = Rule("ci.yml", "v1", "gate", "unit", PartKind.JOB)
HELD, REFUTED, UNKNOWN = Ending.HELD, Ending.REFUTED, Ending.UNKNOWN


def seen(*endings: Ending | None, days: float = 1.0) -> list[Observation]:
    """Observations of different runs, one an hour, the last some days ago."""
    last = NOW - timedelta(days=days)
    return [
        Observation(RULE, f"r{days}-{place}", last - timedelta(hours=back), ending, True, 60)
        for place, (back, ending) in enumerate(
            zip(reversed(range(len(endings))), endings, strict=True)
        )
    ]


def holds(observations: list[Observation]) -> bool:
    return RULE in early_rules.holding(observations, NOW)


@pytest.mark.parametrize(
    ("endings", "expected"),
    [
        ([], False),
        ([HELD], False),
        ([HELD, HELD], True),
        ([HELD, HELD, REFUTED], False),
        ([REFUTED, HELD, HELD], False),
        ([REFUTED, HELD, HELD, HELD], False),
        ([REFUTED, HELD, HELD, HELD, HELD], True),
        ([HELD, UNKNOWN, HELD], True),
        ([HELD, None, UNKNOWN], False),
        ([REFUTED] * 5 + [HELD] * 15, False),
        ([REFUTED] * 5 + [HELD] * 16, True),
    ],
)
def test_a_rule_holds_by_two_confirmations_and_by_more_after_each_refutation(endings, expected):
    assert holds(seen(*endings)) is expected


def test_the_same_run_confirms_once():
    first = seen(HELD)[0]
    assert not holds([first, Observation(RULE, first.run, NOW, HELD)])


def test_confirmations_count_for_a_month():
    assert not holds([*seen(HELD, days=30), *seen(HELD)])
    assert holds([*seen(HELD, days=29.9), *seen(HELD)])


def test_a_refutation_counts_for_ninety_days():
    assert not holds([*seen(REFUTED, days=89.9), *seen(HELD, HELD)])
    assert holds([*seen(REFUTED, days=90), *seen(HELD, HELD)])


def test_a_rule_that_foresees_is_confirmed_anew_after_twenty_uses():
    confirmed = seen(HELD, HELD, days=5)
    used = [None, UNKNOWN] * (early_rules.USES_MAX // 2)
    assert holds([*confirmed, *seen(*used[1:])])
    assert not holds([*confirmed, *seen(*used)])
    assert holds([*confirmed, *seen(*used), *seen(HELD, days=0.1)])
    not_told = [replace(one, is_foreseen=False) for one in seen(*used)]
    assert holds([*confirmed, *not_told])


def test_rules_of_other_versions_are_others():
    other = Rule("ci.yml", "v2", "gate", "unit", PartKind.JOB)
    mixed = [Observation(rule, f"r{rule.version}", NOW, HELD) for rule in (RULE, other)]
    assert not early_rules.holding(mixed, NOW)


def test_how_early_a_rule_foresees_is_the_median():
    rules = early_rules.holding(seen(HELD, HELD, HELD), NOW)
    assert rules == {RULE: 60.0}


PLAN = CiPlan(
    (
        PlannedJob("ci.yml", "unit", ("unit",), steps=frozenset({"T", "U"})),
        PlannedJob("ci.yml", "lint", ("lint",)),
        PlannedJob("ci.yml", "pack", ("pack",), frozenset({"unit"})),
        PlannedJob("ci.yml", "gate", ("gate",), frozenset({"unit", "lint", "pack"}), version="v1"),
    )
)


def job(name: str, outcome: CheckOutcome, *steps: str, after: int = 10) -> CiJob:
    at = NOW + timedelta(seconds=after)
    failures = tuple(FailedStep(step, at) for step in steps)
    return CiJob(name, name, "ci", "", outcome, len(steps), NOW, at, failures)


def lessons(*jobs: CiJob, required: str = "gate", has_passed: bool = False) -> set[str]:
    progress = CiProgress("1", "ci.yml", "g", jobs)
    found = early_lessons.lessons_of(PLAN, progress, required, required, has_passed=has_passed)
    return {f"{one.rule.job} {one.rule.step} {one.ending}".replace("  ", " ") for one in found}


FAILED, PASSED = CheckOutcome.FAILED, CheckOutcome.PASSED
GATE = job("gate", FAILED, after=100)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([job("unit", FAILED)], {"unit held"}),
        ([job("unit", FAILED, "T")], {"unit held", "unit T held"}),
        ([job("unit", FAILED, "T", "U")], {"unit held"}),
        ([job("unit", FAILED), job("lint", FAILED)], set()),
        ([job("unit", FAILED), job("pack", FAILED)], {"unit held"}),
        ([job("lint", FAILED), job("unit", PASSED)], {"lint held"}),
        ([job("odd", FAILED)], set()),
    ],
)
def test_a_failure_confirms_the_parts_of_the_only_job_that_failed_by_itself(jobs, expected):
    assert lessons(*jobs, GATE) == expected


def test_a_failure_confirms_the_only_failed_step_of_its_own_job():
    own = job("unit", FAILED, "T")
    assert lessons(own, required="unit") == {"unit T held"}
    assert lessons(job("unit", FAILED, "T", "U"), required="unit") == set()


def test_a_pass_refutes_every_part_that_had_failed():
    jobs = [job("unit", FAILED, "T"), job("lint", FAILED), job("gate", PASSED)]
    expected = {"unit refuted", "unit T refuted", "lint refuted"}
    assert lessons(*jobs, has_passed=True) == expected


def test_a_check_that_is_no_job_of_the_run_teaches_nothing():
    assert lessons(job("unit", FAILED)) == set()


def test_a_lesson_says_how_much_earlier_the_part_failed():
    progress = CiProgress("1", "ci.yml", "g", (job("unit", FAILED, "T", after=10), GATE))
    found = early_lessons.lessons_of(PLAN, progress, "gate", "gate", has_passed=False)
    assert {one.early_s for one in found} == {90}
