"""Messages: stored for endpoints, sent, retried, listed and replayed.

A message is stored in the transaction of its event; a worker sends it later. An attempt is
claimed for a minute, so that it is repeated if its process ends: delivery is at least once. No
transaction is open while a request is sent.

See docs/design/notifications.md 2.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

import structlog

from service.accounts import access, audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.database import page_tokens, paging
from service.database.claims import ClaimedRows
from service.database.database import Tx
from service.database.page_tokens import Key, Listing
from service.database.paging import Page, PageSelection
from service.errors import DatabaseUnavailable, Invalid, NotFound, ServiceError
from service.http.callers import Caller
from service.notifications import addresses, endpoints, messages, schedule, signing, slack
from service.notifications.store import delivery_log, notifications, subscribers
from service.notifications.store.delivery_log import DeliveryFilter
from service.notifications.store.notifications import Attempt, Made
from service.notifications.store.subscribers import Endpoint
from service.runtime import Outgoing, PostResult, Runtime
from service.vocabulary import DeliveryState

TOPIC = "notifications"
REPLAYED_MAX = 10_000
REPLAYED_WITHIN = timedelta(days=7)

log = structlog.get_logger()

Delivery: TypeAlias = delivery_log.Delivery


def enqueue(
    session: Tx, runtime: Runtime, message: messages.Message, listening: Sequence[Endpoint]
) -> None:
    """Store a message for those endpoints of one organization that select its event."""
    wanting = [each for each in listening if messages.wants(each.events, message.event)]
    if wanting:
        row = _row_of(runtime, wanting[0].org_id, message)
        ids = [each.id for each in wanting]
        notifications.append(session, row, ids, runtime.clock.now())


def _row_of(runtime: Runtime, org_id: int, message: messages.Message) -> notifications.Message:
    fresh_id = signing.message_id(runtime.ids.uuid())
    return notifications.Message(fresh_id, org_id, message.event, message.at, message.body)


async def claim(
    runtime: Runtime, limit: int, _owned: Collection[int] | None = None
) -> ClaimedRows[Attempt]:
    """Claim due attempts, at most `limit`, for a minute, after which another may claim them."""
    return await runtime.store.run(_claim, runtime, limit)


def _claim(session: Tx, runtime: Runtime, limit: int) -> ClaimedRows[Attempt]:
    now = runtime.clock.now()
    rows = notifications.claim(session, runtime.instance, now, limit)
    return ClaimedRows(rows, notifications.next_due(session, now))


async def carry_out(runtime: Runtime, attempt: Attempt) -> None:
    """Make one attempt and settle it; a failed attempt is followed by the next one."""
    endpoint = await runtime.store.read(subscribers.endpoint_by_id, attempt.endpoint)
    if endpoint is None:
        await runtime.store.run(notifications.give_up, attempt.endpoint, "The endpoint is gone.")
        return
    made, outcome = await _made(runtime, endpoint, attempt)
    await _settle(runtime, attempt, made, _next_try(runtime, attempt, outcome))


async def interrupted(runtime: Runtime, attempt: Attempt, error: Exception) -> None:
    """Settle an attempt that ended by an unexpected error, as a failure of the receiver.

    While the database is unavailable the attempt is repeated after its claim has expired.
    """
    if isinstance(error, DatabaseUnavailable):
        return
    outcome = PostResult(None, "A mistake of ours; the log has it.")
    made = Made(runtime.clock.now(), 0, None, outcome.error)
    await _settle(runtime, attempt, made, _next_try(runtime, attempt, outcome))


async def _made(runtime: Runtime, endpoint: Endpoint, attempt: Attempt) -> tuple[Made, PostResult]:
    """Make one attempt over the network and measure it."""
    at, began_s = runtime.clock.now(), runtime.clock.monotonic_s()
    runtime.crash_points.reach("notify.before_send")
    outcome = await _sent(runtime, endpoint, attempt, at)
    runtime.crash_points.reach("notify.after_send")
    took_ms = round((runtime.clock.monotonic_s() - began_s) * 1000)
    log.info(
        "notified",
        endpoint=endpoint.id,
        message=attempt.message,
        type=attempt.event,
        origin=addresses.origin_of(endpoint.url),
        status=outcome.status,
        why=outcome.error,
    )
    return Made(at, took_ms, outcome.status, outcome.error), outcome


async def _sent(runtime: Runtime, endpoint: Endpoint, attempt: Attempt, at: datetime) -> PostResult:
    try:
        keys = _keys(runtime, endpoint, at)
    except ServiceError:
        return PostResult(None, "The endpoint's secret cannot be read any more; rotate it.")
    body = slack.body_of(attempt.body, endpoint.format)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Headgate/{runtime.options.version}",
        **signing.headers(attempt.message, at, body, keys),
    }
    return await runtime.sender.post(Outgoing(endpoint.url, headers, body.encode()))


def _keys(runtime: Runtime, endpoint: Endpoint, at: datetime) -> list[str]:
    """Return the secrets that sign now, newest first."""
    sealed = [endpoint.secret]
    if endpoint.previous_secret and endpoint.previous_until and at < endpoint.previous_until:
        sealed.append(endpoint.previous_secret)
    return [runtime.keys.opened(each) for each in sealed]


def _next_try(runtime: Runtime, attempt: Attempt, outcome: PostResult) -> datetime | None:
    if outcome.error is None or outcome.status == schedule.GONE:
        return None
    now = runtime.clock.now()
    retry_after = schedule.retry_after_of(outcome.status, outcome.retry_after, now)
    spread_by = f"{attempt.message}/{attempt.endpoint}"
    return schedule.next_try(attempt.tries + 1, spread_by, now, retry_after)


async def _settle(runtime: Runtime, attempt: Attempt, made: Made, next_at: datetime | None) -> None:
    runtime.crash_points.reach("notify.before_settle")
    await runtime.store.run_kind("settle", _settled, runtime, attempt, made, next_at)
    outcome = "delivered" if made.error is None else "failed" if next_at is None else "retried"
    runtime.telemetry.count("headgate_notifications_total", outcome)
    runtime.wakeups.wake(TOPIC)


def _settled(
    session: Tx, runtime: Runtime, attempt: Attempt, made: Made, next_at: datetime | None
) -> None:
    """Store the attempt, the health of its endpoint, and a message if that is disabled."""
    subscribers.endpoint_by_id(session, attempt.endpoint, lock=True)
    if not notifications.settle(session, attempt, made, next_at):
        return
    if made.error is None:
        subscribers.note_success(session, attempt.endpoint, made.at)
        return
    endpoint = subscribers.note_failure(
        session, attempt.endpoint, made.at, is_new_message=attempt.tries == 0
    )
    if endpoint is None:
        return
    since = endpoint.failing_since or made.at
    why = schedule.disabled_reason(made.status_code, since, endpoint.failed_messages, made.at)
    if why is not None and subscribers.disable(session, endpoint.id, why):
        notifications.give_up(session, endpoint.id, why)
        organization = subscribers.organization_slug(session, endpoint.org_id)
        message = messages.endpoint_disabled(organization, endpoint.id, why, made.at)
        enqueue(session, runtime, message, subscribers.enabled(session, endpoint.org_id))


async def send_test(runtime: Runtime, caller: Caller, endpoint_id: str) -> tuple[str, Made]:
    """Send `webhook.test` once, also to a disabled endpoint; return its id and the attempt.

    Raises NotFound(webhook_endpoint_not_found).
    """
    now = runtime.clock.now()
    message = _row_of(runtime, caller.org_id, messages.webhook_test(caller.org_slug, now))
    entry = _audit_entry(caller, "webhook.test_endpoint", endpoint_id, now)

    def begin(session: Tx) -> tuple[Endpoint, Attempt]:
        access.recheck(session, entry.actor, entry.at)
        endpoint = endpoints.find(session, caller, endpoint_id)
        audit.append(session, entry)
        claimed = notifications.append_claimed(
            session, runtime.instance, message, endpoint.id, entry.at
        )
        return endpoint, claimed

    endpoint, attempt = await runtime.store.run(begin)
    made, _ = await _made(runtime, endpoint, attempt)
    await _settle(runtime, attempt, made, None)
    return attempt.message, made


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """A page of an endpoint's deliveries: of an event, in a state, messages in [since, until)."""

    endpoint_id: str
    selection: PageSelection
    event: str | None = None
    state: DeliveryState | None = None
    since: datetime | None = None
    until: datetime | None = None


async def list_deliveries(runtime: Runtime, caller: Caller, page: DeliveryPage) -> Page[Delivery]:
    """Return deliveries to an endpoint, newest messages first.

    Raises NotFound(webhook_endpoint_not_found), Malformed(invalid_page_token,
    page_token_expired).
    """
    filters = (page.endpoint_id, page.event, page.state, page.since, page.until)
    listing = Listing("webhooks/list-deliveries", caller.org_id, filters=filters)
    place = paging.place_of(runtime, listing, page.selection)
    wanted = DeliveryFilter(page.event, page.state, page.since, page.until)
    after = (page_tokens.instant(int(place.key[0])), str(place.key[1])) if place.key else None

    def read(session: Tx) -> tuple[Delivery, ...]:
        endpoint = endpoints.find(session, caller, page.endpoint_id)
        rows = delivery_log.page(session, endpoint.id, wanted, after, place.limit)
        return tuple(replace(each, body=slack.body_of(each.body, endpoint.format)) for each in rows)

    return place.page(await runtime.store.read(read), _key)


def _key(delivery: Delivery) -> Key:
    return page_tokens.micros(delivery.made_at), delivery.message_id


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """One message, or the ended deliveries of a span: failed, and delivered if included."""

    message_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    include_delivered: bool = False


async def replay(runtime: Runtime, caller: Caller, endpoint_id: str, request: ReplayRequest) -> int:
    """Send messages again under their ids, also to a disabled endpoint, and return how many.

    Skips messages that already wait to be sent. Raises NotFound(webhook_endpoint_not_found,
    message_not_found), Invalid(invalid_time_range, limit_reached).
    """
    row = _audit_entry(caller, "webhook.replay", endpoint_id, runtime.clock.now())
    if request.since is not None and request.until is not None:
        _check_span(request.since, request.until)
    count = await runtime.store.run(_replay, caller, endpoint_id, request, row)
    runtime.wakeups.wake(TOPIC)
    return count


def _check_span(since: datetime, until: datetime) -> None:
    if not since < until or until - since > REPLAYED_WITHIN:
        raise Invalid(
            f"`until` must lie behind `since`, at most {REPLAYED_WITHIN.days} days.",
            code="invalid_time_range",
        )


def _replay(
    session: Tx, caller: Caller, endpoint_id: str, request: ReplayRequest, row: AuditEntry
) -> int:
    access.recheck(session, row.actor, row.at)
    endpoint = endpoints.find(session, caller, endpoint_id, lock=True)
    audit.append(session, row)
    if request.message_id is not None:
        if not delivery_log.has_message(session, endpoint.id, request.message_id):
            raise NotFound(
                f"This endpoint was never sent {request.message_id}; "
                "`/webhooks/list-deliveries` names what it was sent within 30 days.",
                code="message_not_found",
            )
        return delivery_log.replay_message(session, endpoint.id, request.message_id, row.at)
    wanted = DeliveryFilter(since=request.since, until=request.until)
    if not request.include_delivered:
        wanted = replace(wanted, state=DeliveryState.FAILED)
    count = delivery_log.replay(session, endpoint.id, wanted, row.at, REPLAYED_MAX)
    if count is None:
        raise Invalid(
            f"More than {REPLAYED_MAX} messages lie in this span; replay it in parts.",
            code="limit_reached",
        )
    return count


def _audit_entry(caller: Caller, action: str, endpoint_id: str, at: datetime) -> AuditEntry:
    actor = caller.actor
    return audit_log.allowed(actor, caller.org_id, action, f"endpoint/{endpoint_id}", at)
