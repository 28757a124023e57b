"""What was known of a failed test when a run of the queue began (docs/design/evidence.md 4)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from service.testhealth.detector import health, hindsight
from service.testhealth.detector.health import Flag, Health
from service.testhealth.detector.hindsight import Moment
from service.testhealth.detector.spans import Settled
from service.vocabulary import Health as Status
from tests.bench.flaky.ledger import Ledger
from tests.flaky.histories import START, Story, T, at, in_an_old_repository

HOUR = timedelta(hours=1)


def was_flaky(ledger: Ledger, moment: Moment, *flags: Flag) -> bool:
    return hindsight.was_flaky(ledger.evidence_of(T, flags), ledger.scale, moment)


@pytest.fixture(name="story")
def _story() -> Story:
    """T disagreed with itself on two pull requests in its second hour, and then never again."""
    story = in_an_old_repository()
    story.passes(at(0), 10, HOUR)
    for minute in (60, 70):
        story.flipped(at(0, minute))
    for day in range(1, 16):
        story.passes(at(day), 50, timedelta(days=1))
    return story


@pytest.mark.parametrize(("days", "is_flaky"), [(0, False), (0.1, True), (2, True), (15, False)])
def test_a_test_was_as_it_had_last_become_when_the_run_began(
    story: Story, days: float, is_flaky: bool
) -> None:
    assert was_flaky(story.ledger(), Moment(at(days), "main")) is is_flaky


def test_what_the_runs_own_pull_requests_showed_does_not_count(story: Story) -> None:
    ledger = story.ledger()
    shown = {event.upload for event in ledger.events_a[T]}
    assert not was_flaky(ledger, Moment(at(2), "main", shown))
    assert was_flaky(ledger, Moment(at(2), "main", {"another"}))


def test_what_a_person_called_broken_then_was_not_flaky(story: Story) -> None:
    flag = Flag(at(1), Status.BROKEN, "bob")
    assert not was_flaky(story.ledger(), Moment(at(2), "main"), flag)
    assert was_flaky(story.ledger(), Moment(at(0.5), "main"), flag)


@pytest.mark.parametrize(
    ("verdicts", "branch", "hours", "is_red"),
    [
        ("PFF", "main", 2, True),
        ("PFF", "release", 2, False),
        ("PFF", "main", 1.9, False),
        ("FPF", "main", 2, False),
        ("PFFP", "main", 2, True),
        ("PFFP", "main", 3, False),
        ("F", "main", 1, False),
        ("PF.F", "main", 3, True),
    ],
)
def test_the_two_newest_verdicts_on_the_queues_branch_decide(
    verdicts: str, branch: str, hours: float, is_red: bool
) -> None:
    story = Story()
    story.main(START, verdicts)
    ledger = story.ledger()
    moment = Moment(START + hours * HOUR, branch)
    assert hindsight.was_red(ledger.evidence_of(T), ledger.scale, moment) is is_red


@pytest.mark.parametrize(
    ("branch", "hours", "is_red"),
    [("main", 1, True), ("main", -1, False), ("main", 3, False), ("release", 1, False)],
)
def test_a_test_that_was_broken_is_red_though_its_verdicts_are_gone(
    branch: str, hours: float, is_red: bool
) -> None:
    story = Story()
    story.main(START, "F.P")
    ledger = story.ledger()
    (track,) = ledger.tracks[T]
    settled = Settled(START, None, None, ((track.series.branch, track.series.job, START),))
    known = replace(ledger.evidence_of(T), settled=settled)
    moment = Moment(START + hours * HOUR, branch)
    assert hindsight.was_red(known, ledger.scale, moment) is is_red


def broken_since(since: datetime, verdicts: str) -> Health:
    """How T is judged where it was broken since then, and these verdicts of main are left."""
    story = Story()
    story.main(START, verdicts)
    ledger = story.ledger()
    (track,) = ledger.tracks[T]
    settled = Settled(START, None, None, ((track.series.branch, track.series.job, since),))
    return health.judge(replace(ledger.evidence_of(T), settled=settled), ledger.scale)


def test_a_broken_time_is_over_at_the_first_pass_that_is_left() -> None:
    (span,) = broken_since(START - HOUR, "PPF").broken
    assert (span.since, span.until) == (START - HOUR, START)


def test_a_pass_where_a_broken_time_began_undoes_it() -> None:
    assert broken_since(START, "PPF").broken == ()


def test_a_broken_time_of_which_no_verdict_is_left_is_forgotten() -> None:
    assert broken_since(START + 3 * HOUR, "PPF").broken == ()
