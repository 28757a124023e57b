"""Do the same work for many queues or repositories, so that one stops no other."""

from collections.abc import Coroutine, Iterable

from service import sweeping
from service.mergequeue.operations.turn import QueueGone


async def one_by_one(works: Iterable[Coroutine[None, None, object]]) -> None:
    """Do one after another (`service.sweeping`). A queue that was deleted meanwhile is left out."""
    await sweeping.one_by_one(works, QueueGone)
