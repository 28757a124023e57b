"""Limits of events and of requests, counted in the memory of this process."""

from bisect import insort
from dataclasses import dataclass
from datetime import datetime, timedelta

from cachetools import LRUCache


class EventLimit:
    """Counts events by key: at most `most` within a time. A restart forgets them.

    An event counts at the time when it happened; events may arrive late and in any order.
    """

    KEYS_MAX = 10_000

    def __init__(self, most: int, within: timedelta) -> None:
        self.most = most
        self.within = within
        self._events: LRUCache[str, list[datetime]] = LRUCache(self.KEYS_MAX)

    def count(self, key: str, at: datetime) -> datetime | None:
        """Count one event; if it is one too many, return when the next is allowed instead."""
        events = self._events.setdefault(key, [])
        near = [one for one in events if abs(one - at) < self.within]
        if len(near) >= self.most:
            return near[-self.most] + self.within
        insort(events, at)
        del events[: -self.most]
        return None


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second in the long run, and `burst` at once."""

    per_second: float
    burst: int


ROUNDING = 1e-6
"""More than what sums of fractions of a second lose."""


class Buckets:
    """One token bucket a key, all of the same rate; no rate: nobody ever waits.

    Of a bucket only the instant is kept at which it is full again. A full bucket is the same as
    none, so when there are too many, the half that is nearest to full is forgotten.
    """

    KEYS_MAX = 20_000

    def __init__(self, rate: Rate | None) -> None:
        self.rate = rate
        self._full_at_s: dict[str, float] = {}

    def wait_s(self, key: str, now_s: float) -> float:
        """Seconds until one may be taken; 0: now."""
        return self._wait_s(self._full_at_s.get(key, now_s) - now_s)

    def take(self, key: str, now_s: float) -> float:
        """Take one, or nothing when the bucket is empty; seconds to wait then, else 0."""
        if self.rate is None:
            return 0.0
        full_at_s = self._full_at_s.get(key, now_s)
        if full_at_s <= now_s:
            full_at_s = now_s
        elif wait_s := self._wait_s(full_at_s - now_s):
            return wait_s
        self._full_at_s[key] = full_at_s + 1 / self.rate.per_second
        if len(self._full_at_s) > self.KEYS_MAX:
            emptiest = sorted(self._full_at_s.items(), key=lambda kept: kept[1])
            self._full_at_s = dict(emptiest[self.KEYS_MAX // 2 :])
        return 0.0

    def left(self, key: str, now_s: float) -> tuple[int, float]:
        """Return how many may be taken now, and the seconds until the bucket is full."""
        if self.rate is None:
            return 0, 0.0
        missing_s = max(0.0, self._full_at_s.get(key, now_s) - now_s)
        return int(self.rate.burst - missing_s * self.rate.per_second + ROUNDING), missing_s

    def _wait_s(self, missing_s: float) -> float:
        """Return the seconds until a bucket that is full in so many seconds holds one."""
        if self.rate is None:
            return 0.0
        return max(0.0, missing_s - (self.rate.burst - 1) / self.rate.per_second)
