"""All queues that a reader of pages may see, in brief."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from service.database.database import Tx
from service.mergequeue.engine.model import Entry
from service.mergequeue.operations import page_of_queue
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.store import overviews
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef

QUEUES_MAX = 100
"""Queues on one page."""

REPOSITORIES_MAX = 200
"""Repositories whose rights are read for the first page of one person."""

MERGED_MAX = 6
"""Pull requests that merged last, on the first page."""

DAY = timedelta(hours=24)
FIRST = (0, "")

QueueInBrief: TypeAlias = overviews.QueueInBrief
Scope: TypeAlias = overviews.Scope


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of queues; `next_after` is where the next page begins, None: this is the last.

    `merged`: what merged last in these queues within a day, with its queue.
    """

    queues: tuple[QueueInBrief, ...]
    next_after: tuple[int, str] | None
    merged: tuple[tuple[QueueRef, LeftEntry], ...]


async def read(runtime: Runtime, scope: Scope, after: tuple[int, str] = FIRST) -> Overview:
    """Return the queues within a scope, by repository and branch."""
    since = runtime.clock.now() - DAY
    return await runtime.store.read(_read, scope, after, since)


def _read(session: Tx, scope: Scope, after: tuple[int, str], since: datetime) -> Overview:
    found = overviews.in_brief(session, scope, after, since, QUEUES_MAX + 1)
    shown = found[:QUEUES_MAX]
    is_last = len(found) == len(shown)
    last = None if is_last else (shown[-1].ref.repository_id, shown[-1].ref.branch)
    refs = {each.ref.id: each.ref for each in shown}
    merged = overviews.just_merged(session, tuple(refs), since, MERGED_MAX)
    left = page_of_queue.with_landings(session, [entry for _, entry in merged])
    return Overview(
        shown, last, tuple((refs[id_], one) for (id_, _), one in zip(merged, left, strict=True))
    )


async def changes(runtime: Runtime, scope: Scope) -> int:
    """Return a number that changes with every queue within a scope."""
    return await runtime.store.read(overviews.changes, scope)


async def numbered(
    runtime: Runtime, scope: Scope, number: int, at_most: int
) -> tuple[tuple[QueueRef, Entry], ...]:
    """Return the newest submission of a pull request of this number in each queue of a scope."""
    return await runtime.store.read(overviews.numbered, scope, number, at_most)


async def repositories(runtime: Runtime, host: str) -> dict[int, RepoRef]:
    """Return the first `REPOSITORIES_MAX` repositories of a host that have a queue, by our id."""
    return await runtime.store.read(overviews.with_queues, host, REPOSITORIES_MAX)
