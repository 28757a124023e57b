"""Pages of pull requests, events, queues and test runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from service.accounts import access
from service.database import paging
from service.database.database import Tx
from service.database.paging import Boundary, Listing, Part
from service.errors import Invalid
from service.http.callers import Caller
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Recorded
from service.mergequeue.engine.states import FINAL, EntryState, RunStatus
from service.mergequeue.operations import pull_requests, queue_views, turn
from service.mergequeue.operations.views import PullRequestView, TimelineEvent
from service.mergequeue.store import journal, listings
from service.mergequeue.store.journal import Numbered
from service.mergequeue.store.listings import EndedSpan, ListedQueue, ListedRun, RunFilter
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)

OPEN, ENDED = "open", "ended"
"""The halves of a list of pull requests; a boundary's key begins with its own."""

Placed = tuple[PullRequestView, Boundary]


@dataclass(frozen=True, slots=True)
class Submissions:
    """The newest submissions of some pull requests, and the numbers that have none."""

    views: tuple[PullRequestView, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PullRequestFilter:
    """Submissions in these states, ended in `[since, until)`.

    If a time is given, open submissions are left out.
    """

    states: frozenset[EntryState] = frozenset(EntryState)
    since: datetime | None = None
    until: datetime | None = None

    @property
    def open_states(self) -> frozenset[EntryState]:
        """Return the states of open submissions to include."""
        timed = self.since is not None or self.until is not None
        return frozenset() if timed else self.states - FINAL

    def listing(self, queue: QueueRef) -> Listing:
        """Return the list with these filters, for its page tokens."""
        times = [None if at is None else paging.micros(at) for at in (self.since, self.until)]
        filters = (sorted(self.states), *times)
        return Listing("listPullRequests", queue.org_id, queue.id, filters)


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events of one submission.

    `past` begins with the events that a sentence about one of them may refer to.
    """

    events: tuple[TimelineEvent, ...]
    past: tuple[Recorded, ...]
    next_cursor: str | None


async def newest_submissions(
    runtime: Runtime, queue: QueueRef, numbers: Sequence[int], *, include_timeline: bool = False
) -> Submissions:
    """Return the newest submission of each pull request, in the order requested, each once."""
    whole = await queue_views.queue_view(runtime, queue)
    wanted = tuple(dict.fromkeys(numbers))
    views = {each.entry.pr: each for each in whole.entries if each.entry.pr in set(wanted)}
    rest = [number for number in wanted if number not in views]
    if rest:
        past = await runtime.store.read(_newest_ended, queue, whole.value, rest)
        views |= {each.entry.pr: each for each in past}
    found = tuple(views[number] for number in wanted if number in views)
    if include_timeline:
        found = await queue_views.with_timelines(runtime, found)
    return Submissions(found, tuple(number for number in wanted if number not in views))


def _newest_ended(
    session: Tx, queue: QueueRef, value: MergeQueue, numbers: Sequence[int]
) -> tuple[PullRequestView, ...]:
    found = listings.newest_ended(session, queue.id, numbers)
    return queue_views.ended_views(session, queue, value, [each.entry for each in found])


async def list_pull_requests(
    runtime: Runtime, queue: QueueRef, wanted: PullRequestFilter, take: int, cursor: str | None
) -> Part[PullRequestView]:
    """Return open submissions in the order of the queue, then ended ones, the last ended first.

    A submission that ends between two calls moves from the first half to the second.
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
    # One more than shown, to know whether anything follows.
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
    whole = await queue_views.queue_view(runtime, queue)
    states = wanted.open_states
    placed = [(each, _boundary(each)) for each in whole.entries if each.entry.state in states]
    return [row for row in placed if after is None or row[1].key > after.key]


def _boundary(view: PullRequestView) -> Boundary:
    *parts, submitted_at, pr = queue_views.sort_key(view.entry)
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
    views = queue_views.ended_views(session, queue, value, [each.entry for each in found])
    places = [Boundary((ENDED, paging.micros(each.entry.state_since), each.no)) for each in found]
    return list(zip(views, places, strict=True))


async def list_events(
    runtime: Runtime, queue: QueueRef, number: int, take: int, cursor: str | None
) -> EventPage:
    """Return the events of the newest submission, oldest first, numbered from 1 without gaps.

    A page token stays with its submission, also after a later submission.
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
    return EventPage(part.rows, past, part.next_cursor)


def _events(
    session: Tx, queue: QueueRef, submission: tuple[int, str], after: int, limit: int
) -> tuple[tuple[Recorded, ...], tuple[Numbered, ...]]:
    found = journal.timeline_after(session, queue.id, submission, after, limit)
    searches = journal.searches_of(session, queue.id, submission[1]) if after else ()
    return searches, found


FIRST = (0, "")


async def list_queues(
    runtime: Runtime, caller: Caller, ref: RepoRef | None, take: int, cursor: str | None
) -> Part[ListedQueue]:
    """Return the queues that the caller may see, of one repository if it is named.

    Sorted by repository, in the order of their installation, then by branch.
    Raises NotFound(repository_not_found), Malformed(invalid_page_token, page_token_expired).
    """
    within = caller.repositories
    place = None
    if ref is not None:
        place = (await access.find_repository(runtime, caller, ref)).id
        within = frozenset({place})
    now = runtime.clock.now()
    listing = Listing("listQueues", caller.org_id, place)
    boundary = paging.boundary_of(runtime.keys, listing, cursor, now)
    after = FIRST if boundary is None else (int(boundary.key[0]), str(boundary.key[1]))
    found = await runtime.store.read(listings.queues_after, caller.org_id, within, after, take + 1)
    rows = [(each, Boundary((each.repository_id, each.branch))) for each in found]
    return paging.part_of(runtime.keys, listing, rows, take, now)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Which runs: None is any; the first `offset` are skipped."""

    pr: int | None
    status: RunStatus | None
    offset: int
    take: int


async def list_runs(
    runtime: Runtime, queue: QueueRef, request: RunRequest
) -> tuple[tuple[ListedRun, ...], int]:
    """Return the runs that have a test branch, newest first, and how many there are in all."""
    wanted = RunFilter(request.pr, request.status)

    def read(session: Tx) -> tuple[tuple[ListedRun, ...], int]:
        rows = listings.built_runs(session, queue.id, wanted, request.offset, request.take)
        return rows, listings.built_runs_count(session, queue.id, wanted)

    return await runtime.store.read(read)
