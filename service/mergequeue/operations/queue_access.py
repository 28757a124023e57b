"""Queues that a caller of the API may see."""

from service.accounts import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import NotFound
from service.http.callers import Caller
from service.memory import VersionedCache
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations import chains, pull_requests, queue_views
from service.mergequeue.store import queues
from service.provider.errors import Unavailable
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef, Role

SUBMITTERS = frozenset({Role.QUEUE, Role.ADMIN})
"""Only these roles cost a call of the provider, as they do when they submit."""


class QueueRefCache(VersionedCache[tuple[object, ...], QueueRef]):
    """Queues by caller and branch, valid while the store's access version is unchanged."""


async def branches_with_queue(runtime: Runtime, repository: RepositoryRecord) -> tuple[str, ...]:
    """Return the branches of a repository that have a queue, sorted."""
    refs = await runtime.store.read(queues.queues_of, repository.id)
    return tuple(sorted(queue.branch for queue in refs))


async def find_queue(runtime: Runtime, caller: Caller, ref: RepoRef, branch: str) -> QueueRef:
    """Return the queue of a branch. Raises NotFound: repository_not_found, queue_not_found."""
    version = runtime.memory.of(access.AccessVersion).newest
    # Strings remember their hashes; a `RepoRef` computes its own each time.
    question = (caller.org_id, caller.repositories, ref.host, ref.owner, ref.name, branch)
    cache = runtime.memory.of(QueueRefCache)
    known = cache.get(version, question)
    if known is not None:
        return known
    repository = await access.find_repository(runtime, caller, ref)
    queue = await queue_in(runtime, repository, branch)
    cache.put(version, question, queue)
    return queue


async def queue_of_pull_request(
    runtime: Runtime, caller: Caller, ref: RepoRef, number: int
) -> QueueRef:
    """Return the queue that a pull request is in, or would be submitted to.

    The provider is asked for the base branch only of a pull request that is in no queue and was
    not merged by one, and only if the caller may submit. Otherwise, and while the provider is
    unavailable, one that left its queues belongs to the last of them. Raises Unavailable, and
    NotFound: repository_not_found, pull_request_not_found, queue_not_found, never_submitted.
    """
    repository = await access.find_repository(runtime, caller, ref)
    refs = await runtime.store.read(queues.queues_of, repository.id)
    views = [await queue_views.pull_request_view(runtime, each, number, None) for each in refs]
    submissions = [view for view in views if view is not None]
    for view in submissions:
        if view.entry.state not in FINAL:
            return view.queue
    last = max(submissions, key=lambda view: view.entry.submitted_at, default=None)
    if last is not None and last.entry.state is EntryState.MERGED:
        return last.queue
    if caller.role in SUBMITTERS:
        try:
            pull = await pull_requests.fetch_pull_request(runtime, repository.ref, number)
            if all(each.branch != pull.target_branch for each in refs):
                pull = await chains.with_chain(runtime, repository.ref, pull)
            return await queue_in(runtime, repository, pull.target_branch)
        except Unavailable:
            if last is None:
                raise
    if last is None:
        raise NotFound(
            f"Pull request {number} was never submitted to a queue of {ref.slug}.",
            code="never_submitted",
        )
    return last.queue


async def queue_in(runtime: Runtime, repository: RepositoryRecord, branch: str) -> QueueRef:
    """Return the queue of a branch of this repository. Raises NotFound(queue_not_found)."""
    queue, branches = await runtime.store.read(_queue_of, repository, branch)
    if queue is None:
        others = f" Queues in this repository: {', '.join(branches)}." if branches else ""
        raise NotFound(
            f'Branch "{branch}" has no queue.{others}',
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
