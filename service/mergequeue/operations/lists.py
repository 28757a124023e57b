"""Pages of pull requests, events, queues and test runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from service.accounts import access
from service.database import page_tokens, paging
from service.database.database import Tx
from service.database.page_tokens import Listing
from service.database.paging import Page, PageSelection
from service.errors import Invalid
from service.http.callers import Caller
from service.mergequeue.engine.culprits.failing import failing_of
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Recorded
from service.mergequeue.engine.states import FINAL, EntryState, RunStatus
from service.mergequeue.operations import checked_names, pull_requests, queue_views, turn
from service.mergequeue.operations.views import PullRequestView, TimelineEvent
from service.mergequeue.store import journal, listings
from service.mergequeue.store.journal import Numbered
from service.mergequeue.store.listings import EntryFilter, ListedQueue, ListedRun, RunFilter
from service.mergequeue.wording.situation import Tables
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)


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

    def listing(self, queue: QueueRef) -> Listing:
        """Return the list with these filters, for its page tokens."""
        times = [None if at is None else page_tokens.micros(at) for at in (self.since, self.until)]
        filters = ("by number", sorted(self.states), *times)
        return Listing("listPullRequests", queue.org_id, queue.id, filters)

    def rows(self) -> EntryFilter:
        """Return the same for the store."""
        if self.since is None and self.until is None:
            return EntryFilter(self.states)
        return EntryFilter(self.states & FINAL, (self.since or ALWAYS, self.until or NEVER))


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events of one submission.

    `past` begins with the events that a sentence about one of them may refer to; `tables` has
    the required checks of runs that passed in them.
    """

    events: tuple[TimelineEvent, ...]
    past: tuple[Recorded, ...]
    next_cursor: str | None
    tables: Tables


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
    return queue_views.ended_views(session, queue, value, found)


async def list_pull_requests(
    runtime: Runtime, queue: QueueRef, filters: PullRequestFilter, selection: PageSelection
) -> Page[PullRequestView]:
    """Return submissions, the newest first, whatever has become of them.

    Their order never changes: none that is listed throughout is missed or repeated.
    Raises Invalid(invalid_time_range), Malformed(invalid_page_token, page_token_expired).
    """
    if filters.since is not None and filters.until is not None and filters.until < filters.since:
        raise Invalid(
            "`until` lies before `since`. Send the earlier time as `since`.",
            code="invalid_time_range",
        )
    place = paging.place_of(runtime, filters.listing(queue), selection)
    before = int(place.key[0]) if place.key else listings.NEWEST
    found = await runtime.store.read(
        listings.entries_before, queue.id, filters.rows(), before, place.limit
    )
    page = place.page(tuple(found), lambda no: (no,))
    views = await _views(runtime, queue, {no: found[no] for no in page.rows})
    return page.with_rows([views[no] for no in page.rows])


async def _views(
    runtime: Runtime, queue: QueueRef, found: Mapping[int, str]
) -> dict[int, PullRequestView]:
    """Return the view of each submission, given number and id, as they are now."""
    whole = await queue_views.queue_view(runtime, queue)
    live = {each.entry.id: each for each in whole.entries}
    views = {no: live[entry] for no, entry in found.items() if entry in live}
    ended = [no for no in found if no not in views]
    if ended:
        views |= await runtime.store.read(_ended, queue, whole.value, ended)
    return views


def _ended(
    session: Tx, queue: QueueRef, value: MergeQueue, numbers: Sequence[int]
) -> dict[int, PullRequestView]:
    found = listings.numbered(session, numbers)
    views = queue_views.ended_views(session, queue, value, found)
    return dict(zip(numbers, views, strict=True))


async def list_events(
    runtime: Runtime, queue: QueueRef, number: int, selection: PageSelection
) -> EventPage:
    """Return the events of the newest submission, oldest first, numbered from 1 without gaps.

    A page token stays with its submission, also after a later submission.
    Raises NotFound(never_submitted), Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing("getPullRequestTimeline", queue.org_id, queue.id, (number,))
    place = paging.place_of(runtime, listing, selection)
    key = place.key or ((await pull_requests.status(runtime, queue, number)).entry.id, 0)
    entry, after = str(key[0]), int(key[1])
    searches, found, tables = await runtime.store.read(
        _events, queue, (number, entry), after, place.limit
    )
    page = place.page(found, lambda event: (entry, event.id))
    recorded = [event.recorded for event in page.rows]
    events = map(TimelineEvent, count(place.rows_before + 1), recorded)
    return EventPage(tuple(events), (*searches, *recorded), page.next_cursor, tables)


def _events(
    session: Tx, queue: QueueRef, submission: tuple[int, str], after: int, limit: int
) -> tuple[tuple[Recorded, ...], tuple[Numbered, ...], Tables]:
    found = journal.timeline_after(session, queue.id, submission, after, limit)
    searches = journal.searches_of(session, queue.id, submission[1]) if after else ()
    tables = checked_names.tables_in(session, queue, [each.recorded for each in found])
    return searches, found, tables


FIRST = (0, "")


async def list_queues(
    runtime: Runtime, caller: Caller, ref: RepoRef | None, selection: PageSelection
) -> Page[ListedQueue]:
    """Return the queues that the caller may see, of one repository if it is named.

    Sorted by repository, in the order of their installation, then by branch.
    Raises NotFound(repository_not_found), Malformed(invalid_page_token, page_token_expired).
    """
    within = caller.repositories
    repository_id = None
    if ref is not None:
        repository_id = (await access.find_repository(runtime, caller, ref)).id
        within = frozenset({repository_id})
    listing = Listing("listQueues", caller.org_id, repository_id)
    place = paging.place_of(runtime, listing, selection)
    after = (int(place.key[0]), str(place.key[1])) if place.key else FIRST
    found = await runtime.store.read(
        listings.queues_after, caller.org_id, within, after, place.limit
    )
    return place.page(found, lambda queue: (queue.repository_id, queue.branch))


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The selection of runs: None is any; the first page without a token skips `offset` runs."""

    pr: int | None
    status: RunStatus | None
    page: PageSelection
    offset: int = 0

    def listing(self, queue: QueueRef) -> Listing:
        """Return the list with these filters, for its page tokens."""
        filters = (self.pr, self.status and self.status.value)
        return Listing("listMergeQueueTestingResults", queue.org_id, queue.id, filters)


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, how many there are in all, and where the next page begins; None at the end."""

    runs: tuple[ListedRun, ...]
    total: int
    next_cursor: str | None


async def list_runs(runtime: Runtime, queue: QueueRef, request: RunRequest) -> RunPage:
    """Return the runs that have a test branch, the newest first.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    place = paging.place_of(runtime, request.listing(queue), request.page)
    before, skipped = (int(place.key[0]), 0) if place.key else (listings.NEWEST, request.offset)
    live = (await turn.value(runtime, queue.id)).runs
    failing = frozenset(run.id for run in live.values() if failing_of(run) is not None)
    run_filter = RunFilter(request.pr, request.status, failing)

    def read(session: Tx) -> tuple[tuple[ListedRun, ...], int]:
        rows = listings.built_runs(session, queue.id, run_filter, (before, skipped), place.limit)
        return rows, listings.built_runs_count(session, queue.id, run_filter)

    found, total = await runtime.store.read(read)
    page = place.page(found, lambda run: (run.no,))
    return RunPage(page.rows, total, page.next_cursor)
