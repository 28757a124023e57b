"""Do the same work for many queues, repositories or tests, so that one stops no other."""

import asyncio
from collections.abc import Coroutine, Iterable

from service.errors import DatabaseUnavailable, DeletedMeanwhile


async def one_by_one(works: Iterable[Coroutine[None, None, object]]) -> None:
    """Do one after another. A mistake in one stops no other: the first is raised at the end.

    DeletedMeanwhile is no mistake. Raises DatabaseUnavailable at once, for all of them need the
    database.
    """
    mistakes: list[BaseException] = []
    for work in works:
        (outcome,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(outcome, DatabaseUnavailable):
            raise outcome
        if isinstance(outcome, BaseException) and not isinstance(outcome, DeletedMeanwhile):
            mistakes.append(outcome)
    if mistakes:
        raise mistakes[0]
