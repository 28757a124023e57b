"""All queues that a reader of pages may see, in brief."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from service.mergequeue.store import overviews
from service.runtime import Runtime
from service.vocabulary import RepoRef

QUEUES_MAX = 100
"""Queues on one page."""

REPOSITORIES_MAX = 200
"""Repositories whose rights are read for the first page of one person."""

DAY = timedelta(hours=24)
FIRST = (0, "")

QueueInBrief: TypeAlias = overviews.QueueInBrief
Scope: TypeAlias = overviews.Scope


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of queues; `next_after` is where the next page begins, None: this is the last."""

    queues: tuple[QueueInBrief, ...]
    next_after: tuple[int, str] | None


async def read(runtime: Runtime, scope: Scope, after: tuple[int, str] = FIRST) -> Overview:
    """Return the queues within a scope, by repository and branch."""
    since = runtime.clock.now() - DAY
    found = await runtime.store.read(overviews.in_brief, scope, after, since, QUEUES_MAX + 1)
    shown = found[:QUEUES_MAX]
    is_last = len(found) == len(shown)
    last = None if is_last else (shown[-1].ref.repository_id, shown[-1].ref.branch)
    return Overview(shown, last)


async def repositories(runtime: Runtime, host: str) -> dict[int, RepoRef]:
    """Return the first `REPOSITORIES_MAX` repositories of a host that have a queue, by our id."""
    return await runtime.store.read(overviews.with_queues, host, REPOSITORIES_MAX)
