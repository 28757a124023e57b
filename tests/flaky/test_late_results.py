"""A test that has just broken on main is not flaky, in whatever order CI tests the commits."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from service.testhealth.detector import hindsight
from service.testhealth.detector.hindsight import Moment
from service.vocabulary import Health as Status
from tests.bench.flaky.ledger import STABLE, Ledger
from tests.flaky.histories import Story, T, at, in_an_old_repository

MINUTE = timedelta(minutes=1)
GOOD = 10
"""Commits on which the test passed before those of a case."""


def on_main(minutes: list[float], letters: str, first: int = 1) -> Story:
    """A story of commits in their order: when CI tested each, and how the test ended."""
    story = in_an_old_repository()
    told = zip([*range(-GOOD, 0), *minutes], "P" * GOOD + letters, strict=True)
    for position, (minute, letter) in enumerate(told, first):
        story.ran(at(0, minute), letter, kind=STABLE, pr=None, position=position)
    return story


def without_positions(story: Story) -> Ledger:
    """The same uploads, of commits that nobody knows."""
    return Ledger([replace(each, position=None) for each in story.uploads])


@pytest.mark.parametrize(
    ("letters", "minutes"),
    [
        ("PFF", [5, 0, 9]),
        ("PPFF", [5, 9, 1, 7]),
        ("PFFF", [5, 1, 7, 9]),
        ("PFFP", [5, 0, 9, 12]),
    ],
)
def test_commits_are_compared_in_their_order_and_not_in_that_of_their_ci(
    letters: str, minutes: list[float]
) -> None:
    story = on_main(minutes, letters)
    assert story.ledger().judge(T).history == ()
    assert without_positions(story).judge(T).history == ()


@pytest.mark.parametrize("codes", ["ab", "ba"])
def test_commits_that_landed_in_the_same_second_have_their_order(codes: str) -> None:
    """GitHub tells to the second when a run began."""
    uploads = on_main([0, 0, 9], "PFF").uploads
    named = {each.digest: f"sha:{code}" for each, code in zip(uploads[-3:], codes, strict=False)}
    renamed = [replace(each, code=named.get(each.digest, each.code)) for each in uploads]
    assert Ledger(renamed).judge(T).history == ()


def test_a_test_that_fails_alone_on_its_commits_is_flaky_when_ci_ran_out_of_order() -> None:
    story = on_main([5, 0, 9, 7, 12], "FPPFP")
    assert story.ledger().judge(T).value is Status.FLAKY


def test_a_late_pass_of_an_older_commit_does_not_hide_that_main_is_red() -> None:
    story = on_main([9, 1, 5], "PFF")
    ledger = story.ledger()
    moment = Moment(at(0, 10), "main")
    assert hindsight.was_red(ledger.evidence_of(T), ledger.scale, moment)


def test_a_late_pass_of_an_older_commit_does_not_end_that_a_test_is_broken() -> None:
    story = Story()
    story.main(at(0), "P" * 30 + "FFFF", timedelta(hours=1))
    numbered = [replace(each, position=number) for number, each in enumerate(story.uploads, 1)]
    late: datetime = numbered[-1].at + MINUTE
    again = replace(numbered[10], digest="late", at=late, run="late", code="sha:late")
    assert Ledger([*numbered, again]).judge(T).value is Status.BROKEN
    unknown = replace(again, position=None)
    assert Ledger([*numbered, unknown]).judge(T).value is Status.HEALTHY
