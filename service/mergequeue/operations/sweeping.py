"""Do the same work for many queues or repositories, so that one stops no other."""

import asyncio
from collections.abc import Coroutine, Iterable

from service.errors import DatabaseUnavailable
from service.mergequeue.operations.turn import QueueGone


async def one_by_one(works: Iterable[Coroutine[None, None, object]]) -> None:
    """Do one after another. A mistake in one stops no other: the first is raised at the end.

    A queue that was deleted meanwhile is left out. Raises DatabaseUnavailable at once, for all of
    them need the database.
    """
    mistakes: list[BaseException] = []
    for work in works:
        (outcome,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(outcome, DatabaseUnavailable):
            raise outcome
        if isinstance(outcome, BaseException) and not isinstance(outcome, QueueGone):
            mistakes.append(outcome)
    if mistakes:
        raise mistakes[0]
