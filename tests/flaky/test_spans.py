"""The fold (docs/design/detector.md 7): an example, and how flags come and go."""

from datetime import datetime, timedelta

import pytest

from service.testhealth.detector import score, spans
from service.testhealth.detector.evidence import Event, Passes, Stream
from service.testhealth.detector.score import Noise
from service.testhealth.detector.spans import FlakySpan, Fold, Held, Results, Scale, Settled
from tests.flaky.histories import at, last_of, open_measure_of

DAY = timedelta(days=1)


def an_event(when, weight=1.0, code="sha:a", source=""):
    return Event(when, Stream.A, "unit / linux", code, weight, source=source)


def passing(*moments):
    times: dict[int, list[datetime]] = {}
    for moment in sorted(moments):
        times.setdefault(moment.toordinal(), []).append(moment)
    by_day = {day: len(each) for day, each in times.items()}
    return Passes(by_day, {day: tuple(each) for day, each in times.items()})


def evenly(first, count, over=DAY):
    return [first + over * number / count for number in range(count)]


def an_old_repository(clock, threshold=100):
    return Scale(clock, at(-60).toordinal(), {}, threshold)


MARCH_2, MARCH_3 = at(1, 23 * 60), at(2, 23 * 60)
MARCH_5 = at(4, 9 * 60 + 40)
EXAMPLE = passing(
    *evenly(at(0), 48),
    *evenly(at(2), 102, timedelta(hours=23)),
    *evenly(at(3), 53),
    *(moment for day in range(5, 20) for moment in evenly(at(day), 50)),
)
MAIN = (tuple(evenly(at(0), 10) + evenly(at(2), 30)),)
EVENTS = (
    an_event(MARCH_2),
    an_event(MARCH_3, 0.05, "sha:b"),
    an_event(MARCH_5, 1.0, "sha:c"),
)


def example(events, clock):
    return spans.fold(events, Results(EXAMPLE, MAIN), an_old_repository(clock))


def test_the_first_disagreement_is_not_enough():
    measure = open_measure_of(example(EVENTS[:1], at(1, 1439)))
    assert (measure.tallies.a.results, measure.tallies.b.results) == (48, 10)
    assert score.shown_score(measure.log_score) == pytest.approx(23.76, rel=1e-3)


def test_what_hit_a_hundred_tests_hardly_counts():
    found = example(EVENTS[:2], at(2, 1439))
    assert found.spans == ()
    measure = open_measure_of(found)
    assert (measure.tallies.a.weight, measure.tallies.a.results) == (1.05, 150)


def test_the_second_disagreement_flags_and_nine_clean_days_clear():
    flagged = example(EVENTS, at(5)).spans[0]
    assert (flagged.since, flagged.until) == (MARCH_5, None)
    assert (flagged.last.tallies.a.weight, flagged.last.tallies.a.results) == (2.05, 203)
    assert flagged.last.tallies.b.results == 40
    assert score.shown_score(flagged.last.log_score) == pytest.approx(252.4, rel=1e-3)
    assert example(EVENTS, at(13, 1439)).spans[0].until is None
    cleared = example(EVENTS, at(14)).spans[0]
    assert (cleared.until, cleared.clean, cleared.quiet_days) == (at(14), 450, 9)


def test_one_event_in_run_14_flags_for_three_days():
    passes = passing(*evenly(at(0), 14), *evenly(at(1), 5), *evenly(at(2), 5), *evenly(at(3), 4))
    events = (an_event(at(0, 1430)),)

    def found(clock):
        return spans.fold(events, Results(passes, ()), an_old_repository(clock)).spans[0]

    assert score.shown_score(found(at(1)).first.log_score) == pytest.approx(104.7, rel=1e-3)
    assert found(at(3, 1439)).until is None
    assert found(at(4)).until == at(4)


def test_a_disagreement_renews_the_quiet_time():
    passes = passing(*(moment for day in range(30) for moment in evenly(at(day), 20)))
    events = (an_event(at(0, 5)), an_event(at(3, 600), code="sha:b"), an_event(at(9, 600)))
    (span,) = spans.fold(events, Results(passes, ()), an_old_repository(at(30))).spans
    assert span.since == at(0, 5)
    assert span.until is not None
    assert span.until > at(13)


def test_a_light_event_does_not_end_in_the_past_what_still_lasts():
    passes = passing(
        *evenly(at(0), 22), *(moment for day in range(1, 30) for moment in evenly(at(day), 2))
    )
    heavy = [an_event(at(0, 60 * hour)) for hour in (1, 2, 3)] + [an_event(at(2, 60))]
    light = an_event(at(15, 60), 0.2)

    def until(events, clock):
        return (
            spans.fold(tuple(events), Results(passes, ()), an_old_repository(clock)).spans[0].until
        )

    assert until(heavy, at(15, 59)) is None
    assert until([*heavy, light], at(16)) is None
    assert until([*heavy, light], at(20)) == at(17)


def test_a_flag_starts_anew_after_it_ended():
    passes = passing(*(moment for day in range(40) for moment in evenly(at(day), 20)))
    twice = [an_event(at(day, 60 * hour)) for day in (0, 8) for hour in (1, 2, 3)]
    found = spans.fold(tuple(twice), Results(passes, ()), an_old_repository(at(40))).spans
    assert found[0].until == at(4)
    assert found[1].since == at(8, 120)
    first = found[1].first
    assert first is not None
    assert first.tallies.a.results == 4 * 20 + 2


def test_events_of_one_source_weigh_two_until_they_leave_the_window():
    passes = passing(*(moment for day in range(20) for moment in evenly(at(day), 400)))
    events = tuple(an_event(at(0, 1300 + number), source="#7") for number in range(1, 9))
    scale = an_old_repository(at(20), 1000)
    late = (*events, an_event(at(13, 5), source="#8"), an_event(at(14, 5), source="#9"))
    before = spans.fold(late[:-1], Results(passes, ()), scale)
    after = spans.fold(late, Results(passes, ()), scale)
    assert open_measure_of(before).tallies.a.weight == 3
    assert open_measure_of(after).tallies.a.weight == 2


def test_an_event_of_the_first_days_is_held_against_the_first_noise_known():
    known = {at(3).toordinal(): Noise(2e-3, 1e-3)}
    scale = Scale(at(3), at(0).toordinal(), known)
    found = spans.fold((an_event(at(0, 60)),), Results(passing(at(0, 60)), ()), scale)
    assert open_measure_of(found).noise.a == 2e-3


@pytest.mark.parametrize(
    ("flaky", "since", "epoch"),
    [
        ([(1, None)], 1, None),
        ([(1, 6)], 1, None),
        ([(1, 5)], None, 5),
        ([(1, 4)], None, 4),
        ([(5, None)], None, None),
        ([(6, 7)], None, None),
        ([(1, 2), (3, 4), (4.5, 6), (7, None)], 4.5, 4),
        ([], None, None),
    ],
)
def test_what_is_settled_is_which_flaky_time_lasts_and_when_the_last_one_ended(flaky, since, epoch):
    times = tuple(
        FlakySpan(at(first), None, None, None if until is None else at(until))
        for first, until in flaky
    )
    settled = spans.settled_at(Fold(times, None), at(5), ())
    assert settled.since == (None if since is None else at(since))
    assert settled.epoch == (None if epoch is None else at(epoch))


def test_the_end_of_an_earlier_flaky_time_stays_settled_until_another_one_ends():
    before = Settled(at(3), None, at(2), ())
    assert spans.settled_at(Fold((), None), at(5), (), before).epoch == at(2)
    ended = Fold((FlakySpan(at(3), None, None, at(4)),), None)
    assert spans.settled_at(ended, at(5), (), before).epoch == at(4)


@pytest.mark.parametrize(("weight", "is_over"), [(1.49, True), (1.5, False)])
def test_one_observation_is_one_that_weighs_less_than_one_and_a_half(weight, is_over):
    passes = passing(*evenly(at(1), 14, 3 * DAY))
    quiet = spans.end_of_quiet(Held(at(0), weight, 20), passes, at(4).toordinal())
    assert (quiet is not None) is is_over


def test_an_event_at_the_very_end_of_a_flaky_time_counts_after_it():
    settled = Settled(at(4), None, at(4), ())
    results = Results(passing(at(4)), ())
    found = spans.fold((an_event(at(4)),), results, an_old_repository(at(5)), settled)
    assert found.spans or found.open_measure


@pytest.mark.parametrize(
    ("second", "since"), [(at(3, 120), None), (at(4), at(4)), (at(4, 60), at(4, 60))]
)
def test_events_before_what_is_settled_begin_no_flaky_time(second, since):
    passes = passing(*(moment for day in range(6) for moment in evenly(at(day), 20)))
    settled = Settled(at(4), None, None, ())
    events = (an_event(at(3, 60)), an_event(second, code="sha:b"))
    found = spans.fold(events, Results(passes, ()), an_old_repository(at(5)), settled).spans
    assert [each.since for each in found] == ([] if since is None else [since])


@pytest.mark.parametrize(("weight", "until"), [(0.49, at(4)), (0.5, at(9))])
def test_an_event_of_half_a_weight_renews_the_quiet_time(weight, until):
    passes = passing(*(moment for day in range(30) for moment in evenly(at(day), 200)))
    events = (an_event(at(0, 5)), an_event(at(3, 600), weight, "sha:b"))
    (span,) = spans.fold(events, Results(passes, ()), an_old_repository(at(30))).spans
    assert span.until == until


def test_all_events_of_the_moment_at_which_a_test_becomes_flaky_count():
    passes = passing(*(moment for day in range(30) for moment in evenly(at(day), 5)))
    several = tuple(an_event(at(0, 5), 0.4, f"sha:{each}") for each in "bcd")
    scale = an_old_repository(at(30))
    alone = spans.fold((an_event(at(0, 5)),), Results(passes, ()), scale).spans[0]
    together = spans.fold((an_event(at(0, 5)), *several), Results(passes, ()), scale).spans[0]
    assert alone.until == at(4)
    assert together.until is not None
    assert together.until > at(4)


@pytest.mark.parametrize(("passed", "is_newest"), [(20, True), (400, False)])
def test_a_flaky_test_is_explained_by_its_newest_event_while_that_reaches_the_limit(
    passed, is_newest
):
    passes = passing(*evenly(at(0), 14), *evenly(at(1), passed))
    events = (an_event(at(0, 1430)), an_event(at(2, 5), code="sha:b"))
    (span,) = spans.fold(events, Results(passes, ()), an_old_repository(at(3))).spans
    assert span.last is not None
    assert span.first is not None
    assert span.first.at == at(0, 1430)
    assert span.last.at == (at(2, 5) if is_newest else at(0, 1430))


def test_a_flaky_time_whose_beginning_is_gone_is_explained_by_its_newest_event():
    passes = passing(*evenly(at(3), 400))
    settled = Settled(at(4), at(1), None, ())
    found = spans.fold(
        (an_event(at(4, 5)),), Results(passes, ()), an_old_repository(at(5)), settled
    )
    assert last_of(found).at == at(4, 5)
