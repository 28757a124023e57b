"""Handlers of the events of a queue."""

from collections.abc import AsyncIterator

from service.accounts import access
from service.database.paging import PageSelection
from service.http.callers import Call
from service.http.encoding import Encoder
from service.http.models.common import Awaited
from service.http.route import VERSIONED, Route, Streamed, read
from service.http.waiting import Versioned, Waiting
from service.mergequeue.api import changes, pull_requests, responses
from service.mergequeue.api.models.answers.queues import QueueEvent, QueueEventsListed
from service.mergequeue.api.models.lists import EVENTS, ListQueueEvents, StreamQueueEvents
from service.mergequeue.engine.outputs import QueueDeleted
from service.mergequeue.operations import queue_access, queue_events
from service.mergequeue.operations.queue_events import QueueEvents
from service.vocabulary import QueueRef, Role

STREAM_S = 600.0
"""How long a stream lasts at most; clients connect again."""
HEARTBEAT_S = 15.0
"""The place keeps proxies from closing a quiet stream; then the token is looked at again, too."""
RETRY_MS = 2000
"""When a client connects again after the end of a stream."""


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
    place = await queue_events.place_of(call.runtime, queue, request.page(), request.since)
    encoder = Encoder(call.runtime.options.enum_case)

    async def found() -> Versioned:
        events = await queue_events.after(call.runtime, queue, place, request.page().size)
        shown = QueueEventsListed(
            events=_shown(events, queue),
            cursor=queue_events.cursor_of(call.runtime, queue, events.place),
            has_more=events.has_more,
        )
        return Versioned(str(events.place), encoder.encoded(shown))

    awaited = None if request.wait_for is None else Awaited(str(place), request.wait_for)
    return await changes.newest(call, f"queue/{queue.id}", awaited, found)


async def stream(call: Call, asked: StreamQueueEvents, last: str | None) -> AsyncIterator[bytes]:
    """Send the events of a queue as they happen, as server-sent events.

    Each has the fields of `QueueEvent` as its data, and its cursor as its id; a client that
    connects again sends the last one as `Last-Event-ID`. The place is also sent at first and every
    15 seconds, as an id without data. A stream ends after 10 minutes, or when the queue is deleted.
    """
    queue = await queue_access.find_queue(call.runtime, call.caller, asked.ref, asked.target_branch)
    selection = PageSelection(EVENTS, asked.cursor)
    if last:
        selection = PageSelection(EVENTS, last, "Last-Event-ID")
    place = await queue_events.place_of(call.runtime, queue, selection, None)
    return _parts(call, queue, place)


async def _parts(call: Call, queue: QueueRef, place: int) -> AsyncIterator[bytes]:
    """Return events from a place on, until the queue is deleted, and from time to time the place.

    An empty part after each wait shows that the stream goes on.
    Raises Unauthenticated when the token ends meanwhile.
    """
    runtime, topic = call.runtime, f"queue/{queue.id}"
    clock, places = runtime.clock, call.cache(Waiting)
    encoder = Encoder(runtime.options.enum_case)
    began_s = checked_s = clock.monotonic_s()
    # Without an event too a client knows where to go on, by a cursor that is not too old.
    yield f"retry: {RETRY_MS}\nid: {queue_events.cursor_of(runtime, queue, place)}\n\n".encode()
    while not places.is_stopping and (now_s := clock.monotonic_s()) < began_s + STREAM_S:
        seen = runtime.wakeups.version(topic)
        found = await queue_events.after(runtime, queue, place, EVENTS)
        if found.events or now_s >= checked_s + HEARTBEAT_S:
            await runtime.store.read(access.recheck, call.actor, clock.now())
            checked_s = now_s
            if not found.events:
                yield f"id: {queue_events.cursor_of(runtime, queue, place)}\n\n".encode()
        for numbered, event in zip(found.events, _shown(found, queue), strict=True):
            cursor = queue_events.cursor_of(runtime, queue, numbered.id)
            head = f"id: {cursor}\nevent: {event.event}\ndata: "
            yield head.encode() + encoder.encoded(event) + b"\n\n"
        if any(isinstance(each.recorded.event, QueueDeleted) for each in found.events):
            return
        place = found.place
        if not found.has_more:
            await runtime.wakeups.wait(topic, seen, changes.LOOK_EVERY_S)
            yield b""


def _shown(found: QueueEvents, queue: QueueRef) -> list[QueueEvent]:
    past = [each.recorded for each in found.events]
    return [responses.queue_event(each, queue.branch, past) for each in past]


EVENT_ROUTES: tuple[Route, ...] = (
    list_events,
    Streamed(
        f"{VERSIONED}/streamQueueEvents",
        Role.READ,
        stream,
        StreamQueueEvents,
        "streamQueueEvents",
        ("queue_not_found", "invalid_page_token", "page_token_expired"),
    ),
)
"""The endpoints of events."""
