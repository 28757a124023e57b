"""All queues that a reader of pages may see, in brief."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from service.database.database import Tx
from service.mergequeue.engine.explaining.estimates import percentile
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.states import QueueState
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

DAY = overviews.DAY
FIRST = (0, "")
MEDIAN, HIGH = 0.5, 0.95
PAUSED_MAX = 1000
"""Queues that are paused together."""

QueueInBrief: TypeAlias = overviews.QueueInBrief
Scope: TypeAlias = overviews.Scope


@dataclass(frozen=True, slots=True)
class LastDay:
    """Figures of the last 24 hours; the times from submission to merge are None without a merge.

    `proved`: merged entries whose landed tree is the tested one. `mismatched`: those that Headgate
    landed and whose tree is another one. They are of the newest 5,000 merged entries.
    """

    time_to_merge_p50: timedelta | None
    time_to_merge_p95: timedelta | None
    proved: int
    mismatched: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of queues; `next_after` is where the next page begins, None: this is the last.

    `merged`: what merged last in these queues within a day, with its queue. `day`: their figures.
    """

    queues: tuple[QueueInBrief, ...]
    next_after: tuple[int, str] | None
    merged: tuple[tuple[QueueRef, LeftEntry], ...]
    day: LastDay


async def read(runtime: Runtime, scope: Scope, after: tuple[int, str] = FIRST) -> Overview:
    """Return the queues within a scope, by repository and branch."""
    return await runtime.store.read(_read, scope, after, runtime.clock.now())


def _read(session: Tx, scope: Scope, after: tuple[int, str], now: datetime) -> Overview:
    found = overviews.in_brief(session, scope, after, now, QUEUES_MAX + 1)
    since = now - DAY
    shown = found[:QUEUES_MAX]
    is_last = len(found) == len(shown)
    last = None if is_last else (shown[-1].ref.repository_id, shown[-1].ref.branch)
    refs = {each.ref.id: each.ref for each in shown}
    merged = overviews.just_merged(session, tuple(refs), since, MERGED_MAX)
    left = page_of_queue.with_landings(session, [entry for _, entry in merged])
    return Overview(
        shown,
        last,
        tuple((refs[id_], one) for (id_, _), one in zip(merged, left, strict=True)),
        day_of(overviews.merged(session, tuple(refs), since)),
    )


def day_of(merged: Sequence[overviews.Merged]) -> LastDay:
    """Return the figures of these merged entries."""
    seconds = sorted((each.merged_at - each.submitted_at).total_seconds() for each in merged)
    p50, p95 = (
        timedelta(seconds=percentile(seconds, share)) if seconds else None
        for share in (MEDIAN, HIGH)
    )
    proved = sum(each.is_equal is True for each in merged)
    return LastDay(p50, p95, proved, sum(each.is_mismatch for each in merged))


async def running(runtime: Runtime, scope: Scope) -> tuple[QueueInBrief, ...]:
    """Return the first `PAUSED_MAX` queues within a scope that are not paused."""
    found: list[QueueInBrief] = []
    after: tuple[int, str] | None = FIRST
    while after is not None and len(found) < PAUSED_MAX:
        page = await read(runtime, scope, after)
        found += (each for each in page.queues if each.value.state is not QueueState.PAUSED)
        after = page.next_after
    return tuple(found[:PAUSED_MAX])


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
