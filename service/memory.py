"""What one process remembers between calls; losing all of it costs work, never a result."""

import asyncio
from bisect import insort
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache


class Gates:
    """One gate per number: inside this process whoever goes through it goes alone."""

    def __init__(self) -> None:
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    def of(self, number: int) -> asyncio.Lock:
        """The gate of a queue's or a repository's number; the same object every time."""
        return self._locks[number]


class Looks:
    """When each commit's checks were last read, so that a burst of events causes one read.

    The first event of a burst reads at once; what follows within `JOINED` is read once more when
    that time is over (docs/design/provider.md 8.2). A postponed read is open until `ended` names
    it; an event during the read postpones another one. Kept in memory: the sweep reads what is
    lost, less often the longer the run lasts.
    """

    JOINED = timedelta(seconds=2)
    SWEPT_AFTER_SHARE = 0.5
    SWEPT_AFTER_MAX = timedelta(minutes=5)

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], datetime] = {}
        self._later: dict[tuple[int, str], datetime] = {}
        self._reading: set[tuple[int, str]] = set()

    def now_or_later(self, queue_id: int, run: str, now: datetime) -> bool:
        """Return whether to read now; otherwise the read is postponed until `due` returns it."""
        key = (queue_id, run)
        last = self._last.get(key)
        if last is not None and now - last < self.JOINED:
            self._later.setdefault(key, last + self.JOINED)
            return False
        self._last[key] = now
        self._later.pop(key, None)
        return True

    def due(self, now: datetime) -> tuple[tuple[int, str], ...]:
        """Begin the postponed reads whose time has come, and forget what is long past.

        The caller must read each of them and then call `ended`.
        """
        ripe = tuple(key for key, at in self._later.items() if at <= now)
        for key in ripe:
            del self._later[key]
            self._last[key] = now
        self._reading.update(ripe)
        stale = [key for key, at in self._last.items() if now - at > 2 * self.SWEPT_AFTER_MAX]
        for key in stale:
            del self._last[key]
        return ripe

    def is_swept(self, queue_id: int, run: str, began_at: datetime, now: datetime) -> bool:
        """Return whether a sweep reads a run now, and if so count it as read.

        It waits for half of the run's age since the last read, at most 5 minutes.
        """
        key = (queue_id, run)
        last = self._last.get(key)
        pause = min((now - began_at) * self.SWEPT_AFTER_SHARE, self.SWEPT_AFTER_MAX)
        if last is not None and now - last < pause:
            return False
        self._last[key] = now
        return True

    def forget(self, queue_id: int, run: str) -> None:
        """Forget that a run was read, because the read failed: the next sweep reads it again."""
        self._last.pop((queue_id, run), None)

    def ended(self, reads: Iterable[tuple[int, str]]) -> None:
        """End reads that `due` returned, whether they succeeded or failed."""
        self._reading.difference_update(reads)

    def next_at(self) -> datetime | None:
        """Return when the next postponed read is due."""
        return min(self._later.values(), default=None)

    @property
    def is_open(self) -> bool:
        """Whether a read is postponed or under way."""
        return bool(self._later or self._reading)


class Window:
    """Counts events by key: at most `most` within a time. A restart forgets them.

    An event counts when it happened, whenever it is heard of and in whatever order.
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


class Commands:
    """How many commands people send (docs/design/comments.md 3).

    Ten a minute each, 30 an hour for one pull request.
    """

    KEYS_MAX = 10_000

    def __init__(self) -> None:
        self._people = Window(10, timedelta(minutes=1))
        self._pull_requests = Window(30, timedelta(hours=1))
        self._refused: LRUCache[str, datetime] = LRUCache(self.KEYS_MAX)
        self._denied: LRUCache[str, bool] = LRUCache(self.KEYS_MAX)

    def until(self, person: str, pull: str, at: datetime) -> datetime | None:
        """Count one command of a time; if it is one too many, return when the next is accepted."""
        waits = (self._people.count(person, at), self._pull_requests.count(pull, at))
        return max((at for at in waits if at is not None), default=None)

    def is_first_denial(self, person: str) -> bool:
        """Whether this person was not refused in words on this pull request yet."""
        if person in self._denied:
            return False
        self._denied[person] = True
        return True

    def is_first_refusal(self, person: str, pull: str, at: datetime, until: datetime) -> bool:
        """Whether this person was not told yet, on this pull request, to wait until a time.

        `at` is the time of this command, `until` when the next is accepted. A command after a
        time that was told belongs to another flood.
        """
        key = f"{person} {pull}"
        told = self._refused.get(key)
        if told is not None and at < told:
            return False
        self._refused[key] = until
        return True


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
        """How many may be taken now, and the seconds until the bucket is full."""
        if self.rate is None:
            return 0, 0.0
        missing_s = max(0.0, self._full_at_s.get(key, now_s) - now_s)
        return int(self.rate.burst - missing_s * self.rate.per_second + ROUNDING), missing_s

    def _wait_s(self, missing_s: float) -> float:
        """How long from a bucket that is full in so many seconds, until it holds one."""
        if self.rate is None:
            return 0.0
        return max(0.0, missing_s - (self.rate.burst - 1) / self.rate.per_second)


class RefusedRuns:
    """CI runs that were refused as a credential a short time ago.

    Kept for a minute, so that repeating one asks the provider once; a run may start again.
    """

    KEPT = timedelta(minutes=1)
    KEYS_MAX = 10_000

    def __init__(self) -> None:
        self._refused: LRUCache[tuple[int, str], datetime] = LRUCache(self.KEYS_MAX)

    def holds(self, repository_id: int, run_id: str, now: datetime) -> bool:
        """Whether the run was refused within the last minute."""
        at = self._refused.get((repository_id, run_id))
        return at is not None and now - at < self.KEPT

    def put(self, repository_id: int, run_id: str, now: datetime) -> None:
        """Remember a refused run."""
        self._refused[repository_id, run_id] = now


Stamp = tuple[int, int, int]
Kept = TypeVar("Kept")


class Shelf(Generic[Kept]):
    """Answers to one kind of question, all of which stand as long as one version does.

    A full one is cleared as for another version: every request looks here, and who is looked for
    least recently would cost more to know than to ask again.
    """

    def __init__(self) -> None:
        self._version = -1
        self._kept: dict[Hashable, Kept] = {}

    def get(self, version: int, question: Hashable) -> Kept | None:
        """What was answered under this version, if anything."""
        if version != self._version:
            self._kept.clear()
            self._version = version
        return self._kept.get(question)

    def put(self, version: int, question: Hashable, answer: Kept) -> None:
        """Keep an answer found under this version."""
        if version == self._version:
            if len(self._kept) >= SHELF_MAX:
                self._kept.clear()
            self._kept[question] = answer


SHELF_MAX = 10_000
"""Answers kept of one kind."""

PASTS_MAX = 512
"""Queues whose past is kept, as many as their values (docs/design/transactions.md 3)."""

FAILING_COUNTS_MAX = 8
"""Counted spans kept: some 5 MB each of 100,000 failing tests."""


class FailingCounts:
    """The failing tests of spans that were counted last. Used from several threads."""

    def __init__(self) -> None:
        self._kept: LRUCache[Hashable, object] = LRUCache(FAILING_COUNTS_MAX)
        self._lock = Lock()

    def get(self, key: Hashable) -> object | None:
        """Return what was kept under a key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: Hashable, counted: object) -> None:
        """Keep what was counted."""
        with self._lock:
            self._kept[key] = counted


class Memory:
    """Answers that stand as long as nothing they were made of has changed.

    `generation` grows when something outside a queue's version changes (targets uploaded).
    `troubled_hosts` are hosts whose installations could not be read, with what the host said.
    `seen_queues` are the versions that the watchdog saw last, by queue; `stalled` names what stands
    still in which queue. `files_read` are branch and commit at which this process has read the
    repository's file, by queue. `reporters_read` are the commits from which reporters of required
    names were learned last, by queue, with the time.
    `pasts` are what ended submissions of a queue say, by queue; they are read anew on a clock.
    `figures` are a queue's metrics as text, by queue.
    `failing_tests` are the failing tests of a repository by span and revision.
    `callers` and `places` stand under the store's access version: who holds a token, and which
    repository or queue is meant. `access_version` is the one that the newest request was let in
    under.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.seen_queues: LRUCache[int, object] = LRUCache(PASTS_MAX)
        self.files_read: LRUCache[int, tuple[str, str]] = LRUCache(PASTS_MAX)
        self.reporters_read: LRUCache[int, tuple[tuple[str, ...], datetime]] = LRUCache(PASTS_MAX)
        self.stalled: dict[int, frozenset[str]] = {}
        self.troubled_hosts: dict[str, Exception] = {}
        self.access_version = -1
        self.refused_runs = RefusedRuns()
        self.pasts: LRUCache[int, object] = LRUCache(PASTS_MAX)
        self.figures: LRUCache[int, object] = LRUCache(PASTS_MAX)
        self.failing_tests = FailingCounts()
        self.callers: Shelf[object] = Shelf()
        self.places: Shelf[object] = Shelf()
        self._views: dict[int, tuple[Stamp, dict[int | None, object]]] = {}

    def views(self, queue_id: int, stamp: Stamp) -> dict[int | None, object]:
        """Views of a queue under exactly this stamp: by number of a pull request, None the whole.

        Those under another stamp go.
        """
        kept = self._views.get(queue_id)
        if kept is None or kept[0] != stamp:
            kept = self._views[queue_id] = (stamp, {})
        return kept[1]

    def forget(self) -> None:
        """Let every view be made anew."""
        self.generation += 1
