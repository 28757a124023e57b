"""Decide when the checks of a test run are read."""

from collections.abc import Iterable
from datetime import datetime, timedelta


class CheckReadScheduler:
    """Schedules reads of checks, so that a burst of events causes one read.

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

    def should_read_now(self, queue_id: int, run: str, now: datetime) -> bool:
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
        """Return whether a read is postponed or under way."""
        return bool(self._later or self._reading)
