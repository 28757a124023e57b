"""Time, waiting and ids: the only place that asks the system for them.

Everybody else receives a `Clock` and `Ids`, so that one authority moves time in tests.
"""

import asyncio
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the time, and of waits for it to pass."""

    def now(self) -> datetime:
        """The present instant, in UTC, cut to milliseconds."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never run backwards, for measuring spans inside this process."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; the only way in which the product waits."""
        ...


class Ids(Protocol):
    """A source of new names."""

    def uuid(self) -> str:
        """A fresh lower-case UUID."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        # Asked several times a request: a third of the time that cutting a datetime takes.
        return datetime.fromtimestamp(time.time_ns() // 1_000_000 / 1000, UTC)

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)


class RandomIds:
    """Random ids, version 4."""

    def uuid(self) -> str:
        """See `Ids.uuid`."""
        return str(uuid.uuid4())
