"""Attempts: taken up, signed, sent, settled; and messages sent once more (API.md 11.2).

An attempt is claimed for a minute, so that one whose process ended is made again: receivers
hear of everything at least once. No transaction is open while anything is sent.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from service.accounts import access, deeds
from service.accounts.store import audit
from service.accounts.store.audit import AuditRow
from service.database.database import Tx
from service.errors import DatabaseUnavailable, Invalid, NotFound, ServiceError
from service.http.callers import Caller
from service.notifications import addresses, endpoints, message_queue, messages, schedule, signing
from service.notifications.delivery_log import AttemptView, attempt_view
from service.notifications.store import delivery_log, notifications, subscribers
from service.notifications.store.delivery_log import Wanted
from service.notifications.store.notifications import Attempt, Made
from service.notifications.store.subscribers import Endpoint
from service.runtime import Outgoing, PostResult, Runtime
from service.vocabulary import DeliveryState

TOPIC = "notifications"
REPLAYED_MAX = 10_000
REPLAYED_WITHIN = timedelta(days=7)

log = structlog.get_logger()


async def claim(runtime: Runtime, limit: int) -> tuple[Attempt, ...]:
    """Take due attempts, at most `limit`; nobody else gets them within a minute."""
    now = runtime.clock.now()
    return await runtime.store.run(notifications.claim, runtime.instance, now, limit)


async def next_due(runtime: Runtime) -> datetime | None:
    """When the next attempt becomes due; None: nothing waits for its time."""
    return await runtime.store.read(notifications.next_due, runtime.clock.now())


async def carry_out(runtime: Runtime, attempt: Attempt) -> None:
    """Make one attempt and settle it; a failed one is followed by the next in time."""
    endpoint = await runtime.store.read(subscribers.endpoint_by_id, attempt.endpoint)
    if endpoint is None:
        await runtime.store.run(notifications.give_up, attempt.endpoint, "The endpoint is gone.")
        return
    made, outcome = await _made(runtime, endpoint, attempt)
    await _settle(runtime, attempt, made, _next_try(runtime, attempt, outcome))


async def interrupted(runtime: Runtime, attempt: Attempt, error: Exception) -> None:
    """Settle an attempt whose work ended by an error that nobody expected.

    After a mistake of our own it counts as a failure of the receiver. While the database is
    unavailable nothing is written: the claim ends by its own time, and the attempt is repeated.
    """
    if isinstance(error, DatabaseUnavailable):
        return
    outcome = PostResult(None, "A mistake of ours; the log has it.")
    made = Made(runtime.clock.now(), 0, None, outcome.error)
    await _settle(runtime, attempt, made, _next_try(runtime, attempt, outcome))


async def _made(runtime: Runtime, endpoint: Endpoint, attempt: Attempt) -> tuple[Made, PostResult]:
    """One attempt over the network, and how long it took."""
    at, began_s = runtime.clock.now(), runtime.clock.monotonic_s()
    runtime.boundary.reach("notify.before_send")
    outcome = await _sent(runtime, endpoint, attempt, at)
    runtime.boundary.reach("notify.after_send")
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
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Headgate/{runtime.options.version}",
        **signing.headers(attempt.message, at, attempt.body, keys),
    }
    return await runtime.sender.post(Outgoing(endpoint.url, headers, attempt.body.encode()))


def _keys(runtime: Runtime, endpoint: Endpoint, at: datetime) -> list[str]:
    """The secrets that sign now, newest first."""
    sealed = [endpoint.secret]
    if endpoint.previous_secret and endpoint.previous_until and at < endpoint.previous_until:
        sealed.append(endpoint.previous_secret)
    return [runtime.keys.opened(each) for each in sealed]


def _next_try(runtime: Runtime, attempt: Attempt, outcome: PostResult) -> datetime | None:
    if outcome.error is None or outcome.status == schedule.GONE:
        return None
    now = runtime.clock.now()
    wish = schedule.wish_of(outcome.status, outcome.retry_after, now)
    spread_by = f"{attempt.message}/{attempt.endpoint}"
    return schedule.next_try(attempt.tries + 1, spread_by, now, wish)


async def _settle(runtime: Runtime, attempt: Attempt, made: Made, next_at: datetime | None) -> None:
    runtime.boundary.reach("notify.before_settle")
    await runtime.store.run_kind("settle", _settled, runtime, attempt, made, next_at)
    outcome = "delivered" if made.error is None else "failed" if next_at is None else "retried"
    runtime.telemetry.count("headgate_notifications_total", outcome)
    runtime.wakeups.wake(TOPIC)


def _settled(
    session: Tx, runtime: Runtime, attempt: Attempt, made: Made, next_at: datetime | None
) -> None:
    """The attempt, what it says of its endpoint, and what the others are told of that."""
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
    why = schedule.disabled_by(made.status_code, since, endpoint.failed_messages, made.at)
    if why is not None and subscribers.disable(session, endpoint.id, why):
        notifications.give_up(session, endpoint.id, why)
        organization = subscribers.organization_slug(session, endpoint.org_id)
        message = messages.endpoint_disabled(organization, endpoint.id, why, made.at)
        others = list(subscribers.enabled(session, endpoint.org_id))
        message_queue.enqueue(session, runtime, endpoint.org_id, (message, others))


async def send_test(runtime: Runtime, caller: Caller, endpoint_id: str) -> tuple[str, AttemptView]:
    """Send `webhook.test` now, once, also to a disabled endpoint; its message id and the try.

    Raises NotFound(webhook_endpoint_not_found).
    """
    now = runtime.clock.now()
    message = messages.tests_webhook(caller.org_slug, now)
    kept = message_queue.stored(runtime, caller.org_id, message)
    row = _deed(caller, "webhook.test_endpoint", endpoint_id, now)
    told = _TestMessage(runtime.instance, endpoint_id, kept)
    endpoint, attempt = await runtime.store.run(_begin_test, caller, told, row)
    made, _ = await _made(runtime, endpoint, attempt)
    await _settle(runtime, attempt, made, None)
    return attempt.message, attempt_view(made)


@dataclass(frozen=True, slots=True)
class _TestMessage:
    by: str
    endpoint_id: str
    message: notifications.Message


def _begin_test(
    session: Tx, caller: Caller, told: _TestMessage, row: AuditRow
) -> tuple[Endpoint, Attempt]:
    access.recheck(session, row.actor, row.at)
    endpoint = endpoints.find(session, caller, told.endpoint_id)
    audit.append(session, row)
    taken = notifications.append_taken(session, told.by, told.message, endpoint.id, row.at)
    return endpoint, taken


@dataclass(frozen=True, slots=True)
class ReplayWish:
    """One message, or all ended ones of a span: failed ones, or delivered ones too."""

    message_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    include_delivered: bool = False


async def replay(runtime: Runtime, caller: Caller, endpoint_id: str, wish: ReplayWish) -> int:
    """Send messages again under their ids, also to a disabled endpoint; how many.

    What waits to be sent anyway is left alone. Raises NotFound(webhook_endpoint_not_found,
    message_not_found), Invalid(invalid_time_range, limit_reached).
    """
    row = _deed(caller, "webhook.replay", endpoint_id, runtime.clock.now())
    if wish.since is not None and wish.until is not None:
        _check_span(wish.since, wish.until)
    count = await runtime.store.run(_replay, caller, endpoint_id, wish, row)
    runtime.wakeups.wake(TOPIC)
    return count


def _check_span(since: datetime, until: datetime) -> None:
    if not since < until or until - since > REPLAYED_WITHIN:
        raise Invalid(
            f"`until` must lie behind `since`, at most {REPLAYED_WITHIN.days} days.",
            code="invalid_time_range",
        )


def _replay(session: Tx, caller: Caller, endpoint_id: str, wish: ReplayWish, row: AuditRow) -> int:
    access.recheck(session, row.actor, row.at)
    endpoint = endpoints.find(session, caller, endpoint_id, lock=True)
    audit.append(session, row)
    if wish.message_id is not None:
        if not delivery_log.has_message(session, endpoint.id, wish.message_id):
            raise NotFound(
                f"This endpoint was never sent {wish.message_id}; "
                "`/webhooks/list-deliveries` names what it was sent within 30 days.",
                code="message_not_found",
            )
        return delivery_log.replay_message(session, endpoint.id, wish.message_id, row.at)
    wanted = Wanted(since=wish.since, until=wish.until)
    if not wish.include_delivered:
        wanted = replace(wanted, state=DeliveryState.FAILED)
    count = delivery_log.replay(session, endpoint.id, wanted, row.at, REPLAYED_MAX)
    if count is None:
        raise Invalid(
            f"More than {REPLAYED_MAX} messages lie in this span; replay it in parts.",
            code="limit_reached",
        )
    return count


def _deed(caller: Caller, action: str, endpoint_id: str, at: datetime) -> AuditRow:
    actor = caller.actor
    return deeds.deed(actor, caller.org_id, action, f"endpoint/{endpoint_id}", at)
