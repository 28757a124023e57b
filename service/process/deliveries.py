"""Deliveries: stored before they are answered, worked on one by one afterwards."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from service import time_limits, tracing
from service.database import inbox
from service.database.claims import ClaimedRows
from service.database.database import Tx
from service.database.inbox import ClaimedDelivery
from service.errors import DatabaseUnavailable
from service.mergequeue.operations.turn import QueueGone
from service.process import signals
from service.provider.errors import ProviderError, Unavailable
from service.provider.signals import Delivery
from service.runtime import Runtime
from service.tracing import Side

ATTEMPTS_MAX = 5
"""Then a delivery is parked (docs/design/transactions.md 7)."""
WAITS_FOR = timedelta(hours=24)
"""The time that a delivery waits for a provider that is away before attempts count."""
LATEST = timedelta(minutes=5)
SOON = timedelta(seconds=1)
"""The time until a delivery is tried again that an unavailable database interrupted."""

MISTAKES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a mistake in a translation."""

log = structlog.get_logger()


async def accept(runtime: Runtime, delivery: Delivery) -> bool:
    """Store a delivery durably; False when its id is known. Raises DatabaseUnavailable.

    One without a signal is not stored: about half of them, such as echoes of our own comments. To
    translate one takes 0.06 ms (the examples that GitHub publishes); to store one, claim it and
    settle it are three transactions. A stored one is translated again, when its turn comes.
    """
    if _is_silent(runtime, delivery):
        log.debug("delivery_ignored", delivery_id=delivery.id, kind=delivery.event)
        return True
    time_limits.answer_soon()
    is_new = await runtime.store.run_kind("accept", inbox.accept, delivery)
    if is_new:
        runtime.wakeups.wake("inbox")
    runtime.crash_points.reach("hook.before_answer")
    return is_new


def _is_silent(runtime: Runtime, delivery: Delivery) -> bool:
    """Return whether a delivery has no signal; one that meets trouble is tried again later."""
    translator = runtime.translators.get(delivery.host)
    try:
        return translator is not None and not translator(delivery)
    except (ProviderError, *MISTAKES):
        return False  # It is stored, and the worker reports what is wrong.


async def claim(
    runtime: Runtime, limit: int, owned: Collection[int] | None = None
) -> ClaimedRows[ClaimedDelivery]:
    """Take the oldest open delivery of each repository, at most `limit`, for an hour.

    If `owned` ids are given, other deliveries that this process has claimed are freed first.
    """
    return await runtime.store.run(_claim, runtime, limit, owned)


def _claim(
    session: Tx, runtime: Runtime, limit: int, owned: Collection[int] | None
) -> ClaimedRows[ClaimedDelivery]:
    me, given_back = runtime.instance, 0
    if owned is not None:
        given_back = inbox.release_unowned(session, me, owned)
    rows = inbox.claim(session, me, runtime.clock.now(), limit)
    return ClaimedRows(rows, inbox.next_due(session), given_back, inbox.is_behind(session))


async def take_up(runtime: Runtime, row: ClaimedDelivery) -> None:
    """Work on one delivery: translate it, act on its signals, settle it.

    Trouble at the provider postpones it; after five attempts it is parked. While the provider
    is away a young delivery waits without being counted: nothing that was said is lost.
    """
    delivery = row.delivery
    name = f"webhook {delivery.event}"
    fields = {
        "headgate.delivery.id": delivery.id,
        "headgate.delivery.action": delivery.action or "",
    }
    with runtime.traces.work(name, fields, Side.INCOMING, delivery.received_at):
        await _take_up(runtime, row, delivery)


async def _take_up(runtime: Runtime, row: ClaimedDelivery, delivery: Delivery) -> None:
    """Translate one delivery, act on its signals, settle it."""
    translator = runtime.translators.get(delivery.host)
    if translator is None:
        await runtime.store.run(inbox.settle, row.id, "ignored: unknown host")
        return
    try:
        found = translator(delivery)
        log.info("delivery", delivery_id=delivery.id, signals=len(found))
        for signal in found:
            await signals.receive(runtime, signal, delivery.received_at)
    except Unavailable as away:
        tracing.failed(away)
        is_young = runtime.clock.now() - delivery.received_at < WAITS_FOR
        attempts = 0 if is_young else row.attempts
        await _again(runtime, row, _Again(max(away.retry_at, _later(runtime, row)), attempts), away)
    except ProviderError as trouble:
        tracing.failed(trouble)
        await _again(runtime, row, _Again(_later(runtime, row), row.attempts), trouble)
    except QueueGone as gone:
        # What it is about is looked for again: the branch may have another queue by now.
        at = runtime.clock.now()
        await _again(runtime, row, _Again(at, row.attempts), ProviderError(gone.detail))
    else:
        note = ", ".join(type(signal).__name__ for signal in found) or "ignored"
        await runtime.store.run(inbox.settle, row.id, note)


async def interrupted(runtime: Runtime, row: ClaimedDelivery, error: Exception) -> None:
    """Retry a delivery whose work ended by an error that nobody expected; safe to repeat.

    After a mistake of our own it is parked after five attempts. An unavailable database counts
    no attempt.
    """
    if isinstance(error, DatabaseUnavailable):
        away = ProviderError("The database was unavailable while this was worked on.")
        await _again(runtime, row, _Again(runtime.clock.now() + SOON, 0), away)
        return
    mistake = ProviderError("A mistake of ours; the log has it.")
    await _again(runtime, row, _Again(_later(runtime, row), row.attempts), mistake)


@dataclass(frozen=True, slots=True)
class _Again:
    """The time to try a delivery again, and how many attempts count against it."""

    at: datetime
    attempts: int


def _later(runtime: Runtime, row: ClaimedDelivery) -> datetime:
    return runtime.clock.now() + min(timedelta(seconds=2.0 ** min(row.attempts, 10)), LATEST)


async def _again(runtime: Runtime, row: ClaimedDelivery, again: _Again, why: ProviderError) -> None:
    if again.attempts >= ATTEMPTS_MAX:
        # This webhook failed too often and is set aside; sweeps read the same facts.
        log.error("delivery_parked", delivery_id=row.delivery.id, why=why.message)
        await runtime.store.run(inbox.poison, row.id, why.message)
        return
    await runtime.store.run(inbox.retry, row.id, again.at, why.message)
    runtime.wakeups.wake("inbox")
