"""The events of a queue since a place in its journal, for clients that follow it."""

from dataclasses import dataclass
from datetime import datetime

from service.database import paging
from service.database.page_tokens import Listing
from service.database.paging import PageSelection
from service.mergequeue.store import journal
from service.mergequeue.store.journal import Numbered
from service.runtime import Runtime
from service.vocabulary import QueueRef


@dataclass(frozen=True, slots=True)
class QueueEvents:
    """Events of a queue, oldest first, and the place behind the last of them."""

    events: tuple[Numbered, ...]
    place: int
    has_more: bool


async def place_of(
    runtime: Runtime, queue: QueueRef, selection: PageSelection, since: datetime | None
) -> int:
    """Return the place behind which to go on; without a cursor by time, without both the end.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    key = paging.place_of(runtime, _listing(queue), selection).key
    if key:
        return int(key[0])
    return await runtime.store.read(journal.end_before, queue.id, since)


async def after(runtime: Runtime, queue: QueueRef, place: int, take: int) -> QueueEvents:
    """Return at most `take` events behind a place."""
    found = await runtime.store.read(journal.feed, queue.id, place, take + 1)
    shown = found[:take]
    last = shown[-1].id if shown else place
    return QueueEvents(shown, last, len(found) > take)


def cursor_of(runtime: Runtime, queue: QueueRef, place: int) -> str:
    """Return the cursor of a place, which clients send to go on behind it."""
    return paging.cursor(runtime, _listing(queue), (place,))


def _listing(queue: QueueRef) -> Listing:
    return Listing("listQueueEvents", queue.org_id, queue.id)
