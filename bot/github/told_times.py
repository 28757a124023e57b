"""Times that GitHub's answers name, compared by its own clock: the header `Date`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

SKEW_ABSURD = timedelta(days=36_500)
"""A `Date` header that is further away is ignored."""
WINDOW_S = 3600.0
"""A primary rate limit is reset within this time."""


def skew_s(date: str | None, now: datetime) -> float:
    """Return by how much this machine's clock is ahead of the one of a `Date` header.

    Return 0 for a header that cannot be read or is further away than `SKEW_ABSURD`.
    """
    try:
        skew = now - parsedate_to_datetime(date or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return 0.0
    return 0.0 if abs(skew) > SKEW_ABSURD else skew.total_seconds()


def until_reset_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds until the rate limit of an answer is reset; None if it names no reset.

    A `Date` by which that is more than an hour away, or longer ago, is that of a proxy: then this
    machine's clock counts.
    """
    reset = headers.get("x-ratelimit-reset")
    if reset is None or not reset.isdecimal():
        return None
    left_s = float(reset) - now.timestamp()
    told_s = left_s + skew_s(headers.get("date"), now)
    is_believed = abs(told_s) <= WINDOW_S
    return min(max(told_s if is_believed else left_s, 0.0), WINDOW_S)
