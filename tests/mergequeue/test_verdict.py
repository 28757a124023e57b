"""What reports mean, as values: which of them count, and the first cause that matches."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue import config, verdict
from service.mergequeue.model import Run
from service.mergequeue.reasons import Cause
from service.mergequeue.reported import Evidence
from service.mergequeue.verdict import Word
from service.vocabulary import Check, CheckKind, CheckOutcome, Explanation, RequiredName
from tests.mergequeue.stage import START, Stage, a_check

PASSED, FAILED, RUNNING = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.RUNNING
INTERRUPTED, BLOCKED, UNKNOWN = (
    CheckOutcome.INTERRUPTED,
    CheckOutcome.BLOCKED,
    CheckOutcome.UNKNOWN,
)


def a_run(*checks: Check, required: tuple[RequiredName, ...] = (RequiredName("unit"),)) -> Run:
    """A run in tests with these reports."""
    stage = Stage(config.QueueConfig())
    stage.tell(stage.submit(1))
    return replace(next(iter(stage.queue.runs.values())), checks=checks, required=required)


def word_of(run: Run, minutes: float = 0) -> Word:
    return verdict.verdict_of(run, START + timedelta(minutes=minutes), False).word


def a_status(outcome: CheckOutcome, number: int, source: str | None = None) -> Check:
    return replace(a_check("unit", outcome, number, source), kind=CheckKind.STATUS, group="")


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((PASSED, PASSED), PASSED),
        ((PASSED, RUNNING), RUNNING),
        ((RUNNING, FAILED), FAILED),
        ((UNKNOWN, RUNNING), RUNNING),
        ((UNKNOWN, BLOCKED), UNKNOWN),
        ((BLOCKED, INTERRUPTED), BLOCKED),
        ((INTERRUPTED, PASSED), INTERRUPTED),
    ],
)
def test_of_several_sources_the_worst_counts(
    outcomes: tuple[CheckOutcome, CheckOutcome], expected: CheckOutcome
) -> None:
    first, second = outcomes
    for one, two in ((first, second), (second, first)):
        run = a_run(a_check("unit", one, 1, "7"), a_check("unit", two, 2, "8"))
        assert verdict.standings_of(run)[0].outcome is expected


def test_a_later_report_of_the_same_suite_replaces_the_earlier_by_id_alone() -> None:
    old, new = a_check("unit", FAILED, 99), a_check("unit", PASSED, 100)
    assert word_of(a_run(old, new)) is Word.PASSED
    assert word_of(a_run(new, old)) is Word.PASSED


def test_a_check_and_a_status_of_one_name_must_both_pass() -> None:
    check = a_check("unit", PASSED, 5)
    assert word_of(a_run(check, a_status(RUNNING, 6))) is Word.WAITING
    assert word_of(a_run(check, a_status(RUNNING, 6), a_status(PASSED, 7))) is Word.PASSED


def test_a_pin_lets_only_that_app_speak() -> None:
    pinned = (RequiredName("unit", "9"),)
    foreign = a_check("unit", PASSED, 2, "13")
    assert word_of(a_run(foreign, required=pinned)) is Word.WAITING
    own = a_check("unit", PASSED, 1, "9")
    assert word_of(a_run(own, a_check("unit", FAILED, 3, "13"), required=pinned)) is Word.PASSED
    assert word_of(a_run(own, a_status(FAILED, 4), required=pinned)) is Word.PASSED


def test_names_compare_exactly() -> None:
    assert word_of(a_run(a_check("Unit", PASSED))) is Word.WAITING


def test_a_name_required_pinned_and_unpinned_is_required_twice() -> None:
    both = (RequiredName("unit"), RequiredName("unit", "9"))
    mine = a_check("unit", PASSED, 1, "9")
    assert word_of(a_run(mine, required=both)) is Word.PASSED
    assert word_of(a_run(a_check("unit", PASSED, 1, "7"), required=both)) is Word.WAITING


def test_nothing_required_passes() -> None:
    assert word_of(a_run(required=())) is Word.PASSED


@pytest.mark.parametrize("outcome", [RUNNING, BLOCKED, UNKNOWN])
def test_what_is_under_way_is_never_missing(outcome: CheckOutcome) -> None:
    run = a_run(a_check("other", outcome))
    assert word_of(run, minutes=60) is Word.WAITING
    assert word_of(replace(run, checks=()), minutes=60) is Word.FLAWED


def test_of_an_incomplete_read_nothing_is_called_missing() -> None:
    run = replace(a_run(), checks_complete=False)
    assert word_of(run, minutes=60) is Word.WAITING


def test_the_time_limit_blames_and_begins_anew_with_a_rerun() -> None:
    run = a_run(a_check("unit", RUNNING))
    one = verdict.verdict_of(run, START + timedelta(minutes=300), False)
    assert (one.word, one.cause) == (Word.FAILED, Cause.TIMEOUT)
    again = replace(run, rerun_at=START + timedelta(minutes=299))
    assert word_of(again, minutes=300) is Word.WAITING


@pytest.mark.parametrize(
    ("said", "word", "cause"),
    [
        ((Explanation.QUARANTINED,), Word.EXCUSED, None),
        ((Explanation.INFRA,), Word.FLAWED, Cause.INFRA),
        ((Explanation.FLAKY, Explanation.QUARANTINED), Word.FLAWED, Cause.KNOWN_FLAKY),
        ((Explanation.FLAKY, Explanation.INFRA), Word.FLAWED, Cause.KNOWN_FLAKY),
        ((Explanation.BASE_RED, Explanation.FLAKY), Word.BASE_RED, Cause.BASE_RED),
        ((Explanation.BASE_RED, Explanation.UNEXPLAINED), Word.FAILED, None),
        ((Explanation.QUARANTINED, Explanation.UNEXPLAINED), Word.FAILED, None),
    ],
)
def test_the_first_cause_that_matches(
    said: tuple[Explanation, ...], word: Word, cause: Cause | None
) -> None:
    names = [f"check {number}" for number in range(len(said))]
    run = a_run(
        *(a_check(name, FAILED, number) for number, name in enumerate(names, 1)),
        required=tuple(RequiredName(name) for name in names),
    )
    evidence = Evidence(1, dict(zip(names, said, strict=True)))
    run = replace(run, failed_at=START, evidence=evidence)
    one = verdict.verdict_of(run, START + timedelta(seconds=10), True)
    assert (one.word, one.cause) == (word, cause)


def test_a_revoked_pass_is_a_failure_that_no_evidence_explains() -> None:
    passing = a_check("unit", PASSED, 1, "7")
    evidence = Evidence(1, {"unit": Explanation.QUARANTINED})
    run = replace(a_run(passing), revoked=("1",), failed_at=START, evidence=evidence)
    assert word_of(run, minutes=1) is Word.FAILED
    assert verdict.revoked_of(run) == ("unit",)
    other = replace(run, checks=(passing, a_check("unit", FAILED, 2, "8")))
    assert word_of(other, minutes=1) is Word.FAILED


@pytest.mark.parametrize("later", [a_check("unit", PASSED, 2), a_check("unit", RUNNING, 1)])
def test_a_revoked_pass_says_nothing_of_another_report_or_of_one_under_way(later: Check) -> None:
    run = replace(a_run(later), revoked=("1",))
    assert verdict.standings_of(run)[0].outcome is later.outcome
    assert verdict.revoked_of(run) == ()


def test_one_failure_less_keeps_the_clock_of_the_others() -> None:
    both = (RequiredName("unit"), RequiredName("lint"))
    before = a_run(a_check("unit", FAILED, 1), a_check("lint", FAILED, 2), required=both)
    before = verdict.with_clocks(replace(before, checks=()), before, START)
    after = replace(before, checks=(a_check("unit", FAILED, 1), a_check("lint", PASSED, 3)))
    later = verdict.with_clocks(before, after, START + timedelta(seconds=9))
    assert later.failed_at == START


SKIPPED = CheckOutcome.SKIPPED
LINT = RequiredName("lint")
UNIT = RequiredName("unit")


def word_with(run: Run, *skippable: str, minutes: float = 1) -> Word:
    """What the run comes to when the heads skipped these names, after the reports settled."""
    known = replace(run, last_report_at=START)
    now = START + timedelta(minutes=minutes)
    return verdict.verdict_of(known, now, False, frozenset(skippable)).word


@pytest.mark.parametrize(
    ("outcomes", "skippable", "expected"),
    [
        ((PASSED, SKIPPED), ("lint",), Word.PASSED),
        ((PASSED, SKIPPED), (), Word.NO_EVIDENCE),
        ((SKIPPED, SKIPPED), ("unit", "lint"), Word.NO_EVIDENCE),
        ((FAILED, SKIPPED), (), Word.FAILED),
        ((RUNNING, SKIPPED), (), Word.WAITING),
        ((INTERRUPTED, SKIPPED), ("lint",), Word.FLAWED),
    ],
)
def test_a_skipped_check_counts_where_the_heads_skipped_it_and_another_ran(
    outcomes: tuple[CheckOutcome, CheckOutcome], skippable: tuple[str, ...], expected: Word
) -> None:
    checks = a_check("unit", outcomes[0], 1), a_check("lint", outcomes[1], 2)
    run = replace(a_run(*checks, required=(UNIT, LINT)), failed_at=START)
    assert word_with(run, *skippable) is expected


def test_a_name_that_ran_in_one_suite_and_was_skipped_in_another_has_run() -> None:
    ran, skipped = a_check("unit", PASSED, 1), a_check("unit", SKIPPED, 2, "8")
    assert word_with(a_run(ran, skipped)) is Word.PASSED


def a_suite(group: str, source: str = "7") -> Check:
    """An unfinished suite of an App."""
    bare = a_check("", RUNNING, 90, source)
    return replace(bare, kind=CheckKind.SUITE, group=group)


@pytest.mark.parametrize(
    ("more", "minutes", "expected"),
    [
        ((a_suite("g2"),), 1, Word.WAITING),
        ((a_suite("g2"),), 2, Word.PASSED),
        # Another App's, one that has the name already, and one of another workflow.
        ((a_suite("g2", "13"),), 1, Word.PASSED),
        ((a_suite("g1"),), 1, Word.PASSED),
        ((a_suite("g2"), replace(a_check("deploy", RUNNING, 2), group="g2")), 1, Word.PASSED),
        # The same workflow a second time: its first job runs.
        ((a_suite("g2"), replace(a_check("lint", RUNNING, 2), group="g2")), 14, Word.WAITING),
        ((a_suite("g2"), replace(a_check("lint", RUNNING, 2), group="g2")), 15, Word.PASSED),
    ],
)
def test_a_pass_waits_for_a_second_suite_that_may_report_the_name(
    more: tuple[Check, ...], minutes: float, expected: Word
) -> None:
    known = a_check("unit", PASSED, 1), a_check("lint", PASSED, 3)
    assert word_with(a_run(*known, *more), minutes=minutes) is expected


def test_an_open_suite_does_not_keep_a_missing_check_from_having_never_started() -> None:
    run = replace(a_run(a_suite("g2")), start_clock=START, last_report_at=START)
    assert word_of(run, 15) is Word.FLAWED
