"""Wake-ups inside this process, by topic: something may be due.

They only save time: waiting ends with a timeout as well. Every wake-up increments the version of
its topic, so that none is lost between two waits.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from service.clock import Clock


class Wakeups:
    """Topics such as `outbox` or `queue/12`; used only from the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._versions: dict[str, int] = defaultdict(int)
        self._waiting: dict[str, set[asyncio.Future[None]]] = defaultdict(set)

    def version(self, topic: str) -> int:
        """Return how often the topic was woken."""
        return self._versions.get(topic, 0)

    def wake(self, topic: str) -> None:
        """Wake every task that waits for the topic."""
        self._versions[topic] += 1
        for waiting in self._waiting.pop(topic, ()):
            if not waiting.done():
                waiting.set_result(None)

    async def wait(self, topic: str, seen: int, timeout_s: float) -> int:
        """Wait for a wake-up, at most `timeout_s`, unless the version is not `seen`; return it."""
        await self.wait_for_any({topic: seen}, timeout_s)
        return self.version(topic)

    async def wait_for_any(self, seen: Mapping[str, int], timeout_s: float) -> None:
        """Wait until one of the topics has another version than `seen`, at most `timeout_s`."""
        if any(self.version(topic) != version for topic, version in seen.items()):
            return
        woken = asyncio.get_running_loop().create_future()
        for topic in seen:
            self._waiting[topic].add(woken)
        late = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait((woken, late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            late.cancel()
            woken.cancel()
            for topic in seen:
                waiting = self._waiting.get(topic, set())
                waiting.discard(woken)
                if not waiting:
                    self._waiting.pop(topic, None)
