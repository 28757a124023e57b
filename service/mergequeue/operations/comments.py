"""Commands in comments, read on a clock, so that a lost delivery only delays them.

A command that was not answered yet becomes a delivery of its own: it is worked on in its
repository's order like every other, and once however often it arrives.
"""

from datetime import datetime, timedelta

import structlog

from service.accounts.store import access
from service.database import inbox
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.mergequeue.store import cursors, heard, queues
from service.provider.errors import ProviderError
from service.provider.signals import AskSource, Where
from service.provider.values import CommentsRead
from service.runtime import Runtime
from service.vocabulary import RepoId

OVERLAP = timedelta(minutes=1)
"""A comment may become visible so long after the time it bears."""
LOOKS_BACK = timedelta(days=3)
"""An older command is not carried out any more; a provider sends deliveries again as long."""

log = structlog.get_logger()


async def look_where_queued(runtime: Runtime) -> None:
    """Sweep: the comments of every repository that has a queue."""
    await _look(runtime, has_queue=True)


async def look_elsewhere(runtime: Runtime) -> None:
    """Sweep: the comments of repositories whose first command may create their queue."""
    if runtime.options.auto_create_queues:
        await _look(runtime, has_queue=False)


async def _look(runtime: Runtime, *, has_queue: bool) -> None:
    """Read one repository after another; trouble with one stops no other."""
    queued = {queue.repo for queue in await runtime.store.read(queues.all_queues)}
    for repository in await runtime.store.read(access.repositories_of, None):
        is_meant = repository.available and (repository.ref in queued) is has_queue
        if not is_meant or repository.ref.host not in runtime.providers:
            continue
        try:
            await read_comments(runtime, repository)
        except ProviderError as trouble:
            log.warning("sweep_postponed", repo=repository.ref.slug, why=trouble.message)


async def read_comments(runtime: Runtime, repository: RepositoryRecord) -> int:
    """Read what was commented since the last look and store missed commands; how many.

    The first look at a repository goes back by one period of idle repositories: a command may
    have been lost before it. Raises the provider's errors.
    """
    now = runtime.clock.now()
    name = f"comments/{repository.id}"
    since = await runtime.store.read(cursors.read, name)
    if since is None:
        since = now - runtime.options.periods.idle - OVERLAP
        await runtime.store.run(cursors.put, name, since)
    where = Where(RepoId(repository.ref.host, repository.provider_id), repository.ref)
    # The same all day, so that the provider may answer that nothing has changed.
    oldest = (now - LOOKS_BACK).replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(since, oldest)
    provider = runtime.providers[repository.ref.host]
    found = await provider.comments_since(where, start)

    def keep(session: Tx) -> int:
        following = _next_start(start, found)
        if following != since:
            cursors.put(session, name, following)
        return _store_missed(session, repository, found)

    missed = await runtime.store.run(keep)
    if missed:
        log.info("comments_missed", repo=repository.ref.slug, commands=missed)
        runtime.wakeups.wake("inbox")
    return missed


def _store_missed(session: Tx, repository: RepositoryRecord, found: CommentsRead) -> int:
    """Store every command that was not answered yet as a delivery; how many were new."""
    ids = [one.id.removeprefix("comment-") for one in found.deliveries]
    answered = heard.among(session, repository.id, AskSource.COMMENT.value, ids) if ids else ()
    new = [one for number, one in zip(ids, found.deliveries, strict=True) if number not in answered]
    return sum(inbox.accept(session, one) for one in new)


def _next_start(start: datetime, found: CommentsRead) -> datetime:
    """Where the next look begins: before the last comment read, and never further back.

    It stays the same while nobody comments. Where more comments follow, the look moves on by a
    second at least: the provider counts in seconds.
    """
    if found.newest is None:
        return start
    if found.complete:
        return max(start, found.newest - OVERLAP)
    return max(found.newest, start + timedelta(seconds=1))
