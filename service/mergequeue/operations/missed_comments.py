"""Sweep comments, reviews and labels for missed commands: a lost delivery only delays a command.

The sweep stores each missed command as a delivery. The inbox processes it in the order of its
repository, and once, however often it arrives.
"""

from datetime import timedelta

import structlog

from service import sweeping
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database import inbox
from service.database.database import Tx
from service.mergequeue.operations import comments
from service.mergequeue.store import answered_commands, cursors, queues
from service.provider.errors import ProviderError
from service.provider.signals import AskSource, Delivery, Where
from service.runtime import Runtime
from service.vocabulary import RepoId

LOOKS_BACK = timedelta(days=3)
"""Older commands are ignored; providers redeliver webhooks for the same time."""

log = structlog.get_logger()


async def read_where_queued(runtime: Runtime) -> None:
    """Sweep comments, reviews and labels of every repository that has a queue."""
    await _read_repositories(runtime, has_queue=True)


async def read_where_unqueued(runtime: Runtime) -> None:
    """Sweep repositories without a queue, where a command may create one."""
    if runtime.options.auto_create_queues:
        await _read_repositories(runtime, has_queue=False)


async def _read_repositories(runtime: Runtime, *, has_queue: bool) -> None:
    queued = {queue.repo for queue in await runtime.store.read(queues.all_queues)}
    await sweeping.one_by_one(
        _read_repository(runtime, repository)
        for repository in await runtime.store.read(access.repositories_of, None)
        if repository.available
        and (repository.ref in queued) is has_queue
        and repository.ref.host in runtime.providers
    )


async def _read_repository(runtime: Runtime, repository: RepositoryRecord) -> None:
    try:
        await _read_missed(runtime, repository, AskSource.COMMENT)
        await _read_missed(runtime, repository, AskSource.REVIEW)
    except ProviderError as error:
        log.warning("sweep_postponed", repo=repository.ref.slug, why=error.message)


async def _read_missed(runtime: Runtime, repository: RepositoryRecord, source: AskSource) -> int:
    """Read comments, or reviews and labels, since the last sweep, and store missed commands.

    Return their number.
    The first sweep of a repository goes back by one idle period, because a command may have
    been lost before it. Raises the provider's errors.
    """
    now = runtime.clock.now()
    name = f"{source.value}s/{repository.id}"
    since = await runtime.store.read(cursors.read_position, name)
    if since is None:
        since = now - runtime.options.periods.idle
        await runtime.store.run(cursors.store_position, name, since)
    where = Where(RepoId(repository.ref.host, repository.provider_id), repository.ref)
    # Constant for a day, so that the provider can answer a conditional request with 304.
    oldest = (now - LOOKS_BACK).replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(since, oldest)
    provider = runtime.providers[repository.ref.host]
    if source is AskSource.COMMENT:
        found = await provider.comments_since(where, start)
    else:
        labels = await comments.queue_labels(runtime, repository)
        found = await provider.reviews_and_labels_since(where, start, labels)

    def store_missed(session: Tx) -> int:
        if found.next_start != since:
            cursors.store_position(session, name, found.next_start)
        return sum(_store_missed(session, repository, each) for each in found.deliveries)

    missed = await runtime.store.run(store_missed)
    if missed:
        log.info("commands_missed", repo=repository.ref.slug, source=source.value, count=missed)
        runtime.wakeups.wake("inbox")
    return missed


def _store_missed(session: Tx, repository: RepositoryRecord, delivery: Delivery) -> bool:
    """Store an unanswered command as a delivery; return whether it was new."""
    source, _, id_ = delivery.id.partition("-")
    if answered_commands.answered_among(session, repository.id, source, [id_]):
        return False
    return inbox.accept(session, delivery) is not None
