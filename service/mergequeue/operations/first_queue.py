"""The first `/merge` on a branch makes its queue (UX.md 2.5)."""

from dataclasses import dataclass

from service.database.records import RepositoryRecord
from service.errors import Conflict
from service.mergequeue.engine.config import CLI_DEFAULTS, QueueConfig
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations import requirements
from service.mergequeue.operations.queues import QueueWish
from service.mergequeue.operations.requirements import Resolved
from service.mergequeue.store import queues
from service.mergequeue.wording import queue_replies, replies
from service.mergequeue.wording.answers import Answer
from service.runtime import Runtime
from service.vocabulary import Actor, MergeMethod, QueueRef

METHODS = (MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT, MergeMethod.REBASE)
"""Which method a new queue takes: the first that the repository and its rules allow."""


@dataclass(frozen=True, slots=True)
class Made:
    """The new queue and what to reply; `queue` None: there is none, the answer says why."""

    queue: QueueRef | None
    answer: Answer


async def make(runtime: Runtime, repository: RepositoryRecord, branch: str, actor: Actor) -> Made:
    """Make the queue of a branch whose required statuses are known.

    One that was made meanwhile is taken as it is.
    """
    if not runtime.options.auto_create_queues:
        there = await branches(runtime, repository)
        return Made(None, queue_replies.no_queue(branch, there))
    resolved = await requirements.resolve(runtime, repository.ref, branch, QueueConfig())
    against = _against(resolved, branch)
    if against is not None:
        return Made(None, against)
    settings = {**CLI_DEFAULTS, "merge_method": _method(repository, resolved)}
    wish = QueueWish(settings)
    try:
        view = await queue_operations.create(runtime, repository, branch, wish, actor)
    except Conflict:
        found = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, branch)
        return Made(found, replies.accepted())
    return Made(view.queue, queue_replies.queue_made(view.value, resolved.required))


def _against(resolved: Resolved, branch: str) -> Answer | None:
    if resolved.owned:
        return queue_replies.provider_queue(branch)
    if resolved.error is not None:
        return queue_replies.rules_unreadable(branch)
    if not resolved.required.names:
        return queue_replies.no_required_checks(branch)
    return None


def _method(repository: RepositoryRecord, resolved: Resolved) -> MergeMethod:
    allowed = repository.merge_methods
    if resolved.merge_methods is not None:
        allowed &= resolved.merge_methods
    return next((one for one in METHODS if one in allowed), MergeMethod.SQUASH)


async def branches(runtime: Runtime, repository: RepositoryRecord) -> tuple[str, ...]:
    """Branches of the repository that have a queue, sorted."""
    found = await runtime.store.read(queues.queues_of, repository.id)
    return tuple(sorted(queue.branch for queue in found))
