"""A flaky test that is removed, or gets another name, is not flaky for weeks any more."""

from datetime import timedelta

import pytest

from service.testhealth.detector.health import Flag
from service.vocabulary import Health as Status
from tests.bench.flaky.ledger import STABLE
from tests.flaky.histories import Story, T, at
from tests.flaky.test_index import Judged, wanted

HOUR = timedelta(hours=1)


def flaky_until(day, *, main="P" * 12):
    """T is flaky in pull requests on its first days, and runs on main until then."""
    story = Story()
    for number in range(6):
        story.flipped(at(day - 1, 60 * number))
    story.main(at(day) - HOUR * len(main), main)
    return story


def main_without(story, start, count=5):
    for number in range(count):
        story.ran(start + HOUR * number, "", kind=STABLE, pr=None)


def test_a_flaky_test_that_main_runs_no_more_is_healthy_a_day_after_its_last_run():
    story = flaky_until(3)
    main_without(story, at(3, 30))
    assert story.ledger().judge(T).value is Status.FLAKY
    main_without(story, at(4), 1)
    found = story.ledger().judge(T)
    assert (found.value, found.is_stale, found.since) == (
        Status.HEALTHY,
        True,
        at(3, -60) + 24 * HOUR,
    )
    assert found.reason.startswith("Not run any more on main, and nowhere since 2026-03-03")


def test_it_is_flaky_again_when_it_runs_again():
    story = flaky_until(3)
    main_without(story, at(3, 30), 30)
    assert story.ledger().judge(T).value is Status.HEALTHY
    story.ran(at(5), "P", kind=STABLE, pr=None)
    assert story.ledger().judge(T).value is Status.FLAKY


def test_pull_requests_that_still_run_it_keep_it_flaky():
    story = flaky_until(3)
    main_without(story, at(3, 30), 30)
    story.ran(at(4, 12 * 60), "P")
    main_without(story, at(4, 13 * 60), 5)
    assert story.ledger().judge(T).value is Status.FLAKY


@pytest.mark.parametrize("main", ["P" * 9, "P..P..P..P..P..P..P", "."])
def test_where_main_seldom_runs_it_its_absence_says_nothing(main):
    story = flaky_until(3, main=main)
    main_without(story, at(3, 30), 30)
    assert story.ledger().judge(T).value is Status.FLAKY


def test_what_a_person_said_of_it_stays():
    story = flaky_until(3)
    main_without(story, at(3, 30), 30)
    flags = (Flag(at(2), Status.FLAKY, "bob", "waits on the real clock."),)
    assert story.ledger().judge(T, flags).value is Status.FLAKY


@pytest.mark.parametrize("late", range(5))
def test_the_run_of_main_that_shows_it_may_come_late(late):
    story = flaky_until(3)
    before = len(story.uploads)
    main_without(story, at(3, 30))
    story.ran(at(5), "")
    arriving = [*story.uploads]
    moved = arriving.pop(before + late)
    judged = Judged()
    for each in arriving:
        judged.change([each])
    assert judged.said[T].value is Status.FLAKY
    judged.change([moved])
    expected = wanted(story.uploads)
    assert judged.of(expected) == expected
    assert expected[T].value is Status.HEALTHY
    judged.change([], [moved])
    assert judged.said[T].value is Status.FLAKY
