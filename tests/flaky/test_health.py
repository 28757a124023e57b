"""From evidence to a status: the rules of docs/design/detector.md 3, 4, 5, 7, 8, one by one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.testhealth.detector.evidence import Event, Stream, Window, is_mass_failure
from service.testhealth.detector.health import Flag, settled_at
from service.vocabulary import Health as Status
from tests.bench.flaky.ledger import OTHER, QUEUE, STABLE, UNTRUSTED
from tests.flaky.histories import (
    Story,
    T,
    at,
    in_an_old_repository,
    last_of,
    open_measure_of,
    tally_of,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_the_worked_example_step_by_step():
    story = Story()
    story.main(at(0, 1), "P" * 10, timedelta(minutes=1))
    story.passes(at(0, 20), 37, HOUR)
    story.flipped(at(1))
    second_march = story.ledger().judge(T)
    assert second_march.value is Status.HEALTHY
    assert tally_of(second_march).results == 48
    assert second_march.numbers.score == pytest.approx(23.76, rel=1e-3)
    assert second_march.reason == (
        "Passed and failed on the same code once in 48 runs in 14 days; this fits a flaky test 23 "
        "times as well as a healthy one (flaky from 100)."
    )


def test_a_database_that_is_away_weighs_little():
    story = Story()
    story.passes(at(0), 148, DAY)
    others = range(1, 100)
    first = story.ran(at(2), "F", failing=others)
    first = replace(first, passed=((1 << 400) - 1) & ~((1 << 100) - 1))
    story.uploads[-1] = first
    again = story.ran(at(2, 5), "P", code=first.code, pr=first.pr)
    story.uploads[-1] = replace(again, passed=(1 << 400) - 1)
    found = story.ledger().judge(T)
    assert tally_of(found).weight == 0.05
    assert found.value is Status.HEALTHY


def test_the_second_disagreement_alone_flags_and_calm_ends_it():
    story = Story()
    story.passes(at(0), 100, DAY)
    story.flipped(at(1))
    story.passes(at(2), 100, DAY)
    story.flipped(at(4, 9 * 60 + 35))
    flagged = story.ledger().judge(T)
    assert flagged.value is Status.FLAKY
    assert flagged.since == at(4, 9 * 60 + 40)
    assert tally_of(flagged).results == 202
    for day in range(5, 16):
        story.passes(at(day), 50, DAY)
    calm = story.ledger().judge(T)
    assert calm.value is Status.HEALTHY
    assert calm.since == at(14)
    assert [change.value for change in calm.history] == [Status.FLAKY, Status.HEALTHY]
    assert calm.reason == ("Not flaky since 2026-03-15: no disagreement in 450 runs over 9 days.")


def test_one_observation_flags_a_young_test_and_is_soon_forgotten():
    story = in_an_old_repository()
    story.passes(at(0), 13, HOUR)
    story.flipped(at(0, 600))
    young = story.ledger().judge(T)
    assert young.value is Status.FLAKY
    assert young.reason == (
        "Passed and failed on the same code once in 14 runs in 14 days (job unit / linux); "
        "this fits a flaky test 104 times as well as a healthy one (flaky from 100). "
        "One observation so far."
    )
    for day in range(1, 5):
        story.passes(at(day), 5, DAY)
    assert story.ledger().judge(T).since == at(4)


def test_a_flaky_test_without_runs_is_healthy_after_two_weeks_of_the_clock():
    story = in_an_old_repository()
    story.flipped(at(0))
    assert story.ledger().judge(T).value is Status.FLAKY
    story.ran(at(14), "")
    assert story.ledger().judge(T).value is Status.FLAKY
    story.ran(at(15), "")
    after = story.ledger().judge(T)
    assert (after.value, after.since) == (Status.HEALTHY, at(15))
    assert after.reason == "Not flaky since 2026-03-16: no disagreement in 0 runs over 14 days."


@pytest.mark.parametrize(
    ("letters", "events"),
    [("FP", 1), ("FFP", 1), ("PFP", 1), ("FPFP", 2), ("PFPF", 2), ("FF", 0), ("PP", 0)],
)
def test_each_odd_transition_is_an_event(letters, events):
    story = Story()
    story.ran(at(0), letters)
    assert len(story.ledger().events_a.get(T, ())) == events


def test_attempts_of_different_jobs_or_codes_do_not_compare():
    story = Story()
    story.ran(at(0), "F", code="sha:a")
    story.ran(at(0, 1), "P", code="sha:b")
    story.ran(at(0, 2), "P", code="sha:a", job="unit / mac")
    assert story.ledger().events_a == {}


def test_matrix_siblings_under_one_name_compare_only_inside_an_upload():
    story = Story()
    story.ran(at(0), "F", machine="linux-1", code="sha:a", run="r1")
    story.ran(at(0, 1), "P", machine="mac-1", code="sha:a", run="r1")
    assert story.ledger().events_a == {}
    story.ran(at(1), "FP", code="sha:b")
    assert len(story.ledger().events_a[T]) == 1


def test_a_mass_failure_is_evidence_of_nothing():
    story = Story()
    first = story.ran(at(0), "F", failing=range(1, 40))
    story.again(first)
    assert story.ledger().events_a == {}
    assert story.ledger().passes_of(T).by_day == {at(0).toordinal(): 1}


@pytest.mark.parametrize(
    ("tests_run", "failed", "is_mass"),
    [(20, 16, True), (20, 15, False), (19, 19, False), (100, 80, True), (100, 79, False)],
)
def test_four_fifths_of_twenty_tests_or_more_are_a_mass_failure(tests_run, failed, is_mass):
    assert is_mass_failure(tests_run, failed) is is_mass


def test_an_event_counts_on_its_day_and_the_thirteen_days_after():
    for days, weight in ((13, 2), (14, 1)):
        window = Window()
        for day in (0, days):
            window.add(Event(at(day), Stream.A, "unit", f"c{day}", 1.0))
        assert (window.weight(Stream.A), len(window.events())) == (weight, weight)


def test_tests_that_share_an_identity_give_no_evidence():
    story = Story()
    story.ran(at(0), "FP", muddled=frozenset({T}))
    assert story.ledger().events_a == {}


def test_forks_change_nothing():
    story = Story()
    story.flipped(at(0))
    story.uploads[:] = [replace(each, kind=UNTRUSTED) for each in story.uploads]
    story.ran(at(0, 30), "F")
    assert story.ledger().judge(T).value is Status.HEALTHY


@pytest.mark.parametrize(
    ("facts", "weight"),
    [
        ({"pr": 7}, 2),
        ({"kind": OTHER, "branch": "topic", "pr": None}, 2),
        ({"kind": QUEUE, "pr": None}, 5),
    ],
)
def test_one_pull_request_or_branch_weighs_at_most_two(facts, weight):
    story = Story()
    for number in range(5):
        story.ran(at(0, number), "FP", **facts)
    fold = story.ledger().judge(T).fold
    measure = last_of(fold) if fold.spans else open_measure_of(fold)
    assert measure.tallies.a.weight == weight


def test_a_verdict_alone_between_neighbors_is_an_event_when_the_right_one_is_known():
    story = Story()
    story.main(at(0), "PPFPPFFPFP")
    found = story.ledger().events_b[T]
    assert [event.at for event in found] == [at(0, 180), at(0, 480), at(0, 540)]
    assert [event.passed for event in found] == [False, True, False]


def test_points_at_which_it_did_not_run_are_no_neighbors():
    story = Story()
    story.main(at(0), "P.F..P")
    assert len(story.ledger().events_b[T]) == 1


def test_only_runs_of_the_test_count_as_its_verdicts():
    story = Story()
    story.main(at(0), "PP.P..FP")
    numbers = story.ledger().judge(T).numbers
    assert numbers.b is not None
    assert (numbers.b.weight, numbers.b.results) == (1, 5)


def test_stream_a_goes_before_stream_b_on_the_same_code():
    story = Story()
    story.main(at(0), "PPP")
    story.ran(at(0, 180), "F", kind=STABLE, pr=None, code="sha:x", run="x")
    story.main(at(0, 240), "PPP")
    story.ran(at(0, 250), "P", kind=QUEUE, pr=None, code="sha:x", run="y")
    ledger = story.ledger()
    assert len(ledger.events_a[T]) == 1
    assert T not in ledger.events_b


@pytest.mark.parametrize(("day", "is_named"), [(14, True), (15, False)])
def test_a_disagreement_is_named_as_long_as_it_is_in_the_window(day, is_named):
    story = Story()
    story.passes(at(0), 30, HOUR)
    story.flipped(at(1))
    story.ran(at(day))
    reason = story.ledger().judge(T).reason
    assert reason.startswith("Passed and failed on the same code once in ") is is_named


def test_many_alone_at_one_point_weigh_less():
    story = Story()
    story.main(at(0), "P")
    story.ran(at(0, 60), "F", kind=STABLE, pr=None, failing=range(1, 10))
    story.main(at(0, 120), "P")
    assert story.ledger().events_b[T][0].weight == 0.5


def test_stream_b_alone_can_flag():
    story = in_an_old_repository()
    story.main(at(0), "PPPPFPPPPPPFPPPPPPFPPP")
    found = story.ledger().judge(T)
    assert found.value is Status.FLAKY
    assert found.reason.startswith("Failed alone between passes on main 3 times in 20 verdicts; ")


@pytest.mark.parametrize(("passes", "failures"), [(17, 3), (16, 4), (6, 4), (5, 5), (2, 5), (1, 6)])
def test_so_many_failures_after_so_many_passes_are_broken(passes, failures):
    def judged(letters):
        story = Story()
        story.main(at(0), letters)
        return story.ledger().judge(T).value

    assert judged("P" * passes + "F" * failures) is Status.BROKEN
    assert judged("P" * passes + "F" * (failures - 1)) is not Status.BROKEN


def test_the_history_says_why_a_test_became_broken_then():
    story = Story()
    story.main(at(0), "P" * 20 + "FFFFF")
    found = story.ledger().judge(T)
    assert found.reason.startswith("Failed on the last 5 runs of main")
    assert found.history[0].reason.startswith("Failed on the last 3 runs of main")
    assert not found.is_stale


@pytest.mark.parametrize(
    ("tail", "minute", "is_settled"),
    [("P", 0, False), ("P", 1, True), ("P", 59, True), ("P", 60, False), ("F", 60, True)],
)
def test_a_test_is_settled_to_be_broken_while_it_was(tail, minute, is_settled):
    story = Story()
    story.main(at(0), "P" * 20 + "FFF" + tail)
    began = at(0, 60 * 22)
    settled = settled_at(story.ledger().judge(T), began + timedelta(minutes=minute))
    broken = {("main", "unit / linux"): began} if is_settled else {}
    assert settled.broken_since == broken


def test_a_number_too_large_to_read_has_a_limit():
    story = in_an_old_repository()
    for day in range(8):
        story.passes(at(day), 100, DAY)
        story.flipped(at(day, 600))
    assert "a flaky test over 1,000,000 times as well as" in story.ledger().judge(T).reason
    story = Story()
    story.main(at(0), "P" * 140 + "F" * 8)
    assert "8 in a row was less than 1 in 1,000,000,000 (" in story.ledger().judge(T).reason


def test_broken_says_since_when_and_how_unlikely_and_ends_with_a_pass():
    story = Story()
    story.main(at(0), "P" * 140 + "FFF")
    broken = story.ledger().judge(T)
    assert broken.since == at(0, 60 * 142)
    assert broken.numbers.probability == pytest.approx(2.695e-7, rel=1e-3)
    assert broken.reason == (
        "Failed on the last 3 runs of main since 0000140 (job unit / linux); before that 0 of "
        "140 failed, so the chance of 3 in a row was 1 in 3,700,000 (broken from 1 in 20,000 on)."
    )
    story.main(at(0, 60 * 143), "FFP")
    repaired = story.ledger().judge(T)
    assert (repaired.value, repaired.since) == (Status.HEALTHY, at(0, 60 * 145))
    assert repaired.reason == "Passed on main at 0000145 after 5 failures."


def test_a_test_that_never_passed_is_broken_at_the_fifth_failure():
    story = Story()
    story.main(at(0), "FFFF")
    assert story.ledger().judge(T).value is Status.HEALTHY
    story.main(at(0, 240), "F")
    found = story.ledger().judge(T)
    assert found.value is Status.BROKEN
    assert found.reason == "Never passed; failed on all 5 runs of main since 0000000."


@pytest.mark.parametrize(
    ("minute", "expected"), [(239, Status.HEALTHY), (240, Status.HEALTHY), (241, Status.BROKEN)]
)
def test_a_test_that_passed_anywhere_by_its_fifth_failure_has_passed(minute, expected):
    story = Story()
    story.main(at(0), "FFFFF")
    story.ran(at(0, minute), "P")
    assert story.ledger().judge(T).value is expected


def test_a_pass_after_five_failures_does_not_undo_that_it_had_never_passed():
    story = Story()
    story.main(at(0), "FFFFFP")
    history = [(change.at, change.value) for change in story.ledger().judge(T).history]
    assert history == [(at(0, 240), Status.BROKEN), (at(0, 300), Status.HEALTHY)]


@pytest.mark.parametrize(
    ("before", "failures", "expected"),
    [
        ("FFFP", 9, Status.HEALTHY),
        ("FFFP", 10, Status.BROKEN),
        ("FP" * 5, 10, Status.FLAKY),
    ],
)
def test_ten_failures_break_a_test_of_which_little_is_known(before, failures, expected):
    story = Story()
    story.main(at(0), before + "F" * failures)
    assert story.ledger().judge(T).value is expected


def test_a_test_that_often_fails_is_not_broken_by_a_streak():
    story = Story()
    story.main(at(0), "PF" * 30 + "PFFFF")
    assert story.ledger().judge(T).value is not Status.BROKEN


def test_failures_of_pull_requests_break_nothing():
    story = Story()
    story.main(at(0), "P" * 20)
    for number in range(10):
        story.ran(at(1, number), "F")
    assert story.ledger().judge(T).value is Status.HEALTHY


def test_a_removed_test_is_not_broken_after_five_points_without_it():
    story = Story()
    story.main(at(0), "P" * 20 + "FFF....")
    assert story.ledger().judge(T).value is Status.BROKEN
    story.main(at(0, 60 * 27), ".")
    found = story.ledger().judge(T)
    assert (found.value, found.since) == (Status.HEALTHY, at(0, 60 * 27))
    assert found.reason == "Not run any more on main after 3 failures."


def test_a_test_that_another_job_of_the_branch_runs_is_not_removed():
    story = Story()
    story.main(at(0), "P" * 20 + "FFF" + "." * 8)
    for upload in story.uploads[-8:]:
        story.ran(upload.at, "F", kind=STABLE, pr=None, code=upload.code, job="unit / mac")
    assert story.ledger().judge(T).value is Status.BROKEN


def test_a_series_that_falls_silent_is_not_broken_after_two_weeks():
    story = Story()
    story.main(at(0), "P" * 20 + "FFF")
    story.ran(at(14, 60 * 22), "")
    found = story.ledger().judge(T)
    assert (found.value, found.since) == (Status.HEALTHY, at(14, 60 * 22))
    assert found.reason == "No result on main for 14 days after 3 failures."


@pytest.mark.parametrize(("minute", "expected"), [(-1, Status.BROKEN), (0, Status.HEALTHY)])
def test_a_failure_after_two_silent_weeks_does_not_continue_the_broken_time(minute, expected):
    story = Story()
    story.main(at(0), "P" * 20 + "FFF")
    story.main(at(14, 60 * 22 + minute), "F")
    assert story.ledger().judge(T).value is expected


def test_after_two_silent_weeks_failures_are_counted_anew():
    story = Story()
    story.main(at(0), "P" * 20 + "FFF")
    story.main(at(20), "FFFFF")
    silent = story.ledger().judge(T)
    assert silent.value is Status.HEALTHY
    assert silent.reason == "No result on main for 14 days after 3 failures."
    story.main(at(21), "F")
    again = story.ledger().judge(T)
    assert (again.value, again.since) == (Status.BROKEN, at(21))


def test_after_a_repair_verdicts_are_counted_anew():
    story = Story()
    story.main(at(0), "P" * 20 + "FFFF" + "PPPP" + "FFF")
    assert story.ledger().judge(T).value is Status.HEALTHY
    story.main(at(0, 60 * 31), "FF")
    found = story.ledger().judge(T)
    assert (found.value, found.numbers.before) == (Status.BROKEN, 4)


def test_broken_goes_before_flaky_and_flaky_is_left_when_it_ends():
    story = in_an_old_repository()
    story.flipped(at(0))
    story.main(at(0, 60), "P" * 20 + "FFF", timedelta(minutes=10))
    assert story.ledger().judge(T).value is Status.BROKEN
    story.main(at(0, 300), "P")
    assert [change.value for change in story.ledger().judge(T).history] == [
        *(Status.FLAKY, Status.BROKEN, Status.FLAKY),
    ]


def test_nobody_runs_it_for_thirty_days_of_the_clock():
    story = Story()
    story.main(at(0), "FFFFF")
    flags = (Flag(at(0, 400), Status.BROKEN, "bob", "waits on the real clock."),)
    story.ran(at(30, 239), "")
    assert story.ledger().judge(T, flags).value is Status.BROKEN
    story.ran(at(30, 240), "")
    found = story.ledger().judge(T, flags)
    assert (found.value, found.is_stale, found.since) == (Status.HEALTHY, True, at(30, 240))
    assert found.reason == "No run since 2026-03-01."


def test_a_flag_stands_until_it_is_taken_back():
    story = Story()
    story.passes(at(0), 5, HOUR)
    story.ran(at(1), "F")
    bob = Flag(at(2), Status.FLAKY, "bob", "waits on the real clock.")
    flagged = story.ledger().judge(T, (bob,))
    assert (flagged.value, flagged.since) == (Status.FLAKY, at(2))
    assert flagged.reason == "Flagged flaky by bob: waits on the real clock."
    back = story.ledger().judge(T, (bob, Flag(at(3), Status.HEALTHY, "eve")))
    assert (back.value, back.since) == (Status.HEALTHY, at(3))
    assert back.reason == "Flag removed by eve."


def test_healthy_tests_say_how_they_did():
    story = Story()
    story.passes(at(0), 209, 10 * DAY)
    for day in (3, 4, 5):
        story.ran(at(day), "F")
    assert story.ledger().judge(T).reason == (
        "Failed in 3 of 212 runs in 14 days, never both ways on the same code."
    )
    story.passes(at(20), 100, DAY)
    assert story.ledger().judge(T).reason == "No failure in 183 runs since 2026-03-07."


@pytest.mark.parametrize(("day", "is_named"), [(13, True), (14, False)])
def test_a_failure_is_named_as_long_as_it_is_in_the_window(day, is_named):
    story = Story()
    story.ran(at(0), "F")
    story.passes(at(1), 20, HOUR)
    story.ran(at(day))
    assert story.ledger().judge(T).reason.startswith("Failed in 1 of ") is is_named


def test_a_healthy_test_says_what_ended_last():
    story = in_an_old_repository()
    story.flipped(at(0))
    story.main(at(0, 60), "P" * 20 + "FFFP", timedelta(minutes=10))
    for day in range(1, 16):
        story.passes(at(day), 50, DAY)
    found = story.ledger().judge(T)
    assert [change.value for change in found.history][-1] is Status.HEALTHY
    assert found.reason.startswith("Not flaky since ")


def test_a_test_that_disagreed_with_itself_once_is_healthy():
    story = Story()
    story.passes(at(0), 30, HOUR)
    story.flipped(at(1))
    assert story.ledger().judge(T).value is Status.HEALTHY


def test_a_holiday_heals_nobody():
    story = Story()
    story.flipped(at(0))
    before = story.ledger().judge(T)
    assert story.ledger().judge(T) == before


def test_light_events_of_a_crowd_do_not_renew_the_quiet_time():
    story = in_an_old_repository()
    story.flipped(at(0))
    story.passes(at(1), 40, 3 * DAY)
    story.flipped(at(2), failing=range(1, 25))
    story.ran(at(4))
    found = story.ledger().judge(T)
    assert [event.weight for event in story.ledger().events_a[T]] == [1.0, 0.2]
    assert (found.value, found.since) == (Status.HEALTHY, at(4))


def test_every_reason_fits():
    story = Story()
    story.main(at(0), "P" * 20 + "FFF")
    long = [replace(each, job="j" * 255, branch="b" * 255) for each in story.uploads]
    story.uploads[:] = long
    assert len(story.ledger().judge(T).reason) <= 300
    flags = (Flag(at(0), Status.FLAKY, "bob", "x" * 300),)
    assert len(story.ledger().judge(T, flags).reason) <= 300


def test_flags_of_the_first_hours_are_corrected_when_the_noise_is_known():
    story = Story()
    story.passes(at(0), 13, HOUR)
    story.flipped(at(0, 600))
    assert story.ledger().judge(T).value is Status.FLAKY
    story.passes(at(1), 10, 3 * DAY)
    assert story.ledger().judge(T).history == ()
