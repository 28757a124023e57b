"""Handlers of the events of a queue."""

from service.http.callers import Call
from service.http.encoding import Encoder
from service.http.models.common import Awaited
from service.http.route import Route, read
from service.http.waiting import Versioned
from service.mergequeue.api import changes, pull_requests, responses
from service.mergequeue.api.models.answers.queues import QueueEventsListed
from service.mergequeue.api.models.lists import ListQueueEvents
from service.mergequeue.operations import queue_events
from service.mergequeue.operations.queue_events import QueueEvents


@read(
    "listQueueEvents",
    ListQueueEvents,
    QueueEventsListed,
    "queue_not_found",
    "invalid_page_token",
    "page_token_expired",
)
async def list_events(call: Call, request: ListQueueEvents) -> bytes:
    """List the events of a queue behind a cursor, or wait until there is one."""
    queue = await pull_requests.queue_of(call, request)
    place = await queue_events.place_of(call.runtime, queue, request.cursor, request.since)
    encoder = Encoder(call.runtime.options.enum_case)

    async def found() -> Versioned:
        events = await queue_events.after(call.runtime, queue, place, request.count())
        shown = listed(events, queue.branch)
        return Versioned(str(events.place), encoder.encoded(shown))

    awaited = None if request.wait_for is None else Awaited(str(place), request.wait_for)
    return await changes.newest(call, f"queue/{queue.id}", awaited, found)


def listed(found: QueueEvents, target: str) -> QueueEventsListed:
    """Return the answer of some events."""
    return QueueEventsListed(
        events=[responses.queue_event(each, target, found.events) for each in found.events],
        cursor=found.cursor,
        has_more=found.has_more,
    )


EVENT_ROUTES: tuple[Route, ...] = (list_events,)
"""The endpoints of events."""
