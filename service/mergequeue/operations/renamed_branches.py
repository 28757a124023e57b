"""Let a queue follow its branch to a new name (docs/design/engine.md 7).

The provider gives a renamed default branch's pull requests the new base. A queue that hears of that
before it hears of the new name would take it for another base, and end every submission.
"""

from service.database.database import Tx
from service.mergequeue.operations import turn
from service.mergequeue.store import queues
from service.mergequeue.store.cache import QueueCache
from service.provider.port import Provider
from service.runtime import Runtime
from service.vocabulary import QueueRef

WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Waits for a branch to go that is about to be renamed."""


async def follow(
    runtime: Runtime, queue: QueueRef, new: str, *, was_default: bool
) -> QueueRef | None:
    """Return the queue by its new branch if its own is gone and is the default branch `new` now.

    `was_default`: its branch is known as the former default branch. Else it counts as renamed only
    if the new one has the same commit. None if it was not renamed, or if the new name has a queue.
    """
    provider = runtime.providers[queue.repo.host]
    if new == queue.branch or not await _is_gone(runtime, provider, queue, new):
        return None
    if not was_default and not await _is_same_commit(runtime, provider, queue, new):
        return None
    if not await runtime.store.run(_rename, queue, new):
        return None
    runtime.store.caches.of(QueueCache).drop(queue.id)
    return await runtime.store.read(queues.ref_by_id, queue.id)


async def _is_gone(runtime: Runtime, provider: Provider, queue: QueueRef, new: str) -> bool:
    """Return whether the queue's branch is gone, as soon as it is no copy of `new` any more.

    The provider renames in the background, and may change the bases first.
    """
    waits_s = iter(WAITS_S)
    while (tip := await provider.tip(queue.repo, queue.branch)) is not None:
        newest = await provider.tip(queue.repo, new)
        wait_s = next(waits_s, None)
        if wait_s is None or newest is None or newest.sha != tip.sha:
            return False
        await runtime.clock.sleep(wait_s)
    return True


async def _is_same_commit(
    runtime: Runtime, provider: Provider, queue: QueueRef, branch: str
) -> bool:
    value = await turn.value(runtime, queue.id)
    newest = await provider.tip(queue.repo, branch)
    return newest is not None and value.tip is not None and newest.sha == value.tip.sha


def _rename(session: Tx, queue: QueueRef, new: str) -> bool:
    """Give the queue its new branch; False if another queue has that one."""
    if queues.queue_ref(session, queue.org_id, queue.repository_id, new) is not None:
        return False
    queues.rename_branch(session, queue.id, new)
    return True
