"""Durations, times of day, time left."""

from datetime import UTC, datetime, timedelta

import pytest

from service.text import times
from service.text.times import TimeLeft

NOW = datetime(2026, 3, 2, 14, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (12 * 60 + 30, "12 min"),
        (3600, "1 h"),
        (70 * 60, "1 h 10 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (48 * 3600, "2 d"),
        (76 * 3600, "3 d 4 h"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds, text):
    assert times.duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (datetime(2026, 3, 2, 0, 0, tzinfo=UTC), "00:00 UTC"),
        (datetime(2026, 3, 1, 23, 59, tzinfo=UTC), "1 Mar 23:59 UTC"),
        (datetime(2025, 11, 12, 8, 30, tzinfo=UTC), "12 Nov 2025 08:30 UTC"),
    ],
)
def test_a_time_has_its_date_unless_it_is_today(at, text):
    assert times.clock_time(at, NOW) == text


def test_a_line_of_history_tells_seconds():
    assert times.second_of(NOW + timedelta(seconds=9), NOW) == "14:05:09"
    assert times.second_of(NOW - timedelta(days=1), NOW) == "1 Mar 14:05:00"


def left(earliest: float, latest: float) -> TimeLeft:
    ends = [NOW + timedelta(minutes=each) for each in (earliest, latest)]
    return TimeLeft(ends[0], ends[1], overdue=latest < 0)


@pytest.mark.parametrize(
    ("range_", "text"),
    [
        (left(12, 18), "about 12 to 18 min left"),
        (left(50, 70), "about 50 min to 1 h 10 min left"),
        (left(-3, 3.2), "up to 4 min left"),
        (left(7, 7), "about 7 min left"),
        (left(0, 0.1), "up to 1 min left"),
        (left(-9, -4), "4 min overdue"),
    ],
)
def test_time_left_is_a_range_until_it_is_over(range_, text):
    assert times.remaining(range_, NOW) == text


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (102, "102nd"),
        (111, "111th"),
    ],
)
def test_places_are_ordinals(place, text):
    assert times.ordinal(place) == text
