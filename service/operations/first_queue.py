"""The first `/merge` on a branch makes its queue (UX.md 2.5)."""

from dataclasses import dataclass, replace

from service.errors import Conflict
from service.mergequeue.config import CLI_DEFAULTS, QueueConfig
from service.operations import queues as queue_operations
from service.operations import requirements
from service.operations.queues import QueueWish
from service.runtime import Runtime
from service.store import queues
from service.store.records import RepositoryRecord
from service.vocabulary import Actor, MergeMethod, QueueRef
from service.wording import replies
from service.wording.replies import Answer

METHODS = (MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT, MergeMethod.REBASE)
"""Which method a new queue takes: the first that the repository and its rules allow."""


@dataclass(frozen=True, slots=True)
class Made:
    """The new queue and what to reply; `queue` None: there is none, the answer says why."""

    queue: QueueRef | None
    answer: Answer


async def make(
    runtime: Runtime, repository: RepositoryRecord, branch: str, actor: Actor
) -> Made:
    """Make the queue of a branch whose required statuses are known."""
    if not runtime.options.auto_create_queues:
        return Made(None, replies.no_queue(branch, await branches(runtime, repository)))
    config = QueueConfig()
    resolved = await requirements.resolve(runtime, repository.ref, branch, config)
    if resolved.owned:
        return Made(None, replies.provider_queue(branch))
    if resolved.error is not None or not resolved.required.names:
        return Made(None, replies.no_required_checks(branch))
    allowed = repository.merge_methods
    if resolved.merge_methods is not None:
        allowed &= resolved.merge_methods
    method = next((one for one in METHODS if one in allowed), MergeMethod.SQUASH)
    settings = {**CLI_DEFAULTS, "merge_method": method}
    try:
        view = await queue_operations.create(
            runtime, repository, branch, QueueWish(settings), actor
        )
    except Conflict:
        found = await runtime.store.read(
            queues.queue_ref, repository.org_id, repository.id, branch
        )
        return Made(found, replies.accepted())
    value = view.value
    return Made(view.queue, replies.queue_made(branch, value.config, resolved.required))


async def branches(runtime: Runtime, repository: RepositoryRecord) -> tuple[str, ...]:
    """Branches of the repository that have a queue, sorted."""
    found = await runtime.store.read(queues.queues_of, repository.id)
    return tuple(sorted(queue.branch for queue in found))
