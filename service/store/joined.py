"""One question for all who wait for its answer.

Before nearly every answer over PostgreSQL it is asked what is newest. While one such question is
on its way, those who come wait for the next one, which is then asked once for all of them: so
each gets an answer from after it asked, and many at a time cost as much as one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Set
from typing import Generic, TypeVar

Want = TypeVar("Want")
Answer = TypeVar("Answer")


class Joined(Generic[Want, Answer]):
    """A question about things, at most one at a time. Used from one event loop."""

    def __init__(self, ask: Callable[[Set[Want]], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._asked: asyncio.Task[Answer] | None = None
        self._next: asyncio.Task[Answer] | None = None
        self._wants: set[Want] = set()

    async def answer(self, *wants: Want) -> Answer:
        """What is answered to a question that begins after this call, about these among others.

        Raises what the question raises.
        """
        self._wants.update(wants)
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._asked))
        # Shared with others, who go on waiting when this caller stops.
        return await asyncio.shield(self._next)

    async def _after(self, before: "asyncio.Task[Answer] | None") -> Answer:
        if before is not None:
            await asyncio.wait((before,))
        wants, self._wants = self._wants, set()
        self._asked, self._next = self._next, None
        return await self._ask(wants)
