"""Do the same work for many queues, repositories or tests, so that one stops no other."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from service.errors import DatabaseUnavailable, DeletedMeanwhile


def never() -> bool:
    """Return that the time for a sweep is not over."""
    return False


async def one_by_one(
    works: Iterable[Coroutine[None, None, object]], is_over: Callable[[], bool] = never
) -> None:
    """Do one after another. A mistake in one stops no other: the first is raised at the end.

    DeletedMeanwhile is no mistake. Begins none once `is_over`. Raises DatabaseUnavailable at once,
    for all of them need the database.
    """
    mistakes: list[BaseException] = []
    for work in works:
        if is_over():
            work.close()
            break
        (outcome,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(outcome, DatabaseUnavailable):
            raise outcome
        if isinstance(outcome, BaseException) and not isinstance(outcome, DeletedMeanwhile):
            mistakes.append(outcome)
    if mistakes:
        raise mistakes[0]
