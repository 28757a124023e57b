"""The log of what an endpoint was sent, page by page (API.md 9, `list-deliveries`)."""

from dataclasses import dataclass
from datetime import datetime

from service.database import paging
from service.database.database import Tx
from service.database.paging import Boundary, Listing, Part
from service.http.callers import Caller
from service.notifications import endpoints
from service.notifications.store import delivery_log
from service.notifications.store.delivery_log import Delivered, Position, Wanted
from service.notifications.store.notifications import Made
from service.runtime import Runtime
from service.vocabulary import DeliveryState


@dataclass(frozen=True, slots=True)
class LogWish:
    """Which part of which log: of an event, in a state, of facts in [since, until)."""

    endpoint_id: str
    take: int
    cursor: str | None = None
    event: str | None = None
    state: DeliveryState | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One try and how it ended; `error` None is a success."""

    at: datetime
    status_code: int | None
    duration_ms: int
    error: str | None


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One message at one endpoint with its tries, oldest first; `body` is what is sent."""

    message_id: str
    event: str
    state: DeliveryState
    attempts: tuple[AttemptView, ...]
    next_attempt_at: datetime | None
    body: str


async def read(runtime: Runtime, caller: Caller, wish: LogWish) -> Part[DeliveryView]:
    """Deliveries to an endpoint, newest facts first.

    Raises NotFound(webhook_endpoint_not_found), Malformed(invalid_page_token,
    page_token_expired).
    """
    filters = (wish.endpoint_id, wish.event, wish.state, wish.since, wish.until)
    listing = Listing("webhooks/list-deliveries", caller.org_id, filters=filters)
    now = runtime.clock.now()
    after = paging.boundary_of(runtime.keys, listing, wish.cursor, now)
    behind = None if after is None else _position(after)
    found = await runtime.store.read(_page, caller, wish, behind)
    rows = [(_view(each), _boundary(each)) for each in found]
    return paging.part_of(runtime.keys, listing, rows, wish.take, now)


def _page(
    session: Tx, caller: Caller, wish: LogWish, behind: Position | None
) -> tuple[Delivered, ...]:
    endpoint = endpoints.find(session, caller, wish.endpoint_id)
    wanted = Wanted(wish.event, wish.state, wish.since, wish.until)
    return delivery_log.page(session, endpoint.id, wanted, behind, wish.take + 1)


def _boundary(delivered: Delivered) -> Boundary:
    return Boundary((paging.micros(delivered.made_at), delivered.message))


def _position(boundary: Boundary) -> Position:
    at, message = boundary.key
    return paging.instant(int(at)), str(message)


def _view(delivered: Delivered) -> DeliveryView:
    return DeliveryView(
        message_id=delivered.message,
        event=delivered.event,
        state=delivered.state,
        attempts=tuple(attempt_view(made) for made in delivered.tries),
        next_attempt_at=delivered.next_at,
        body=delivered.body,
    )


def attempt_view(made: Made) -> AttemptView:
    """A try as it is shown."""
    return AttemptView(made.at, made.status_code, made.duration_ms, made.error)
