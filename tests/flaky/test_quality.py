"""Past flags held against what came later, and what settings would have said of the past."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.testhealth.detector import past
from service.testhealth.detector.index import Earlier
from service.testhealth.detector.past import Rules, Stored
from service.testhealth.detector.quality import FAILURES_MIN, FLAGS_MIN, Quality
from service.testhealth.detector.repeats import Repeats
from service.testhealth.reports.uploads import UploadClass
from service.vocabulary import Health
from tests.bench.flaky.ledger import OTHER, QUEUE, STABLE
from tests.flaky.histories import START, Story, T, at
from tests.flaky.test_index import Sets, told

FLAKY = frozenset({Health.FLAKY})


def a_story(flips, days=40, runs=4):
    """T runs some times a day, and fails and passes again at these times."""
    story = Story()
    for day in range(days):
        story.passes(at(day), runs, timedelta(hours=20))
    for when in flips:
        story.flipped(when)
    return story


def stored(story, **facts):
    return Stored(tuple(map(told, sorted(story.uploads, key=lambda each: each.at))), **facts)


def replayed(story, *variants, **facts):
    return past.replayed(stored(story, **facts), Sets(), variants or (Rules(),))


def counts(found):
    return found.quality.confirmed, found.quality.unconfirmed, found.quality.open


TWICE = [at(10, 40), at(10.5, 40)]
"""What makes T flaky."""


def test_a_disagreement_on_other_code_after_the_flag_confirms_it():
    (found,) = replayed(a_story([*TWICE, at(13, 40)]))
    assert counts(found) == (1, 0, 0)
    assert found.doubtful == ()


def test_flags_by_repeated_runs_are_told_and_confirmed_by_them():
    story = a_story([])
    again = {"kind": STABLE, "pr": None}
    repeated = [story.ran(at(day, 40), **again) for day in (20, 20.5, 25)]
    rounds = tuple(
        (told(each).id, Repeats(each.at, each.digest, each.job, each.code, "PPPPFPPPPP"))
        for each in repeated
    )
    (found,) = replayed(story, repeats={T: rounds})
    assert (found.quality.flags, counts(found)) == (1, (1, 0, 0))
    assert found.quality.recall.missing == FAILURES_MIN, "no job failed by them"
    (found,) = replayed(story, repeats={T: rounds[:2]})
    assert [each.flag.since for each in found.doubtful] == [repeated[1].at]


def test_a_flag_that_nothing_follows_is_not_confirmed_once_the_test_ran_often_enough():
    (found,) = replayed(a_story(TWICE, runs=12))
    assert counts(found) == (0, 1, 0)
    (doubtful,) = found.doubtful
    assert doubtful.no == T
    assert doubtful.flag.runs >= doubtful.flag.needed
    assert doubtful.flag.missing == 0


def test_a_flag_after_which_the_test_hardly_ran_is_open_and_says_how_many_runs_are_missing():
    (found,) = replayed(a_story(TWICE, days=13))
    assert counts(found) == (0, 0, 1)
    flag = found.doubtful[0].flag
    assert flag.missing == flag.needed - flag.runs > 0


def test_the_same_code_once_more_confirms_no_flag():
    story = a_story(TWICE, runs=12)
    code = story.uploads[-2].code
    story.again(replace(story.uploads[-2], at=at(12), code=code), passed=False)
    (found,) = replayed(story)
    assert (found.quality.flags, found.quality.confirmed) == (1, 0)


def test_the_machine_that_caused_a_flag_cannot_confirm_it_and_another_one_can():
    story = a_story([], runs=12)
    for nth, upload in enumerate(story.uploads):
        story.uploads[nth] = replace(upload, machine=f"m{nth % 4}")
    for machine, when in (("m1", 10), ("m1", 10.3), ("m2", 10.5), ("m1", 11), ("m1", 13)):
        story.flipped(at(when, 40), machine=machine)
    (found,) = replayed(story)
    assert found.quality.flags == 1
    assert found.quality.confirmed == 0
    story.flipped(at(13, 90), machine="m3")
    (found,) = replayed(story)
    assert found.quality.confirmed == 1


def test_failures_count_as_caught_only_while_a_flag_was_known():
    (found,) = replayed(a_story([*TWICE, at(13, 40)]))
    assert (found.quality.caught, found.quality.missed) == (1, 2)
    flagged_at = TWICE[1] + timedelta(minutes=5)
    assert [each.flagged_at for each in found.missed] == [flagged_at, flagged_at]


def test_failures_of_tests_that_were_never_flagged_are_unclear():
    (found,) = replayed(a_story([at(10, 40)], runs=12))
    assert (found.quality.caught, found.quality.missed, found.quality.unclear) == (0, 0, 1)


def test_too_few_flags_or_failures_give_no_share_but_the_number_that_is_missing():
    few = Quality(confirmed=FLAGS_MIN - 2, unconfirmed=1, open=2, caught=FAILURES_MIN - 1)
    assert few.precision == (None, None, 1)
    assert few.recall == (None, None, 1)
    enough = few + Quality(unconfirmed=1, missed=11, unclear=60)
    assert enough.precision == ((FLAGS_MIN - 2) / (FLAGS_MIN + 2), 1.0, 0)
    assert enough.recall == (0.29, 0.725, 0)


def test_many_flags_that_cannot_be_told_yet_hide_the_share_of_the_others():
    assert Quality(confirmed=30, open=10).precision == (0.75, 1.0, 0)
    assert Quality(confirmed=30, open=20).precision == (None, None, 8)


def test_what_is_said_of_a_day_is_what_was_said_on_that_day():
    late = [at(30, 40), at(30.5, 40)]
    story = a_story([*TWICE, at(13, 40), *late], runs=12)
    (whole,) = replayed(story)
    assert whole.quality.flags == 2
    for day, flags in ((10.4, 0), (12, 1), (14, 1), (30.4, 1), (32, 2)):
        cut = Story()
        cut.uploads = [each for each in story.uploads if each.at < at(day)]
        (then,) = replayed(cut)
        assert then.quality.flags == flags


def test_flags_count_from_the_day_on_which_their_window_is_whole():
    story = a_story([at(1, 40), at(1.5, 40), at(20, 40), at(20.5, 40)], runs=12)
    (young,) = replayed(story)
    (old,) = replayed(story, earlier=Earlier(START.toordinal() - 100, {}))
    assert (young.since, young.quality.flags) == (at(0), 2)
    assert (old.since, old.quality.flags) == (at(14), 1)


def test_weeks_end_with_the_newest_day_and_hold_every_flag():
    (found,) = replayed(a_story(TWICE, days=30))
    first = START.toordinal()
    assert [day - first for day, _ in found.by_week] == [0, 2, 9, 16, 23]
    assert [flags for _, flags in found.by_week] == [0, 0, 1, 0, 0]


def test_a_lower_limit_flags_more_and_a_higher_one_less():
    story = a_story(TWICE, runs=12)
    strict, normal, eager = replayed(story, *(Rules(threshold=each) for each in (1e6, 100, 30)))
    assert strict.quality.flags == 0
    assert normal.quality.flags == eager.quality.flags == 1


@pytest.mark.parametrize(
    ("rules", "excused"),
    [
        (Rules(), 0),
        (Rules(excused=FLAKY, known_texts=False), 2),
        (Rules(excused=FLAKY), 1),
        (Rules(excused=frozenset({Health.BROKEN}), known_texts=False), 0),
    ],
)
def test_failures_are_excused_by_the_status_then_and_by_a_text_known_from_others(rules, excused):
    story = a_story(TWICE)
    own = [story.ran(at(13, 40), "F"), story.ran(at(13, 80), "F")]
    ids = [told(each).id for each in own]
    before = next(told(each).id for each in story.uploads if each.at == TWICE[0])
    texts = {before: {T: ("timeout",)}, ids[0]: {T: ("timeout",)}, ids[1]: {T: ("new",)}}
    (found,) = replayed(story, rules, texts=texts)
    assert (found.failures, found.excused) == (4, excused)


def test_a_text_seen_in_the_same_pull_request_alone_is_not_known():
    story = a_story(TWICE)
    own = story.ran(at(13, 40), "F")
    before = next(told(each).id for each in story.uploads if each.at == TWICE[0])
    texts = {before: {T: ("timeout",)}, told(own).id: {T: ("timeout",)}}
    rules = Rules(excused=FLAKY)
    (known,) = replayed(story, rules, texts=texts, prs={before: (1,), told(own).id: (2,)})
    (unknown,) = replayed(story, rules, texts=texts, prs={before: (2,), told(own).id: (2,)})
    assert (known.excused, unknown.excused) == (1, 0)


def test_runs_of_the_queue_are_spared_if_the_flake_was_known_when_they_failed():
    story = a_story(TWICE)
    for when in (at(9, 10), at(13, 40)):
        story.flipped(when, kind=QUEUE, pr=None)
    story.ran(at(14, 40), "F", kind=QUEUE, pr=None)
    (found,) = replayed(story)
    assert (found.innocents, found.spared) == (2, 1)


def test_branches_that_become_stable_make_a_test_broken():
    story = a_story([])
    for nth in range(6):
        story.ran(at(20 + nth / 10), "F", kind=OTHER, pr=None, branch="release/2")
    kinds = {
        told(each).id: UploadClass(STABLE) for each in story.uploads if each.branch == "release/2"
    }
    before, after = replayed(story, Rules(), Rules(kinds=kinds))
    assert (before.breaks, after.breaks) == (0, 1)


def test_a_repository_without_evidence_has_no_past():
    assert past.replayed(Stored(()), Sets(), (Rules(),)) == ()
