"""The same uploads give the same health: in any order, again, in parts, with some deleted."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.testhealth.detector import history, spans
from service.testhealth.detector.evidence import Event, Passes, Stream
from service.testhealth.detector.health import judge, settled_at
from service.testhealth.detector.spans import Results, Scale
from tests.bench.flaky.ledger import OTHER, PR, QUEUE, STABLE, Ledger, Upload, bits
from tests.flaky.histories import START, Story, T, at
from tests.harness import effort

TESTS = range(6)
LETTERS = ("", "P", "P", "P", "F", "F", "FP", "PFP", "FFP", "PF")


@st.composite
def uploads(draw):
    """Uploads of a small repository; commits, runs and times often meet."""
    found = []
    for number in range(draw(st.integers(1, 40))):
        letters = {no: draw(st.sampled_from(LETTERS)) for no in TESTS}
        kind = draw(st.sampled_from((STABLE, STABLE, STABLE, PR, QUEUE, OTHER)))
        when = draw(st.integers(0, 24 * 20))
        found.append(
            Upload(
                digest=f"{number:03}",
                at=START + timedelta(hours=when),
                kind=kind,
                job=draw(st.sampled_from("ab")),
                code=f"sha:{draw(st.integers(0, 12)) if draw(st.booleans()) else 100 + number}",
                run=draw(st.sampled_from(("", f"r{number}", "r1", "r2"))),
                passed=bits(no for no, each in letters.items() if each == "P"),
                attempts={no: each for no, each in letters.items() if each not in ("", "P")},
                machine=draw(st.sampled_from(("", "", "", "m1", "m2"))),
                branch="main" if kind == STABLE else draw(st.sampled_from(("x", "y"))),
                pr=draw(st.integers(1, 3)),
                position=draw(st.sampled_from((None, *range(1, 13)))),
                begun_by=draw(st.sampled_from((None, "", "7", "8"))),
            )
        )
    return found


def judged(given_uploads):
    """What is said of every test that failed, history of the store included."""
    ledger = Ledger(given_uploads, threshold=30)
    return {no: ledger.judge(no) for no in ledger.failed}


@given(uploads(), st.randoms(use_true_random=False))
@settings(max_examples=effort.examples(150), deadline=None)
def test_neither_order_nor_repetition_matters(given_uploads, chance):
    shuffled = [*given_uploads, *given_uploads[:5]]
    chance.shuffle(shuffled)
    assert judged(shuffled) == judged(given_uploads)


@given(uploads(), st.randoms(use_true_random=False), st.integers(1, 9))
@settings(max_examples=effort.examples(100), deadline=None)
def test_batches_and_deletions_end_in_the_same_history(given_uploads, chance, size):
    arriving, strangers = list(given_uploads), given_uploads[: len(given_uploads) // 4]
    chance.shuffle(arriving)
    entries: dict[int, list[history.Change]] = {no: [] for no in TESTS}

    def judge(known):
        ledger = Ledger(known, threshold=30)
        for no in TESTS:
            now = ledger.judge(no).history if no in ledger.failed else ()
            entries[no] += history.to_append(entries[no], now)

    for end in range(size, len(arriving) + size, size):
        judge(arriving[:end])
    kept = [each for each in arriving if each not in strangers]
    if kept:
        judge(kept)
        final = judged(kept)
        for no in TESTS:
            wanted = final[no].history if no in final else ()
            found = [(each.at, each.value) for each in history.effective(entries[no])]
            assert found == [(each.at, each.value) for each in wanted]
            assert history.to_append(entries[no], wanted) == ()


DAYS, SETTLED_DAY, REACH = 75, 45, 29


@st.composite
def long_lives(draw):
    """Events and passing results of 75 days, calm and wild."""
    rate = draw(st.integers(1, 30))
    moments = draw(st.lists(st.integers(0, DAYS * 24 - 1), max_size=40))
    weights = st.sampled_from((1.0, 1.0, 0.5, 0.3, 0.05))
    events = tuple(
        Event(at(0, 60 * hour), Stream.A, "unit", f"sha:{place}", draw(weights))
        for place, hour in enumerate(moments)
    )
    days = range(at(0).toordinal(), at(DAYS).toordinal())
    by_day = {day: draw(st.sampled_from((0, rate, rate, 2 * rate))) for day in days}
    times = {
        day: tuple(spans.midnight(day) + timedelta(minutes=5 * number) for number in range(count))
        for day, count in by_day.items()
    }
    return events, Passes(by_day, times)


@given(long_lives())
@settings(max_examples=effort.examples(300), deadline=None)
def test_evidence_that_is_gone_changes_nothing_that_is_settled(life):
    events, passes = life
    scale = Scale(at(DAYS), at(0).toordinal(), {}, 30)
    whole = spans.fold(events, Results(passes, ()), scale)
    settled_on, oldest = at(SETTLED_DAY), at(SETTLED_DAY - REACH)
    settled = spans.settled_at(whole, settled_on, ())
    kept = tuple(event for event in events if event.at >= oldest)
    known = Passes(
        {day: count for day, count in passes.by_day.items() if day >= oldest.toordinal()},
        passes.times,
    )
    part = spans.fold(kept, Results(known, ()), scale, settled)
    assert [(each.since, each.until) for each in part.spans] == [
        (each.since, each.until)
        for each in whole.spans
        if each.until is None or each.until > settled_on
    ]


@pytest.mark.parametrize("tail", ["FFF", "FFFF", "FFFP", "FFF..", "FFFPFFF"])
def test_a_broken_time_is_settled_whatever_of_the_verdicts_before_it_is_left(tail):
    story = Story()
    story.main(at(0), "P" * 30 + tail, timedelta(days=4))
    whole = story.ledger().judge(T)
    kept = Story()
    kept.uploads = [each for each in story.uploads if each.at >= at(129 - REACH)]
    ledger = kept.ledger()
    known = replace(ledger.evidence_of(T, (), settled_at(whole, at(129))), first_pass=at(0))
    found = judge(known, ledger.scale)
    assert (found.value, found.since) == (whole.value, whole.since)


def test_a_test_broken_for_long_stays_broken_since_then():
    story = Story()
    story.main(at(0), "P" * 20 + "F" * 40, timedelta(days=1))
    whole = story.ledger().judge(T)
    kept = Story()
    kept.uploads = [each for each in story.uploads if each.at >= at(30)]
    ledger = kept.ledger()
    known = replace(ledger.evidence_of(T, (), settled_at(whole, at(44))), first_pass=at(0))
    found = judge(known, ledger.scale)
    assert (found.value, found.since) == (whole.value, whole.since) == ("broken", at(22))
    assert found.reason == "Failed on the last 30 runs of main since 0000030 (job unit / linux)."
