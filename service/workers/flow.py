"""Rows taken up as soon as they are due, side by side, a slow or broken one holding up none."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.runtime import Runtime
from service.workers.guard import guarded

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Work(Generic[Row]):
    """What a flow does: claim rows, carry one out, and what follows a mistake of ours.

    `topic` wakes it, `pause_s` says how long nothing is due, `at_once` bounds it.
    """

    topic: str
    at_once: int
    claim: Callable[[Runtime, int], Awaitable[Sequence[Row]]]
    carry_out: Callable[[Runtime, Row], Awaitable[None]]
    stumble: Callable[[Runtime, Row], Awaitable[None]]
    pause_s: Callable[[Runtime], Awaitable[float]]


class Flow(Generic[Row]):
    """The loop over one kind of rows."""

    def __init__(self, runtime: Runtime, work: Work[Row]) -> None:
        self._runtime = runtime
        self._work = work
        self._free = work.at_once
        self._is_stopping = False

    async def drain(self) -> bool:
        """Carry out everything due, in rounds, until nothing is; whether there was anything."""
        found = False
        while rows := await self._work.claim(self._runtime, self._work.at_once):
            found = True
            async with asyncio.TaskGroup() as group:
                for row in rows:
                    group.create_task(self._one(row))
        return found

    async def run(self) -> None:
        """Start every row as soon as it is due; returns after `stop`."""
        topic = self._work.topic
        async with asyncio.TaskGroup() as group:
            while not self._is_stopping:
                seen = self._runtime.wakeups.version(topic)
                rows = await self._work.claim(self._runtime, self._free) if self._free else ()
                for row in rows:
                    self._free -= 1
                    task = group.create_task(self._one(row))
                    task.add_done_callback(lambda _: self._free_place())
                if not rows:
                    pause_s = await self._work.pause_s(self._runtime)
                    await self._runtime.wakeups.wait(topic, seen, pause_s)

    def stop(self) -> None:
        """Claim nothing more; `run` returns when what is under way has ended."""
        self._is_stopping = True
        self._runtime.wakeups.wake(self._work.topic)

    async def _one(self, row: Row) -> None:
        if not await guarded(self._work.topic, self._work.carry_out(self._runtime, row)):
            await guarded(self._work.topic, self._work.stumble(self._runtime, row))

    def _free_place(self) -> None:
        self._free += 1
        self._runtime.wakeups.wake(self._work.topic)
