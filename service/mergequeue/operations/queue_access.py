"""Queues that a caller of the API may see."""

from service.accounts import access
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.errors import NotFound
from service.http.callers import Caller
from service.mergequeue.store import queues
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef


async def branches_with_queue(runtime: Runtime, repository: RepositoryRecord) -> tuple[str, ...]:
    """Return the branches of a repository that have a queue, sorted."""
    refs = await runtime.store.read(queues.queues_of, repository.id)
    return tuple(sorted(queue.branch for queue in refs))


async def find_queue(runtime: Runtime, caller: Caller, ref: RepoRef, branch: str) -> QueueRef:
    """Return the queue of a branch. Raises NotFound: repository_not_found, queue_not_found."""
    version = runtime.memory.access_version
    # Strings remember their hashes; a `RepoRef` computes its own each time.
    question = (caller.org_id, caller.repositories, ref.host, ref.owner, ref.name, branch)
    known = runtime.memory.places.get(version, question)
    if isinstance(known, QueueRef):
        return known
    repository = await access.find_repository(runtime, caller, ref)
    queue = await queue_in(runtime, repository, branch)
    runtime.memory.places.put(version, question, queue)
    return queue


async def queue_in(runtime: Runtime, repository: RepositoryRecord, branch: str) -> QueueRef:
    """Return the queue of a branch of this repository. Raises NotFound(queue_not_found)."""
    queue, branches = await runtime.store.read(_queue_of, repository, branch)
    if queue is None:
        there = f"; queues here: {', '.join(branches)}" if branches else ""
        raise NotFound(
            f'branch "{branch}" has no queue{there}.',
            code="queue_not_found",
            members={"branches": list(branches)},
        )
    return queue


def _queue_of(
    session: Tx, repository: RepositoryRecord, branch: str
) -> tuple[QueueRef | None, tuple[str, ...]]:
    queue = queues.queue_ref(session, repository.org_id, repository.id, branch)
    if queue is not None:
        return queue, ()
    return None, tuple(sorted(ref.branch for ref in queues.queues_of(session, repository.id)))
