"""Pages of a queue's past, for people: its submissions and its test runs, the newest first."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Generic, TypeAlias, TypeVar

from service.database import page_tokens, paging
from service.database.database import Tx
from service.database.page_tokens import Listing
from service.database.paging import PageSelection
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.operations import page_of_queue, turn
from service.mergequeue.operations.overview import Scope
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.store import history_lists, listings
from service.runtime import Runtime
from service.vocabulary import QueueRef

SubmissionFilter: TypeAlias = history_lists.SubmissionFilter
RunSpan: TypeAlias = history_lists.RunSpan
Row = TypeVar("Row")

ROWS_MAX = 50
"""Rows on one page."""


@dataclass(frozen=True, slots=True)
class PastPage(Generic[Row]):
    """A page of a queue's past, how many rows the list has, and the token of the next page."""

    queue: MergeQueue
    rows: tuple[Row, ...]
    total: int
    next_cursor: str | None


async def mentioned(
    runtime: Runtime, scope: Scope, text: str, limit: int
) -> tuple[tuple[QueueRef, Entry], ...]:
    """Return the newest submissions within a scope whose title or author has a text."""
    return await runtime.store.read(history_lists.mentioned, scope, text, limit)


async def submissions(
    runtime: Runtime, queue: QueueRef, wanted: SubmissionFilter, token: str | None
) -> PastPage[LeftEntry]:
    """Return submissions. Raises Malformed(invalid_page_token, page_token_expired)."""
    filters = (sorted(wanted.states), wanted.reason, wanted.ended, wanted.at, wanted.text)
    listing = Listing("pulls", queue.org_id, queue.id, _plain(filters))
    place = paging.place_of(runtime, listing, PageSelection(ROWS_MAX, token))
    before = int(place.key[0]) if place.key else listings.NEWEST

    def read(session: Tx) -> tuple[dict[int, LeftEntry], int]:
        found = history_lists.submissions(session, queue.id, wanted, before, place.limit)
        rows = page_of_queue.with_landings(session, listings.numbered(session, found))
        total = history_lists.submissions_count(session, queue.id, wanted)
        return dict(zip(found, rows, strict=True)), total

    rows, total = await runtime.store.read(read)
    page = place.page(tuple(rows), lambda no: (no,))
    value = await turn.value(runtime, queue.id)
    return PastPage(value, tuple(rows[no] for no in page.rows), total, page.next_cursor)


async def runs(
    runtime: Runtime, queue: QueueRef, wanted: RunSpan, token: str | None
) -> PastPage[Run]:
    """Return test runs, also those without a test branch. Raises as `submissions`."""
    listing = Listing("runs", queue.org_id, queue.id, _plain(astuple(wanted)))
    place = paging.place_of(runtime, listing, PageSelection(ROWS_MAX, token))
    before = int(place.key[0]) if place.key else listings.NEWEST

    def read(session: Tx) -> tuple[tuple[tuple[int, Run], ...], int]:
        rows = history_lists.runs_before(session, queue.id, wanted, before, place.limit)
        return rows, history_lists.runs_count(session, queue.id, wanted)

    rows, total = await runtime.store.read(read)
    page = place.page(rows, lambda row: (row[0],))
    value = await turn.value(runtime, queue.id)
    return PastPage(value, tuple(run for _, run in page.rows), total, page.next_cursor)


def _plain(filters: Sequence[object]) -> tuple[object, ...]:
    """Return filters as a page token names them."""
    return tuple(
        page_tokens.micros(each)
        if isinstance(each, datetime)
        else _plain(each)
        if isinstance(each, tuple)
        else each
        for each in filters
    )
