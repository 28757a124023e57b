"""Deliveries: stored before they are answered, worked on one by one afterwards."""

from datetime import datetime, timedelta

import structlog

from service.operations import signals
from service.provider.errors import ProviderError, Unavailable
from service.provider.signals import Delivery
from service.runtime import Runtime
from service.store import inbox
from service.store.records import InboxRow

ATTEMPTS_MAX = 5
"""Then a delivery is parked (RELIABILITY.md 5)."""

log = structlog.get_logger()


async def accept(runtime: Runtime, delivery: Delivery) -> bool:
    """Store a delivery durably; False when its id is known. Raises DatabaseUnavailable."""
    is_new = await runtime.store.run_kind("accept", inbox.accept, delivery)
    if is_new:
        runtime.wakeups.wake("inbox")
    runtime.boundary.reach("hook.before_answer")
    return is_new


async def claim(runtime: Runtime, limit: int) -> tuple[InboxRow, ...]:
    """Take the oldest open delivery of each repository, at most `limit`, for 60 s."""
    return await runtime.store.run(inbox.claim, runtime.clock.now(), limit)


async def release(runtime: Runtime) -> int:
    """After a stop: deliveries that were being worked on are free again; how many."""
    return await runtime.store.run(inbox.release_claims)


async def take_up(runtime: Runtime, row: InboxRow) -> None:
    """Work on one delivery: translate it, act on its signals, settle it.

    Trouble at the provider postpones it; after five attempts it is parked, and so is one
    that our own code could not digest five times: it blocks no other.
    """
    if row.attempts > ATTEMPTS_MAX:
        await runtime.store.run(inbox.poison, row.id, "stopped us five times")
        return
    delivery = row.delivery
    translator = runtime.translators.get(delivery.host)
    if translator is None:
        await runtime.store.run(inbox.settle, row.id, "ignored: unknown host")
        return
    found = translator(delivery)
    log.info("delivery", delivery_id=delivery.id, signals=len(found))
    try:
        for signal in found:
            await signals.receive(runtime, signal, delivery.received_at)
    except Unavailable as away:
        await _again(runtime, row, away.retry_at, away.message)
    except ProviderError as trouble:
        await _again(runtime, row, _later(runtime, row), trouble.message)
    else:
        note = ", ".join(type(signal).__name__ for signal in found) or "ignored"
        await runtime.store.run(inbox.settle, row.id, note)


def _later(runtime: Runtime, row: InboxRow) -> datetime:
    return runtime.clock.now() + timedelta(seconds=2.0**row.attempts)


async def _again(runtime: Runtime, row: InboxRow, at: datetime, why: str) -> None:
    if row.attempts >= ATTEMPTS_MAX:
        log.error("delivery_parked", delivery_id=row.delivery.id, why=why)
        await runtime.store.run(inbox.poison, row.id, why)
        return
    await runtime.store.run(inbox.retry, row.id, at, why)
