"""Rates and the windows they are taken over (docs/design/detector.md 12)."""

from datetime import UTC, datetime, timedelta

import pytest

from service.testhealth.detector import figures

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "failed", "rate"),
    [(0, 0, 0.0), (1, 0, 0.0), (0, 1, 1.0), (2, 1, 0.333333), (1, 2, 0.666667), (10**7, 1, 0.0)],
)
def test_a_rate_is_the_share_of_failed_attempts_with_six_decimals(passed, failed, rate):
    assert figures.rate(passed, failed) == rate


@pytest.mark.parametrize(
    "past_midnight", [timedelta(), timedelta(microseconds=1), timedelta(hours=23)]
)
def test_a_window_is_a_part_of_its_first_day_and_whole_days_from_then_on(past_midnight):
    now = MIDNIGHT + past_midnight
    window = figures.window(now, figures.WEEK)
    assert (window.start, window.end) == (now - timedelta(days=7), now)
    assert figures.day_of(window.start) + 1 == window.whole_from
    assert figures.beginning_of(window.whole_from) == datetime(2026, 2, 24, tzinfo=UTC)


def test_days_are_counted_from_1970_in_utc():
    assert figures.day_of(datetime(1970, 1, 1, 23, 59, tzinfo=UTC)) == 0
    assert figures.day_of(MIDNIGHT) == figures.day_of(MIDNIGHT - timedelta(microseconds=1)) + 1
    assert figures.beginning_of(figures.day_of(MIDNIGHT + timedelta(hours=5))) == MIDNIGHT
