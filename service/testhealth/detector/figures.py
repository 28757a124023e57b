"""Rates of failure over the last hours, exact to the attempt (docs/design/detector.md 12).

Whole days come from counts, so a window is told as the days after its first one, and the part
of that first day which lies inside.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

WEEK = timedelta(hours=168)
DAY = timedelta(hours=24)
DECIMALS = 6

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Window:
    """The time after `start`, up to and with `end`.

    It is the part of the first day after `start`, and all of `whole_from` and later days but
    what lies behind `end`.
    """

    start: datetime
    end: datetime

    @property
    def whole_from(self) -> int:
        """The first UTC day that lies inside from its beginning."""
        return day_of(self.start) + 1


def window(now: datetime, span: timedelta) -> Window:
    """The last hours, the present instant with them."""
    return Window(now - span, now)


def rate(passed: int, failed: int) -> float:
    """Failed attempts of all that passed or failed; 0 without any, six decimals."""
    return round(failed / (passed + failed), DECIMALS) if passed + failed else 0.0


def day_of(at: datetime) -> int:
    """The UTC day of an instant: days since 1970."""
    return (at - _EPOCH) // _ONE_DAY


def beginning_of(day: int) -> datetime:
    """Its first instant."""
    return _EPOCH + day * _ONE_DAY
