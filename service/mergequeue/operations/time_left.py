"""When a queued pull request probably merges, as instants to show (UX.md 1.8)."""

from datetime import datetime, timedelta

from service.mergequeue.engine.eta import TimeLeftRange
from service.text.times import TimeLeft


def of(left: TimeLeftRange | None, now: datetime) -> TimeLeft | None:
    """The range as instants, to the second; None where none is known."""
    if left is None:
        return None
    latest = _after(now, left.latest_s)
    return TimeLeft(_after(now, left.earliest_s), latest, overdue=latest < now)


def _after(now: datetime, seconds: float) -> datetime:
    # What is told of a run under way stays the same from one second to the next.
    instant = now + timedelta(seconds=seconds + 0.5)
    return instant.replace(microsecond=0)
