"""Sweep comments and reviews for missed commands, so that a lost delivery only delays a command.

The sweep stores each missed command as a delivery. The inbox processes it in the order of its
repository, and once, however often it arrives.
"""

from datetime import timedelta

import structlog

from service.accounts.store import access
from service.database import inbox
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.mergequeue.operations import sweeping
from service.mergequeue.store import answered_commands, cursors, queues
from service.provider.errors import ProviderError
from service.provider.signals import AskSource, Where
from service.provider.values import CommentsRead
from service.runtime import Runtime
from service.vocabulary import RepoId

LOOKS_BACK = timedelta(days=3)
"""Older commands are ignored; providers redeliver webhooks for the same time."""

log = structlog.get_logger()


async def read_where_queued(runtime: Runtime) -> None:
    """Sweep comments and reviews of every repository that has a queue."""
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
        await read_missed(runtime, repository, AskSource.COMMENT)
        await read_missed(runtime, repository, AskSource.REVIEW)
    except ProviderError as error:
        log.warning("sweep_postponed", repo=repository.ref.slug, why=error.message)


async def read_missed(runtime: Runtime, repository: RepositoryRecord, source: AskSource) -> int:
    """Read comments or reviews since the last sweep, store missed commands, return their number.

    The first sweep of a repository goes back by one idle period, because a command may have
    been lost before it. Raises the provider's errors.
    """
    now = runtime.clock.now()
    name = f"{source.value}s/{repository.id}"
    since = await runtime.store.read(cursors.read, name)
    if since is None:
        since = now - runtime.options.periods.idle
        await runtime.store.run(cursors.put, name, since)
    where = Where(RepoId(repository.ref.host, repository.provider_id), repository.ref)
    # Constant for a day, so that the provider can answer a conditional request with 304.
    oldest = (now - LOOKS_BACK).replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(since, oldest)
    provider = runtime.providers[repository.ref.host]
    is_comment = source is AskSource.COMMENT
    read = provider.comments_since if is_comment else provider.reviews_since
    comments = await read(where, start)

    def store_missed(session: Tx) -> int:
        if comments.next_start != since:
            cursors.put(session, name, comments.next_start)
        return _store_missed(session, repository, source, comments)

    missed = await runtime.store.run(store_missed)
    if missed:
        log.info("commands_missed", repo=repository.ref.slug, source=source.value, count=missed)
        runtime.wakeups.wake("inbox")
    return missed


def _store_missed(
    session: Tx, repository: RepositoryRecord, source: AskSource, comments: CommentsRead
) -> int:
    """Store every unanswered command as a delivery and return how many were new."""
    ids = [delivery.id.removeprefix(f"{source.value}-") for delivery in comments.deliveries]
    answered = (
        answered_commands.answered_among(session, repository.id, source.value, ids) if ids else ()
    )
    pairs = zip(ids, comments.deliveries, strict=True)
    return sum(inbox.accept(session, delivery) for id_, delivery in pairs if id_ not in answered)
