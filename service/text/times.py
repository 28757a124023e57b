"""Durations, times of day and the time left, as people read them (docs/design/comments.md 5)."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The time until it probably ends; `overdue` once the later end has passed."""

    earliest: datetime
    latest: datetime
    overdue: bool


def duration(length: timedelta) -> str:
    """`40 s`, `12 min`, `1 h 10 min`, `3 d 4 h`; rounded down, never negative."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def clock_time(at: datetime, now: datetime) -> str:
    """`14:02 UTC`; with the date if that is not today's, with the year if not this one."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    time = f"{at:%H:%M} UTC"
    if at.date() == now.date():
        return time
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at.day} {_MONTHS[at.month - 1]}{year} {time}"


def moment(at: datetime) -> str:
    """`1 Dec 2026 08:00 UTC`, for a time that may be far away."""
    at = at.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year} {at:%H:%M} UTC"


def day_of(at: datetime, now: datetime) -> str:
    """`12 Dec`, with the year if it is not this one."""
    at = at.astimezone(UTC)
    year = "" if at.year == now.astimezone(UTC).year else f" {at.year}"
    return f"{at.day} {_MONTHS[at.month - 1]}{year}"


def second_of(at: datetime, now: datetime) -> str:
    """`14:02:11` for a line of history; with the date if that is not today's."""
    at = at.astimezone(UTC)
    prefix = clock_time(at, now).removesuffix(f"{at:%H:%M} UTC")
    return f"{prefix}{at:%H:%M:%S}"


def span(left: TimeLeft, now: datetime) -> str:
    """`12 to 18 min`, `50 min to 1 h 10 min`, `up to 4 min`; meaningless once overdue."""
    low = math.ceil((left.earliest - now).total_seconds() / 60)
    high = max(1, math.ceil((left.latest - now).total_seconds() / 60))
    if low <= 1:
        return f"up to {_minutes(high)}"
    if low >= high:
        return f"about {_minutes(high)}"
    if high < 60:
        return f"{low} to {high} min"
    return f"{_minutes(low)} to {_minutes(high)}"


def remaining(left: TimeLeft, now: datetime) -> str:
    """`about 12 to 18 min left`, `up to 4 min left` or `4 min overdue`."""
    if left.overdue or now > left.latest:
        return f"{duration(now - left.latest)} overdue"
    text = span(left, now)
    return f"{text} left" if text.startswith(("up to", "about")) else f"about {text} left"


def times(count: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def ordinal(place: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`."""
    if place % 100 in (11, 12, 13):
        return f"{place}th"
    return f"{place}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th') }"


def _minutes(count: int) -> str:
    return duration(timedelta(minutes=count))
