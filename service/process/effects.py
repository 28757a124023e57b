"""Effects of the outbox: claimed, marked as sent, performed, settled (RELIABILITY.md 4.2).

`sent` is committed before the request leaves, so that no stop can hide an effect. A failed
one waits and is tried again; after twelve tries the queue hears that it cannot be done.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog

from service.database import outbox
from service.database.database import Tx
from service.database.outbox import OutboxRow
from service.database.records import Lane, OutboxState
from service.errors import DatabaseUnavailable
from service.mergequeue.store.backlog import THROTTLED
from service.process import actions
from service.provider.errors import (
    OutcomeUnknown,
    ProviderError,
    Throttled,
    Unavailable,
)
from service.runtime import Runtime
from service.testhealth.operations import collected

COLLECTING = (Lane.COLLECT,)
"""Slow lanes, which have their own concurrency limit."""

ATTEMPTS_MAX = 12
BACKOFF_MAX = timedelta(minutes=15)
DOUBLINGS_MAX = 10
"""More of them lie beyond the longest wait."""
FIRST_READ_BACKS = 5
"""An unknown outcome is read back so often at the sweep's own period, then more rarely."""

log = structlog.get_logger()


async def claim(
    runtime: Runtime, limit: int, lanes: Sequence[Lane] = outbox.ACTING
) -> tuple[OutboxRow, ...]:
    """Claim due effects of the lanes, at most `limit`, and mark them sent.

    The `state` of a row says whether an earlier send may have worked.
    """
    return await runtime.store.run(_claim, runtime, limit, lanes)


def _claim(
    session: Tx, runtime: Runtime, limit: int, lanes: Sequence[Lane]
) -> tuple[OutboxRow, ...]:
    now, me = runtime.clock.now(), runtime.instance
    rows = outbox.claim(session, now, limit, lanes)
    return tuple(row for row in rows if outbox.mark_sent(session, me, row.id, now))


async def give_back(
    runtime: Runtime, owned: Collection[int], lanes: Sequence[Lane] = outbox.ACTING
) -> int:
    """Have effects that this process sent and no task owns read back; return how many.

    `owned` are the ids of those that a task owns. Waking effects follow at the next claim.
    """
    now = runtime.clock.now()
    return await runtime.store.run(outbox.reopen_unowned, runtime.instance, lanes, owned, now)


async def carry_out(runtime: Runtime, row: OutboxRow) -> None:
    """Perform one claimed effect and settle its row.

    Raises DatabaseUnavailable when the row could not be settled: see `interrupted`.
    """
    log.debug("effect", kind=row.kind, key=row.key, attempt=row.attempts)
    try:
        await actions.perform(runtime, row)
    except ProviderError as trouble:
        log.warning("effect_failed", kind=row.kind, key=row.key, why=trouble.message)
        await actions.explain_trouble(runtime, row, trouble)
        await _wait(runtime, row, trouble)
    else:
        runtime.boundary.reach("effect.before_done")
        await runtime.store.run_kind("settle", outbox.settle, row.id, OutboxState.DONE, "")
        _count(runtime, row, "done")
    runtime.wakeups.wake(collected.TOPIC if row.lane is Lane.COLLECT else "outbox")


async def interrupted(runtime: Runtime, row: OutboxRow, error: Exception) -> None:
    """Settle an effect whose work ended by an error that nobody expected; safe to repeat.

    While the database was away its outcome is unknown, and it is read back. After a mistake of
    our own it waits and is tried again, as after any other trouble.
    """
    trouble: ProviderError = ProviderError("A mistake of ours; the log has it.")
    if isinstance(error, DatabaseUnavailable):
        trouble = OutcomeUnknown("The database was unavailable while this was carried out.")
    await _wait(runtime, row, trouble)
    await actions.explain_trouble(runtime, row, trouble)


async def _wait(runtime: Runtime, row: OutboxRow, trouble: ProviderError) -> None:
    """Try again later. Whoever is away comes back; anything else is given up in the end.

    What may have been done stays unknown until it is read back.
    """
    is_away = isinstance(trouble, Unavailable | OutcomeUnknown)
    is_spent = row.attempts >= ATTEMPTS_MAX and (row.lane is Lane.NOTICE or not is_away)
    if is_spent and await actions.give_up(runtime, row, trouble.message):
        await runtime.store.run(outbox.settle, row.id, OutboxState.FAILED, trouble.message)
        _count(runtime, row, "failed")
        return
    now = runtime.clock.now()
    note = f"{THROTTLED}{trouble.message}" if isinstance(trouble, Throttled) else trouble.message
    at = _next_try(now, row.attempts, trouble)
    if row.state is OutboxState.UNKNOWN or isinstance(trouble, OutcomeUnknown):
        if row.attempts <= FIRST_READ_BACKS:
            at = min(at, now + runtime.options.periods.readback)
        await runtime.store.run(outbox.mark_unknown, row, at, note)
        _count(runtime, row, "unknown")
    else:
        await runtime.store.run(outbox.retry, row, at, note)
        _count(runtime, row, "retried")


def _count(runtime: Runtime, row: OutboxRow, outcome: str) -> None:
    runtime.telemetry.count("headgate_actions_total", row.kind, outcome)


def _next_try(now: datetime, attempts: int, trouble: ProviderError) -> datetime:
    """1 s doubling up to 15 min; what the provider says itself goes before."""
    doublings = min(max(attempts - 1, 0), DOUBLINGS_MAX)
    at = now + min(timedelta(seconds=2.0**doublings), BACKOFF_MAX)
    return max(at, trouble.retry_at) if isinstance(trouble, Unavailable) else at


async def next_due(runtime: Runtime, lanes: Sequence[Lane] = outbox.ACTING) -> datetime | None:
    """Return when the next waiting effect of the lanes is due."""
    return await runtime.store.read(outbox.next_due, lanes)
