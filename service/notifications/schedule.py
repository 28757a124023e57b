"""Decide when a failed attempt is repeated, and when an endpoint is disabled. Pure.

See docs/design/notifications.md 2.
"""

import zlib
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

RETRIES: tuple[timedelta, ...] = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""Pause before each further attempt: ten over three days."""

SPREAD = 0.1
"""Greatest random change of a pause, as a share of it."""

RETRY_AFTER_MAX = timedelta(hours=24)
OBEYED = frozenset({429, 503})
"""Statuses whose `Retry-After` counts."""

GONE = 410
FAILING_FOR = timedelta(days=5)
FAILING_DAYS = FAILING_FOR.days
FAILED_MESSAGES_MIN = 10


def next_try(
    tries: int, spread_by: str, now: datetime, retry_after: timedelta | None
) -> datetime | None:
    """Return the time of the next attempt after `tries` failed ones in a row; None: no more.

    `tries` is at least 1. `spread_by` is any text: the same text gives the same spread.
    `retry_after` of the receiver can only delay the attempt.
    """
    if tries > len(RETRIES):
        return None
    pause = RETRIES[tries - 1]
    share = zlib.crc32(f"{spread_by}/{tries}".encode()) / 0xFFFFFFFF
    spread = pause * (1 + SPREAD * (2 * share - 1))
    return now + max(spread, min(retry_after or timedelta(), RETRY_AFTER_MAX))


def retry_after_of(status: int | None, header: str | None, now: datetime) -> timedelta | None:
    """Return the pause that a receiver asks for: seconds or a date (RFC 9110 10.2.3).

    None if the header does not count for its status or cannot be parsed.
    """
    if status not in OBEYED or header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), RETRY_AFTER_MAX.total_seconds()))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max((at if at.tzinfo else at.replace(tzinfo=UTC)) - now, timedelta())


def disabled_reason(
    status: int | None, failing_since: datetime, failed_messages: int, now: datetime
) -> str | None:
    """Return why an endpoint is disabled after a failed attempt; None: it is not.

    `failing_since` and `failed_messages` cover the time since its last success.
    """
    if status == GONE:
        return "It answered 410: gone."
    if now - failing_since >= FAILING_FOR and failed_messages >= FAILED_MESSAGES_MIN:
        return f"Only failures for {FAILING_DAYS} days."
    return None
