"""Many pull requests of a queue, and the events of one, a part at a time (API.md 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from service.database import paging
from service.database.database import Tx
from service.database.paging import Boundary, Listing, Part
from service.errors import Invalid
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Recorded
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations import pull_requests, shown, turn, wholes
from service.mergequeue.operations.views import PullRequestView, TimelineEvent
from service.mergequeue.store import journal, listings
from service.mergequeue.store.journal import Numbered
from service.mergequeue.store.listings import EndedSpan
from service.runtime import Runtime
from service.vocabulary import QueueRef

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)

OPEN, ENDED = "open", "ended"
"""The halves of a list of pull requests; a boundary's key begins with its own."""

Placed = tuple[PullRequestView, Boundary]


@dataclass(frozen=True, slots=True)
class Found:
    """The newest submissions of some pull requests, and the numbers that have none."""

    views: tuple[PullRequestView, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PullRequestFilter:
    """Which submissions: in these states, ended in `[since, until)`.

    A time that is given leaves those out that have not ended.
    """

    states: frozenset[EntryState] = frozenset(EntryState)
    since: datetime | None = None
    until: datetime | None = None

    @property
    def open_states(self) -> frozenset[EntryState]:
        """States of open submissions that are wanted."""
        timed = self.since is not None or self.until is not None
        return frozenset() if timed else self.states - FINAL

    def listing(self, queue: QueueRef) -> Listing:
        """The list of a queue that this picks."""
        times = [None if at is None else paging.micros(at) for at in (self.since, self.until)]
        filters = (sorted(self.states), *times)
        return Listing("listPullRequests", queue.org_id, queue.id, filters)


@dataclass(frozen=True, slots=True)
class EventPart:
    """Events of one submission behind those already given.

    `past` begins with what a sentence about one of them may refer to, and ends with them.
    """

    events: tuple[TimelineEvent, ...]
    past: tuple[Recorded, ...]
    next_cursor: str | None


async def newest(
    runtime: Runtime, queue: QueueRef, numbers: Sequence[int], *, include_timeline: bool = False
) -> Found:
    """The newest submission of each pull request, in the order asked for, each once."""
    whole = await wholes.view_of(runtime, queue)
    wanted = tuple(dict.fromkeys(numbers))
    views = {each.entry.pr: each for each in whole.entries if each.entry.pr in set(wanted)}
    rest = [number for number in wanted if number not in views]
    if rest:
        past = await runtime.store.read(_newest_ended, queue, whole.value, rest)
        views |= {each.entry.pr: each for each in past}
    found = tuple(views[number] for number in wanted if number in views)
    if include_timeline:
        found = await shown.with_timelines(runtime, found)
    return Found(found, tuple(number for number in wanted if number not in views))


def _newest_ended(
    session: Tx, queue: QueueRef, value: MergeQueue, numbers: Sequence[int]
) -> tuple[PullRequestView, ...]:
    found = listings.newest_ended(session, queue.id, numbers)
    return shown.ended(session, queue, value, [each.entry for each in found])


async def listed(
    runtime: Runtime, queue: QueueRef, wanted: PullRequestFilter, take: int, cursor: str | None
) -> Part[PullRequestView]:
    """Open submissions in the order of the queue, then ended ones, the last ended first.

    What ends between two calls moves from one half into the other: its own place changed.
    Raises Invalid(invalid_time_range), Malformed(invalid_page_token, page_token_expired).
    """
    if wanted.since is not None and wanted.until is not None and wanted.until < wanted.since:
        raise Invalid(
            "`until` lies before `since`. Send the earlier time as `since`.",
            code="invalid_time_range",
        )
    now = runtime.clock.now()
    listing = wanted.listing(queue)
    boundary = paging.boundary_of(runtime.keys, listing, cursor, now)
    # One more than shown tells whether anything follows.
    sought = take + 1
    rows: list[Placed] = []
    half = OPEN if boundary is None else boundary.key[0]
    if half == OPEN and wanted.open_states:
        rows = await _open(runtime, queue, wanted, boundary)
    if len(rows) < sought and wanted.states & FINAL:
        span = _span(wanted, boundary if half == ENDED else None)
        value = await turn.value(runtime, queue.id)
        rows += await runtime.store.read(_ended, queue, value, span, sought - len(rows))
    return paging.part_of(runtime.keys, listing, rows, take, now)


async def _open(
    runtime: Runtime, queue: QueueRef, wanted: PullRequestFilter, after: Boundary | None
) -> list[Placed]:
    whole = await wholes.view_of(runtime, queue)
    states = wanted.open_states
    placed = [(each, _place(each)) for each in whole.entries if each.entry.state in states]
    return [row for row in placed if after is None or row[1].key > after.key]


def _place(view: PullRequestView) -> Boundary:
    *parts, submitted_at, pr = shown.place(view.entry)
    return Boundary((OPEN, *parts, paging.micros(submitted_at), pr))


def _span(wanted: PullRequestFilter, after: Boundary | None) -> EndedSpan:
    before = (wanted.until or NEVER, 0)
    if after is not None:
        _, ended_at, no = after.key
        before = (paging.instant(int(ended_at)), int(no))
    return EndedSpan(wanted.states & FINAL, wanted.since or ALWAYS, before)


def _ended(
    session: Tx, queue: QueueRef, value: MergeQueue, span: EndedSpan, limit: int
) -> list[Placed]:
    found = listings.ended(session, queue.id, span, limit)
    views = shown.ended(session, queue, value, [each.entry for each in found])
    places = [Boundary((ENDED, paging.micros(each.entry.state_since), each.no)) for each in found]
    return list(zip(views, places, strict=True))


async def events(
    runtime: Runtime, queue: QueueRef, number: int, take: int, cursor: str | None
) -> EventPart:
    """What happened to the newest submission, oldest first, numbered from 1 without gaps.

    A cursor stays with the submission that it was given out for, also after a later one.
    Raises NotFound(never_submitted), Malformed(invalid_page_token, page_token_expired).
    """
    now = runtime.clock.now()
    listing = Listing("getPullRequestTimeline", queue.org_id, queue.id, (number,))
    boundary = paging.boundary_of(runtime.keys, listing, cursor, now)
    if boundary is None:
        view = await pull_requests.status(runtime, queue, number)
        boundary = Boundary((view.entry.id, 0))
    entry, after = str(boundary.key[0]), int(boundary.key[1])
    searches, found = await runtime.store.read(_events, queue, (number, entry), after, take + 1)
    numbered = enumerate(found, start=boundary.rows_before + 1)
    rows = [
        (TimelineEvent(nth, each.recorded), Boundary((entry, each.id), nth))
        for nth, each in numbered
    ]
    part = paging.part_of(runtime.keys, listing, rows, take, now)
    past = (*searches, *(each.recorded for each in part.rows))
    return EventPart(part.rows, past, part.next_cursor)


def _events(
    session: Tx, queue: QueueRef, submission: tuple[int, str], after: int, limit: int
) -> tuple[tuple[Recorded, ...], tuple[Numbered, ...]]:
    found = journal.timeline_after(session, queue.id, submission, after, limit)
    searches = journal.searches_of(session, queue.id, submission[1]) if after else ()
    return searches, found
