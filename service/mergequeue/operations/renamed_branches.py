"""Let a queue follow its branch to a new name (docs/design/engine.md 7).

The provider gives the pull requests of a renamed branch the new base. A queue that receives the
new base before the new name would take it for another base, and end every submission.
"""

from dataclasses import replace

from service.accounts import audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.database.database import Tx
from service.mergequeue.operations import turn
from service.mergequeue.store import queues
from service.mergequeue.store.cache import QueueCache
from service.provider.port import Provider
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, Sha

WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Waits until the provider has renamed a branch whose pull requests have the new base already."""


async def follow(
    runtime: Runtime, queue: QueueRef, default_branch: str, *, was_default: bool, base: str | None
) -> QueueRef | None:
    """Return the queue by the new name of its branch; None if the branch was not renamed.

    Only a redirect of the provider shows that a branch was renamed; a deleted branch may have been
    a copy of another one. A redirect to the default branch can mean less, so it counts only if the
    queue's own branch was the default one, or if both have the same commit. `base`: the new base of
    a pull request, or the new default branch, which may be the new name of a branch that the
    provider still renames. None also if the new name has a queue.
    """
    provider = runtime.providers[queue.repo.host]
    value = await turn.value(runtime, queue.id)
    known = None if value.tip is None else value.tip.sha
    new = await _new_name(runtime, provider, queue, known, base)
    if new is None:
        return None
    if new == default_branch and not was_default and known != await _tip(provider, queue, new):
        return None
    entry = audit_log.allowed(
        SYSTEM,
        queue.org_id,
        "queue.follow_branch",
        audit_log.subject_of_queue(queue),
        runtime.clock.now(),
    )
    renamed = replace(entry, data={"before": queue.branch, "after": new})
    if not await runtime.store.run(_rename, queue, new, renamed):
        return None
    runtime.store.caches.of(QueueCache).drop(queue.id)
    return await runtime.store.read(queues.ref_by_id, queue.id)


async def _new_name(
    runtime: Runtime, provider: Provider, queue: QueueRef, known: Sha | None, base: str | None
) -> str | None:
    """Return the new name, as soon as the provider redirects to it.

    The provider renames in the background, and may change the bases first: while `base` is a copy
    of the queue's branch, it is waited for.
    """
    waits_s = iter(WAITS_S)
    while (new := await provider.new_name(queue.repo, queue.branch)) is None:
        if base is None or base == queue.branch:
            return None
        tip = await _tip(provider, queue, queue.branch) or known
        wait_s = next(waits_s, None)
        if wait_s is None or tip is None or tip != await _tip(provider, queue, base):
            return None
        await runtime.clock.sleep(wait_s)
    return new


async def _tip(provider: Provider, queue: QueueRef, branch: str) -> Sha | None:
    commit = await provider.tip(queue.repo, branch)
    return None if commit is None else commit.sha


def _rename(session: Tx, queue: QueueRef, new: str, entry: AuditEntry) -> bool:
    """Give the queue its new branch and log it.

    False if another queue has that one, or if this one was deleted meanwhile.
    """
    if queues.head_of(session, queue.id, lock=True) is None:
        return False
    if queues.queue_ref(session, queue.org_id, queue.repository_id, new) is not None:
        return False
    queues.rename_branch(session, queue.id, new)
    audit.append(session, entry)
    return True
