"""All queues that a reader of pages may see, in brief."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from service.http.callers import Caller
from service.mergequeue.store import overviews
from service.mergequeue.store.overviews import Scope
from service.runtime import Runtime

QUEUES_MAX = 100
"""Queues on one page."""

DAY = timedelta(hours=24)
FIRST = (0, "")

QueueInBrief: TypeAlias = overviews.QueueInBrief


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of queues; `next_after` is where the next page begins, None: this is the last."""

    queues: tuple[QueueInBrief, ...]
    next_after: tuple[int, str] | None


async def read(runtime: Runtime, caller: Caller | None, after: tuple[int, str] = FIRST) -> Overview:
    """Return the queues that the caller may see, by repository and branch; None may see all."""
    scope = Scope() if caller is None else Scope(caller.org_id, caller.repositories)
    since = runtime.clock.now() - DAY
    found = await runtime.store.read(overviews.in_brief, scope, after, since, QUEUES_MAX + 1)
    shown = found[:QUEUES_MAX]
    is_last = len(found) == len(shown)
    last = None if is_last else (shown[-1].ref.repository_id, shown[-1].ref.branch)
    return Overview(shown, last)
