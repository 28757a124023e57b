"""What reports mean, as values: which of them count, and the first cause that matches."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service import check_reports
from service.mergequeue.engine import config
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Verdict, Word
from service.mergequeue.engine.model import Entry, Named, Run
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import RunKind, RunPhase, RunStatus
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
    foreign, of_none = a_check("unit", PASSED, 2, "13"), a_check("unit", PASSED, 2, None)
    assert word_of(a_run(foreign, required=pinned)) is Word.WAITING
    assert word_of(a_run(of_none, required=pinned)) is Word.WAITING
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


@pytest.mark.parametrize("word", Word)
def test_only_a_passed_or_excused_run_is_green(word: Word) -> None:
    assert Verdict(word).is_green is (word in (Word.PASSED, Word.EXCUSED))


@pytest.mark.parametrize("made", [{"contained": True}, {"reused_from": "r0"}])
def test_a_run_without_tests_of_its_own_is_green_whatever_is_reported(
    made: dict[str, object],
) -> None:
    red = replace(a_run(a_check("unit", FAILED)), failed_at=START)
    assert word_of(red, minutes=1) is Word.FAILED
    assert word_of(replace(red, **made), minutes=1) is Word.PASSED  # type: ignore[arg-type]


def test_a_failure_seen_for_the_first_time_settles_from_now_on() -> None:
    run = a_run(a_check("unit", FAILED))
    assert run.failed_at is None
    now = START + timedelta(minutes=3)
    settled = now + verdict.SETTLE
    assert verdict.verdict_of(run, now, False) == Verdict(Word.WAITING, until=settled)
    known = replace(run, failed_at=now)
    assert verdict.verdict_of(known, settled, False).word is Word.FAILED


def test_a_failure_waits_for_test_results_if_the_repository_sends_them() -> None:
    run = replace(a_run(a_check("unit", FAILED)), failed_at=START)
    now = START + verdict.SETTLE
    assert verdict.verdict_of(run, now, False).word is Word.FAILED
    until = now + verdict.EVIDENCE_WAIT
    asking = Verdict(Word.WAITING, ask=("unit",), until=until)
    assert verdict.verdict_of(run, now, True) == asking
    asked = replace(run, asked_evidence=now)
    waiting = Verdict(Word.WAITING, until=until)
    assert verdict.verdict_of(asked, until - timedelta(seconds=1), True) == waiting
    assert verdict.verdict_of(asked, until, True).word is Word.FAILED


def test_evidence_on_one_failure_leaves_the_other_unexplained() -> None:
    both = (UNIT, LINT)
    run = a_run(a_check("unit", FAILED, 1), a_check("lint", FAILED, 2), required=both)
    evidence = Evidence(1, {"unit": Explanation.FLAKY})
    run = replace(run, failed_at=START, evidence=evidence)
    now = START + verdict.SETTLE
    assert verdict.verdict_of(run, now, True).ask == ("lint", "unit")
    over = replace(run, asked_evidence=now - verdict.EVIDENCE_WAIT)
    assert verdict.verdict_of(over, now, True).word is Word.FAILED


def test_a_revoked_pass_asks_for_no_evidence() -> None:
    run = replace(a_run(a_check("unit", PASSED)), revoked=("1",), failed_at=START)
    assert verdict.verdict_of(run, START + verdict.SETTLE, True).word is Word.FAILED


def test_a_workflow_that_could_not_start_is_a_flaw_of_the_infrastructure() -> None:
    broken = replace(a_check("unit", FAILED), raw=verdict.STARTUP_FAILURE)
    run = replace(a_run(broken), failed_at=START)
    one = verdict.verdict_of(run, START + verdict.SETTLE, False)
    assert (one.word, one.cause) == (Word.FLAWED, Cause.INFRA)


def test_without_the_knowledge_of_flaky_tests_a_flaky_failure_blames() -> None:
    settings = config.QueueConfig(flaky_knowledge_enabled=False)
    evidence = Evidence(1, {"unit": Explanation.FLAKY})
    run = replace(a_run(a_check("unit", FAILED)), failed_at=START, evidence=evidence)
    now = START + verdict.SETTLE
    assert verdict.verdict_of(run, now, True).cause is Cause.KNOWN_FLAKY
    assert verdict.verdict_of(replace(run, config=settings), now, True).word is Word.FAILED


def excused_beside(outcome: CheckOutcome, *skippable: str) -> Verdict:
    """The verdict on a run with one excused failure and another report, a minute later."""
    checks = a_check("unit", FAILED, 1), a_check("lint", outcome, 2)
    evidence = Evidence(1, {"unit": Explanation.QUARANTINED})
    run = replace(a_run(*checks, required=(UNIT, LINT)), failed_at=START, evidence=evidence)
    run = replace(run, last_report_at=START)
    return verdict.verdict_of(run, START + timedelta(minutes=1), True, frozenset(skippable))


@pytest.mark.parametrize(
    ("outcome", "skippable", "word"),
    [
        (PASSED, (), Word.EXCUSED),
        (RUNNING, (), Word.WAITING),
        (INTERRUPTED, (), Word.FLAWED),
        (SKIPPED, ("lint",), Word.EXCUSED),
        (SKIPPED, (), Word.NO_EVIDENCE),
    ],
)
def test_an_excused_failure_has_run_and_the_others_must_still_pass(
    outcome: CheckOutcome, skippable: tuple[str, ...], word: Word
) -> None:
    assert excused_beside(outcome, *skippable).word is word


def test_an_excused_pass_names_what_it_excuses() -> None:
    assert excused_beside(PASSED).excused == ("unit",)
    assert verdict.verdict_of(a_run(a_check("unit", PASSED)), START, True).excused == ()


def test_an_interrupted_check_is_no_flaw_while_another_runs() -> None:
    checks = a_check("unit", INTERRUPTED, 1), a_check("lint", RUNNING, 2)
    run = a_run(*checks, required=(UNIT, LINT))
    assert word_of(run) is Word.WAITING
    assert word_of(replace(run, checks=(checks[0], a_check("lint", PASSED, 3)))) is Word.FLAWED


@pytest.mark.parametrize(
    "state", [{"phase": RunPhase.BUILDING}, {"status": RunStatus.FAILED}], ids=["built", "failed"]
)
def test_no_clock_runs_while_a_branch_is_built_or_once_the_run_has_failed(
    state: dict[str, object],
) -> None:
    for checks in ((), (a_check("unit", RUNNING),)):
        run = a_run(*checks)
        late = START + timedelta(minutes=300)
        assert verdict.verdict_of(run, late, False).word is not Word.WAITING
        still = replace(run, **state)  # type: ignore[arg-type]
        assert verdict.verdict_of(still, late, False) == Verdict(Word.WAITING)


def test_a_check_that_never_started_is_named_with_no_page() -> None:
    run = a_run(a_check("other", PASSED))
    one = verdict.verdict_of(run, START + timedelta(minutes=15), False)
    assert (one.cause, one.failed) == (Cause.NEVER_STARTED, (Named("unit", ""),))


def test_a_failed_check_is_named_with_its_page() -> None:
    run = replace(a_run(a_check("unit", FAILED)), failed_at=START)
    one = verdict.verdict_of(run, START + verdict.SETTLE, False)
    assert one.failed == (Named("unit", "https://ci.example/1"),)


def test_the_wait_for_a_missing_check_begins_with_the_last_report_if_there_is_one() -> None:
    wait = timedelta(minutes=15)
    run = replace(a_run(), start_clock=None, last_report_at=None)
    later = START + timedelta(minutes=1)
    assert verdict.verdict_of(run, START, False).until == START + wait
    assert verdict.verdict_of(replace(run, start_clock=later), START, False).until == later + wait
    both = replace(run, start_clock=START, last_report_at=later)
    assert verdict.verdict_of(both, START, False).until == later + wait
    assert verdict.verdict_of(both, later + wait, False).cause is Cause.NEVER_STARTED


def test_the_time_limit_begins_with_the_built_branch() -> None:
    limit = timedelta(minutes=300)
    running = replace(a_run(a_check("unit", RUNNING)), built_at=START + timedelta(minutes=2))
    assert verdict.verdict_of(running, START, False).until == START + timedelta(minutes=2) + limit
    bare = replace(running, built_at=None)
    assert verdict.verdict_of(bare, START, False).until == START + limit
    assert verdict.verdict_of(bare, START + limit, False).cause is Cause.TIMEOUT


def test_a_missing_check_waits_at_most_until_the_time_limit() -> None:
    settings = config.QueueConfig(testing_timeout_minutes=5)
    run = replace(a_run(), config=settings)
    assert verdict.verdict_of(run, START, False).until == START + timedelta(minutes=5)


def test_a_skipped_check_settles_before_it_proves_nothing() -> None:
    run = a_run(a_check("unit", PASSED, 1), a_check("lint", SKIPPED, 2), required=(UNIT, LINT))
    settled = START + verdict.SETTLE
    fresh = replace(run, last_report_at=None)
    assert verdict.verdict_of(fresh, START, False) == Verdict(Word.WAITING, until=settled)
    known = replace(run, last_report_at=START)
    assert verdict.verdict_of(known, START, False).until == settled
    assert verdict.verdict_of(known, settled, False).word is Word.NO_EVIDENCE


@pytest.mark.parametrize(
    ("skippable", "named"), [(("lint",), ("unit",)), (("lint", "unit"), ("unit", "lint"))]
)
def test_no_evidence_names_the_checks_skipped_here_alone_or_all_if_none_ran(
    skippable: tuple[str, ...], named: tuple[str, ...]
) -> None:
    checks = a_check("unit", SKIPPED, 1), a_check("lint", SKIPPED, 2)
    run = replace(a_run(*checks, required=(UNIT, LINT)), last_report_at=START)
    now = START + timedelta(minutes=1)
    one = verdict.verdict_of(run, now, False, frozenset(skippable))
    assert (one.cause, tuple(each.name for each in one.failed)) == (Cause.NO_EVIDENCE, named)


def test_the_wait_for_an_open_suite_begins_with_the_last_report() -> None:
    run = replace(a_run(a_check("unit", PASSED), a_suite("g2")), last_report_at=None)
    wait = verdict.EMPTY_SUITE_WAIT
    assert verdict.verdict_of(run, START, False) == Verdict(Word.WAITING, until=START + wait)
    later = START + timedelta(minutes=1)
    known = replace(run, last_report_at=later)
    assert verdict.verdict_of(known, START, False).until == later + wait


def test_a_pin_awaits_second_suites_of_its_own_app_alone() -> None:
    pinned = (RequiredName("unit", "9"),)
    own, other = a_check("unit", PASSED, 1, "9"), a_check("unit", PASSED, 2, "13")
    mine, foreign = a_suite("g2", "9"), a_suite("g2", "13")
    assert verdict.late_suites((own, other, mine), pinned) == {("9", "g2"): frozenset()}
    assert verdict.late_suites((own, other, foreign), pinned) == {}
    assert set(verdict.late_suites((own, other, foreign), (UNIT,))) == {("13", "g2")}


def test_a_suite_is_no_report_of_a_name() -> None:
    named = replace(a_suite("g2"), name="unit")
    assert verdict.standing(UNIT, (named,)).outcome is None


def test_a_name_in_two_suites_of_one_app_must_pass_in_both() -> None:
    second = replace(a_check("unit", PASSED, 2), group="g2")
    assert word_of(a_run(a_check("unit", RUNNING, 1), second)) is Word.WAITING


def test_of_a_report_that_is_listed_twice_the_later_read_counts() -> None:
    running, passed = a_check("unit", RUNNING, 1), a_check("unit", PASSED, 1)
    assert check_reports.counting((running, passed)) == (passed,)


def test_a_report_of_an_earlier_attempt_counts_as_missing_whatever_other_suites_say() -> None:
    old = a_check("unit", FAILED, 1)
    elsewhere = replace(a_check("unit", PASSED, 2), group="g2")
    again = replace(a_run(old, elsewhere), rerun_ids=("1",))
    assert verdict.standings_of(again)[0].outcome is None
    done = replace(again, checks=(old, a_check("unit", PASSED, 3), elsewhere))
    assert verdict.standings_of(done)[0].outcome is PASSED


def test_a_revoked_pass_of_an_earlier_attempt_is_no_failure() -> None:
    run = replace(a_run(a_check("unit", PASSED, 1)), revoked=("1",), rerun_ids=("1",))
    assert verdict.standings_of(run)[0].outcome is None
    assert verdict.revoked_of(run) == ()


def test_what_failed_a_run_is_the_failed_checks_and_after_a_timeout_the_unfinished_too() -> None:
    names = ("unit", "lint", "docs")
    outcomes = (FAILED, RUNNING, PASSED)
    checks = (a_check(*each) for each in zip(names, outcomes, (1, 2, 3), strict=True))
    run = a_run(*checks, required=tuple(map(RequiredName, names)))
    assert [each.name for each in verdict.failed_of(run)] == ["unit"]
    late = replace(run, cause=Cause.TIMEOUT)
    assert [each.name for each in verdict.failed_of(late)] == ["unit", "lint"]


def test_the_skipped_names_of_a_run_are_those_with_skipped_reports_only() -> None:
    ran_once = a_check("docs", PASSED, 3), a_check("docs", SKIPPED, 4, "8")
    checks = a_check("unit", PASSED, 1), a_check("lint", SKIPPED, 2), *ran_once
    run = a_run(*checks, required=(UNIT, LINT, RequiredName("docs")))
    assert verdict.skipped_of(run) == {"lint"}


@pytest.mark.parametrize(
    ("checks", "required", "expected"),
    [
        ((), (), True),
        ((), (UNIT,), False),
        ((a_check("unit", PASSED),), (UNIT,), True),
        ((a_check("unit", RUNNING),), (UNIT,), False),
        ((a_check("unit", FAILED),), (UNIT,), False),
        ((a_check("unit", SKIPPED),), (UNIT,), False),
        ((a_check("unit", PASSED, 1), a_check("lint", SKIPPED, 2)), (UNIT, LINT), True),
        ((a_check("unit", PASSED, 1), a_check("lint", RUNNING, 2)), (UNIT, LINT), False),
        ((a_check("unit", PASSED), a_suite("g2")), (UNIT,), False),
        ((a_check("unit", PASSED), a_suite("g2", "13")), (UNIT,), True),
    ],
)
def test_a_commit_is_covered_if_a_required_check_ran_and_no_other_is_open(
    checks: tuple[Check, ...], required: tuple[RequiredName, ...], expected: bool
) -> None:
    assert verdict.is_covered(checks, required, frozenset({"unit", "lint"})) is expected


def test_a_commit_is_not_covered_by_a_skip_that_does_not_count() -> None:
    checks = a_check("unit", PASSED, 1), a_check("lint", SKIPPED, 2)
    assert not verdict.is_covered(checks, (UNIT, LINT), frozenset({"unit"}))


def with_failures(run: Run, *numbers: int) -> Run:
    """The run with failures of as many Apps, by the ids of their reports."""
    checks = tuple(a_check("unit", FAILED, number, str(number)) for number in numbers)
    names = tuple(RequiredName("unit", str(number)) for number in numbers)
    return replace(run, checks=checks, required=names)


LATER = START + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("before", "after", "failed_at", "is_asked"),
    [
        # The same failures, and fewer of them: nothing new is asked.
        ((1, 2), (1, 2), START, True),
        ((1, 2), (1,), START, True),
        # A new one beside an old one asks anew, and keeps the clock.
        ((1,), (1, 2), START, False),
        # Only new ones, and none any more.
        ((1,), (2,), LATER, False),
        ((1,), (), None, False),
        ((), (2,), LATER, False),
    ],
)
def test_the_failure_clock_runs_on_while_a_failure_lasts_and_new_ones_ask_for_new_evidence(
    before: tuple[int, ...], after: tuple[int, ...], failed_at: object, is_asked: bool
) -> None:
    evidence = Evidence(1, {"unit": Explanation.FLAKY})
    run = replace(a_run(), failed_at=START, asked_evidence=START, evidence=evidence)
    changed = verdict.with_clocks(with_failures(run, *before), with_failures(run, *after), LATER)
    assert changed.failed_at == failed_at
    assert changed.asked_evidence == (START if is_asked else None)
    assert changed.evidence is (evidence if is_asked else None)


def test_a_failure_without_a_clock_gets_one() -> None:
    run = with_failures(replace(a_run(), failed_at=None), 1)
    assert verdict.with_clocks(run, run, LATER).failed_at == LATER


def test_reports_that_do_not_fail_start_no_failure_clock() -> None:
    run = replace(a_run(a_check("unit", RUNNING)), failed_at=START)
    assert verdict.with_clocks(run, run, LATER).failed_at is None


def behind_one(*checks: Check) -> tuple[Run, dict[int, Entry]]:
    """A run of pull request 2 on top of 1, and the entries; only 1 skipped lint itself."""
    stage = Stage(config.QueueConfig(concurrency=2))
    for pr in (1, 2):
        stage.tell(stage.submit(pr))
    run = replace(stage.run(2), checks=checks, required=(UNIT, LINT))
    entries = dict(stage.queue.entries)
    return run, with_skipped(entries, 2, "unit", "lint")


def skippable_in(run: Run, entries: dict[int, Entry]) -> frozenset[str]:
    """Names that may be skipped where every check has run on what landed."""
    return verdict.skippable_in(run, entries, frozenset({"unit", "lint"}))


def with_skipped(entries: dict[int, Entry], pr: int, *names: str) -> dict[int, Entry]:
    """The entries with what CI skipped on the own head of one of them."""
    entry = entries[pr]
    return {**entries, pr: replace(entry, facts=replace(entry.facts, own_skipped=names))}


LINT_SKIPPED = a_check("lint", SKIPPED, 2)


def test_a_name_may_be_skipped_that_the_own_head_of_the_tested_pull_request_skipped() -> None:
    run, entries = behind_one(LINT_SKIPPED)
    assert skippable_in(run, entries) == {"unit", "lint"}
    run, entries = behind_one(a_check("unit", PASSED), LINT_SKIPPED)
    assert skippable_in(run, entries) == {"unit", "lint"}


def test_a_run_without_skipped_reports_may_skip_nothing() -> None:
    for checks in ((), (a_check("unit", PASSED),)):
        assert skippable_in(*behind_one(*checks)) == frozenset()


def test_of_the_base_only_the_entries_count_that_this_run_proves() -> None:
    run, entries = behind_one(LINT_SKIPPED)
    below = with_skipped(entries, 1, "lint")
    proved_here = {**below, 1: replace(below[1], verified_by=run.id)}
    assert skippable_in(run, proved_here) == {"lint"}
    proved_elsewhere = {**below, 1: replace(below[1], verified_by="another")}
    assert skippable_in(run, proved_elsewhere) == {"unit", "lint"}


def test_an_entry_that_left_or_was_submitted_again_does_not_say_what_may_be_skipped() -> None:
    run, entries = behind_one(LINT_SKIPPED)
    below = {1: replace(entries[1], verified_by=run.id)}
    below = with_skipped(below, 1, "lint")
    again = replace(entries[2], id="another submission")
    for left in (below, {**below, 2: again}):
        assert skippable_in(run, left) == {"lint"}
    assert skippable_in(run, {2: entries[2]}) == {"unit", "lint"}
    assert skippable_in(run, {2: again}) == frozenset()
    assert skippable_in(run, {}) == frozenset()


def test_a_direct_merge_may_skip_whatever_its_own_head_skipped() -> None:
    run, entries = behind_one(LINT_SKIPPED)
    direct = replace(run, kind=RunKind.DIRECT)
    assert skippable_in(direct, {}) == {"unit", "lint"}
    assert skippable_in(run, with_skipped(entries, 2)) == frozenset()


def test_a_name_that_ran_on_nothing_that_landed_may_be_skipped_only_if_it_is_optional() -> None:
    run, entries = behind_one(LINT_SKIPPED)
    assert verdict.skippable_in(run, entries, frozenset()) == frozenset()
    assert verdict.skippable_in(run, entries, frozenset({"lint"})) == {"lint"}
    assert verdict.skippable_in(replace(run, kind=RunKind.DIRECT), {}, frozenset()) == frozenset()
    settings = replace(run.config, optional_statuses=("lint", "not-required"))
    optional = replace(run, config=settings)
    for known in (entries, with_skipped(entries, 2), {}):
        assert verdict.skippable_in(optional, known, frozenset()) == {"lint"}


@pytest.mark.parametrize(
    ("beside", "because"),
    [
        (
            [("lint", "success", CheckOutcome.PASSED), ("unit", "failure", CheckOutcome.FAILED)],
            "unit",
        ),
        ([("unit", "timed_out", CheckOutcome.FAILED)], "unit"),
        ([("other", "skipped", CheckOutcome.FAILED)], ""),
        ([], ""),
    ],
)
def test_a_check_that_was_skipped_names_the_job_that_failed(
    beside: list[tuple[str, str, CheckOutcome]], because: str
) -> None:
    skipped = replace(a_check("all-green", CheckOutcome.FAILED), raw="skipped", group="7", id="90")
    others = [
        replace(a_check(name, outcome), raw=raw, group="7", id=str(place), url=f"https://ci/{name}")
        for place, (name, raw, outcome) in enumerate(beside, 10)
    ]
    elsewhere = replace(a_check("far", CheckOutcome.FAILED), group="8", id="1")
    found = verdict.standing(RequiredName("all-green"), (skipped, *others, elsewhere)).named
    assert (found.name, found.because) == ("all-green", because)
    assert found.url == (f"https://ci/{because}" if because else skipped.url)


def test_a_check_that_failed_itself_names_no_other_job() -> None:
    own = replace(a_check("unit", CheckOutcome.FAILED), raw="failure")
    other = replace(a_check("lint", CheckOutcome.FAILED), raw="failure", id="99")
    assert verdict.standing(RequiredName("unit"), (own, other)).named.because is None
