"""One question for all callers that wait for its answer.

Before nearly every response over PostgreSQL the process asks which version is the newest. Callers
that come while such a question is under way share the next one. So each gets an answer that is
newer than its call, and many at a time cost as much as one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Set
from typing import Generic, TypeVar

Subject = TypeVar("Subject")
Answer = TypeVar("Answer")


class Joined(Generic[Subject, Answer]):
    """A question about subjects, asked by one task at a time. Used from one event loop."""

    def __init__(self, ask: Callable[[Set[Subject]], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._subjects: set[Subject] = set()
        self._asking = asyncio.Lock()
        self._next: asyncio.Task[Answer] | None = None

    async def answer(self, *subjects: Subject) -> Answer:
        """Return the answer to a question that begins after this call, about at least these.

        Raises what the question raises.
        """
        self._subjects.update(subjects)
        if self._next is None:
            self._next = asyncio.create_task(self._ask_next())
        # The others go on waiting when this caller is cancelled.
        return await asyncio.shield(self._next)

    async def _ask_next(self) -> Answer:
        async with self._asking:
            subjects, self._subjects, self._next = self._subjects, set(), None
            return await self._ask(subjects)
