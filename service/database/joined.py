"""One question for all who wait for its answer.

Before nearly every answer over PostgreSQL it is asked what is newest. While one such question is
on its way, those who come wait for the next one, which is then asked once for all of them: so
each gets an answer from after it asked, and many at a time cost as much as one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Set
from typing import Generic, TypeAlias, TypeVar

Want = TypeVar("Want")
Answer = TypeVar("Answer")
Waiting: TypeAlias = "list[asyncio.Future[asyncio.Task[Answer]]]"


class Joined(Generic[Want, Answer]):
    """A question about things, at most one at a time. Used from one event loop."""

    def __init__(self, ask: Callable[[Set[Want]], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._wants: set[Want] = set()
        self._waiting: Waiting[Answer] = []
        self._told: Waiting[Answer] = []
        self._asked: asyncio.Task[Answer] | None = None

    async def answer(self, *wants: Want) -> Answer:
        """What is answered to a question that begins after this call, about these among others.

        Raises what the question raises.
        """
        self._wants.update(wants)
        # Everybody's own: others go on waiting when this caller stops.
        told: asyncio.Future[asyncio.Task[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append(told)
        if self._asked is None:
            self._begin()
        return (await told).result()

    def _begin(self) -> None:
        self._asked = asyncio.create_task(self._question())
        self._asked.add_done_callback(self._tell)

    async def _question(self) -> Answer:
        wants, self._wants = self._wants, set()
        self._told, self._waiting = self._waiting, []
        return await self._ask(wants)

    def _tell(self, asked: "asyncio.Task[Answer]") -> None:
        told, self._told = self._told, []
        for waiting in told:
            if not waiting.done():
                waiting.set_result(asked)
        self._asked = None
        if self._waiting:
            self._begin()
