"""What every operation receives as its first argument: the parts the process is made of.

Built once, in `bot/wiring.py`. Only the mappings may grow while running.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from service.boundary import Boundary
from service.clock import Clock, Ids
from service.provider.port import Provider
from service.provider.signals import Delivery, Signal
from service.store.database import Store
from service.store.wakeups import Wakeups


class Keys(Protocol):
    """What is made from the deployment's secret key."""

    def token_digest(self, token: str) -> bytes:
        """The keyed hash under which an API token is stored (RELIABILITY.md 8.1)."""
        ...

    def token_digests(self, token: str) -> tuple[bytes, ...]:
        """The hashes under the present and the previous key, to compare with."""
        ...


Translator = Callable[[Delivery], tuple[Signal, ...]]
"""A provider's own table from a delivery to signals; pure."""


class Gates:
    """One gate per queue: inside this process its turns go one at a time."""

    def __init__(self) -> None:
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    def of(self, queue_id: int) -> asyncio.Lock:
        """The gate of one queue; the same object every time."""
        return self._locks[queue_id]


class Looks:
    """When each commit's checks were last read, so that a burst of events causes one read.

    The first event of a burst reads at once; what follows within `JOINED` is read once more
    when that time is over (GITHUB.md 4.2). Kept in memory: the sweep reads what is lost.
    """

    JOINED = timedelta(seconds=2)

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], datetime] = {}
        self._later: dict[tuple[int, str], datetime] = {}

    def now_or_later(self, queue_id: int, run: str, now: datetime) -> bool:
        """Whether to read now; otherwise the read is noted for `due`."""
        key = (queue_id, run)
        last = self._last.get(key)
        if last is not None and now - last < self.JOINED:
            self._later.setdefault(key, last + self.JOINED)
            return False
        self._last[key] = now
        self._later.pop(key, None)
        return True

    def due(self, now: datetime) -> tuple[tuple[int, str], ...]:
        """Noted reads whose time has come, each given out once; forgets what is long past."""
        ripe = tuple(key for key, at in self._later.items() if at <= now)
        for key in ripe:
            del self._later[key]
        stale = [key for key, at in self._last.items() if now - at > 30 * self.JOINED]
        for key in stale:
            del self._last[key]
        return ripe

    def next_at(self) -> datetime | None:
        """When the next noted read is due."""
        return min(self._later.values(), default=None)


@dataclass(frozen=True, slots=True)
class Periods:
    """How often each sweep runs (RELIABILITY.md 5)."""

    timers: timedelta = timedelta(seconds=5)
    readback: timedelta = timedelta(seconds=10)
    run_checks: timedelta = timedelta(seconds=60)
    queues: timedelta = timedelta(seconds=60)
    idle: timedelta = timedelta(minutes=10)
    redelivery: timedelta = timedelta(minutes=10)
    orphans: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that operations read. `public_url` without a trailing slash, None: no links."""

    version: str
    public_url: str | None = None
    auto_create_queues: bool = True
    periods: Periods = field(default_factory=Periods)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of one process."""

    store: Store
    providers: Mapping[str, Provider]
    translators: Mapping[str, Translator]
    clock: Clock
    ids: Ids
    wakeups: Wakeups
    boundary: Boundary
    keys: Keys
    options: Options
    gates: Gates = field(default_factory=Gates)
    looks: Looks = field(default_factory=Looks)
