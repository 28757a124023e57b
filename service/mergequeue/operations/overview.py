"""All queues that a reader of pages may see, in brief."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from service.database import paging
from service.database.database import Tx
from service.database.page_tokens import Key, Listing
from service.database.paging import Page, PageSelection, Place
from service.mergequeue.engine.explaining.estimates import percentile
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import page_of_queue
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.store import listings, overviews
from service.mergequeue.store.listings import EndedSpan
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef

QUEUES_MAX = 100
"""Queues on one page."""

REPOSITORIES_MAX = 200
"""Repositories whose rights are read together, and all of them for the first page of a person."""

MERGED_MAX = 6
"""Pull requests that merged last, on the first page."""

DAY = overviews.DAY
FIRST = (0, "")
MEDIAN, HIGH = 0.5, 0.95
RUNNING_MAX = 10_000
"""Queues among which those to be paused, or those that are named, are looked for."""

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
class UsualDay:
    """The same weekday of the weeks before: the median of what merged within 24 hours.

    `weeks` is how many of the last four weeks it is of: those since the first that had a merge.
    """

    merged: float
    weeks: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of queues; `next_cursor` is the token of the next page, None: this is the last.

    `merged`: what merged last in these queues within a day, with its queue. `day`: their figures.
    `usual`: what merges there on such a day, None: no week before had a merge on it.
    """

    queues: tuple[QueueInBrief, ...]
    next_cursor: str | None
    merged: tuple[tuple[QueueRef, LeftEntry], ...]
    day: LastDay
    usual: UsualDay | None


async def load_overview(runtime: Runtime, scope: Scope, token: str | None = None) -> Overview:
    """Return the queues within a scope, by repository and branch.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    return await runtime.store.read(_read, scope, _place(runtime, scope, token))


def _place(runtime: Runtime, scope: Scope, token: str | None) -> Place:
    listing = Listing("overview", scope.org_id)
    return paging.place_of(runtime, listing, PageSelection(QUEUES_MAX, token))


def _page(session: Tx, scope: Scope, place: Place) -> Page[QueueInBrief]:
    after = (int(place.key[0]), str(place.key[1])) if place.key else FIRST
    return place.page(overviews.in_brief(session, scope, after, place.now, place.limit), _key)


def _key(queue: QueueInBrief) -> Key:
    return queue.ref.repository_id, queue.ref.branch


def _read(session: Tx, scope: Scope, place: Place) -> Overview:
    page = _page(session, scope, place)
    since = place.now - DAY
    refs = {each.ref.id: each.ref for each in page.rows}
    merged = overviews.just_merged(session, tuple(refs), since, MERGED_MAX)
    left = page_of_queue.with_landings(session, [entry for _, entry in merged])
    return Overview(
        page.rows,
        page.next_cursor,
        tuple((refs[id_], one) for (id_, _), one in zip(merged, left, strict=True)),
        day_of(overviews.merged(session, tuple(refs), since)),
        usual_day(overviews.merged_weeks_ago(session, tuple(refs), place.now)),
    )


async def usual_day_of(runtime: Runtime, queue: QueueRef) -> UsualDay | None:
    """Return what merges in a queue on such a day; None: no week before had a merge on it."""
    now = runtime.clock.now()
    return usual_day(await runtime.store.read(overviews.merged_weeks_ago, [queue.id], now))


def usual_day(weeks: Sequence[int]) -> UsualDay | None:
    """Return the median of the weeks, the newest first, without those before the first merge."""
    known = len(weeks)
    while known and not weeks[known - 1]:
        known -= 1
    return UsualDay(statistics.median(weeks[:known]), known) if known else None


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
    """Return the queues within a scope that are not paused, of the first `RUNNING_MAX`."""
    found: list[QueueInBrief] = []
    token: str | None = ""
    while token is not None and len(found) < RUNNING_MAX:
        page = await runtime.store.read(_page, scope, _place(runtime, scope, token))
        found += (each for each in page.rows if each.value.state is not QueueState.PAUSED)
        token = page.next_cursor
    return tuple(found)


async def in_brief(runtime: Runtime, scope: Scope) -> tuple[QueueInBrief, ...]:
    """Return the first `QUEUES_MAX` queues within a scope, by repository and branch."""
    now = runtime.clock.now()
    return await runtime.store.read(overviews.in_brief, scope, FIRST, now, QUEUES_MAX)


async def refs(runtime: Runtime, scope: Scope) -> tuple[QueueRef, ...]:
    """Return the first `RUNNING_MAX` queues within a scope by name."""
    return await runtime.store.read(overviews.refs, scope, RUNNING_MAX)


async def last_merged(runtime: Runtime, queue_ids: Sequence[int]) -> dict[int, Entry]:
    """Return what merged last in each of these queues, by queue."""
    return await runtime.store.read(_last_merged, queue_ids)


def _last_merged(session: Tx, queue_ids: Sequence[int]) -> dict[int, Entry]:
    span = EndedSpan(frozenset({EntryState.MERGED}), page_of_queue.ALWAYS, (page_of_queue.NEVER, 0))
    found = {each: listings.ended(session, each, span, 1) for each in queue_ids}
    return {each: last for each, newest in found.items() for last in newest}


async def changes(runtime: Runtime, scope: Scope) -> int:
    """Return a number that changes with every queue within a scope."""
    return await runtime.store.read(overviews.changes, scope)


async def numbered(
    runtime: Runtime, scope: Scope, number: int, at_most: int
) -> tuple[tuple[QueueRef, Entry], ...]:
    """Return the newest submission of a pull request of this number in each queue of a scope."""
    return await runtime.store.read(overviews.numbered, scope, number, at_most)


async def repositories(runtime: Runtime, host: str, after: int = 0) -> dict[int, RepoRef]:
    """Return repositories of a host that have a queue, by our id, behind the id `after`.

    At most `REPOSITORIES_MAX`.
    """
    return await runtime.store.read(overviews.with_queues, host, after, REPOSITORIES_MAX)
