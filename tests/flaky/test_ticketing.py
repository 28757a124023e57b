"""When a test gets an issue, and what becomes of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.testhealth.detector import ticketing
from service.testhealth.detector.ticketing import ProviderIssue, TicketIssue, Writing
from service.vocabulary import Health

HEALTHY, FLAKY, BROKEN = Health.HEALTHY, Health.FLAKY, Health.BROKEN
NOW = datetime(2026, 3, 22, 14, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "https://github.test/octo/widgets/issues/9"

ASKED = ticketing.new_issue(7, FLAKY, NOW)
KEPT = replace(ASKED, number=9, html_url=URL)
OPEN = ProviderIssue(9, URL, None)
FRESH = replace(OPEN, closed_at=NOW - 9 * DAY)
OLD = replace(OPEN, closed_at=NOW - 10 * DAY)

TEXT = Writing()
COMMENT = Writing(comments=True)
WRITINGS: dict[str, tuple[TicketIssue, ProviderIssue | None, Health, Writing | None]] = {
    "made when it was asked for": (ASKED, None, FLAKY, Writing(is_open=True)),
    "not made when the test is healthy by then": (ASKED, None, HEALTHY, None),
    "found again after a stop": (ASKED, OPEN, FLAKY, TEXT),
    "found again, healthy meanwhile": (ASKED, OPEN, HEALTHY, Writing(True, False)),
    "found again, closed long ago": (ASKED, OLD, FLAKY, Writing(True, True)),
    "found again, closed lately": (ASKED, FRESH, FLAKY, COMMENT),
    "new figures": (KEPT, OPEN, FLAKY, TEXT),
    "broken after flaky": (KEPT, OPEN, BROKEN, COMMENT),
    "healthy": (KEPT, OPEN, HEALTHY, Writing(True, False)),
    "healthy, closed by somebody before": (KEPT, OLD, HEALTHY, Writing(True, False)),
    "closed by somebody": (KEPT, OLD, FLAKY, None),
    "closed by somebody, broken since": (KEPT, FRESH, BROKEN, COMMENT),
    "closed by somebody long ago, broken now": (KEPT, OLD, BROKEN, Writing(True, True)),
    "flaky again soon": (replace(KEPT, told=HEALTHY), FRESH, FLAKY, COMMENT),
    "flaky again later": (replace(KEPT, told=HEALTHY), OLD, FLAKY, Writing(True, True)),
    "flaky again soon, told already": (replace(KEPT, reopens=True), FRESH, FLAKY, None),
    "still flaky after ten days": (replace(KEPT, reopens=True), OLD, FLAKY, Writing(False, True)),
    "reopened by somebody while healthy": (replace(KEPT, told=HEALTHY), OPEN, HEALTHY, None),
    "deleted": (KEPT, None, FLAKY, None),
    "deleted, broken since": (KEPT, None, BROKEN, None),
}


@pytest.mark.parametrize("name", WRITINGS)
def test_what_is_written(name: str):
    issue, found, status, writing = WRITINGS[name]
    assert ticketing.writing_of(issue, found, status, NOW) == writing


REMEMBERED: dict[str, tuple[TicketIssue, ProviderIssue | None, Health, TicketIssue | None]] = {
    "made": (ASKED, OPEN, FLAKY, replace(KEPT, look_at=NOW + DAY)),
    "never made": (ASKED, None, HEALTHY, None),
    "told of another status": (KEPT, OPEN, BROKEN, replace(KEPT, told=BROKEN, look_at=NOW + DAY)),
    "healthy": (
        KEPT,
        replace(OPEN, closed_at=NOW),
        HEALTHY,
        replace(KEPT, told=HEALTHY, look_at=None),
    ),
    "closed by somebody": (KEPT, FRESH, FLAKY, replace(KEPT, look_at=None)),
    "flaky again soon": (
        replace(KEPT, told=HEALTHY),
        FRESH,
        FLAKY,
        replace(KEPT, reopens=True, look_at=NOW + DAY),
    ),
    "flaky again soon, broken since": (
        replace(KEPT, reopens=True),
        FRESH,
        BROKEN,
        replace(KEPT, told=BROKEN, reopens=True, look_at=NOW + DAY),
    ),
    "reopened": (replace(KEPT, reopens=True), OPEN, FLAKY, replace(KEPT, look_at=NOW + DAY)),
    "healthy before it was reopened": (
        replace(KEPT, reopens=True),
        FRESH,
        HEALTHY,
        replace(KEPT, told=HEALTHY, look_at=None),
    ),
    "reopened by somebody while healthy": (
        replace(KEPT, told=HEALTHY),
        OPEN,
        HEALTHY,
        replace(KEPT, told=HEALTHY, look_at=None),
    ),
    "deleted": (KEPT, None, FLAKY, replace(KEPT, look_at=None)),
    "deleted, healthy now": (KEPT, None, HEALTHY, None),
    "deleted, broken now": (KEPT, None, BROKEN, None),
}


@pytest.mark.parametrize("name", REMEMBERED)
def test_what_is_remembered(name: str):
    issue, stands, status, after = REMEMBERED[name]
    assert ticketing.remembered(issue, stands, status, NOW) == after


def test_a_day_has_room_for_five_new_ones():
    assert [ticketing.opening(NOW, lately).many for lately in (0, 4, 5, 6)] == [5, 1, 0, 0]
    wanted = ticketing.opening(NOW, 0)
    assert (wanted.since, wanted.impact) == (NOW - DAY, 3)
