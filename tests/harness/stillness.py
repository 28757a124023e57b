"""Whether a world has come to rest: what still moves, in one word."""

from datetime import timedelta

from sqlalchemy import func, select

from bot.sandbox.app import Sandbox
from service.database.database import Tx
from service.database.tables_deliveries import InboxRow, OutboxRow
from service.mergequeue.store import queues
from service.notifications.store.tables_notifications import AttemptRow
from service.runtime import Runtime

SOON = timedelta(minutes=3)
"""What is due later than this is a clock of its own, not something left to do."""


async def is_still(runtime: Runtime, sandbox: Sandbox) -> str:
    """What still moves; empty when nothing does."""
    why = _in_memory(runtime, sandbox) or await runtime.store.read(_rows, runtime)
    # An effect that ended before the rows were read may have begun something in the sandbox.
    return why or _in_memory(runtime, sandbox)


def _in_memory(runtime: Runtime, sandbox: Sandbox) -> str:
    timeline = sandbox.world.timeline
    if timeline.waiting() or timeline.is_busy():
        return f"the sandbox: {', '.join(timeline.waiting()[:5])}"
    return "a postponed read of checks" if runtime.looks.is_open else ""


def _rows(session: Tx, runtime: Runtime) -> str:
    inbox, outbox = InboxRow.__table__, OutboxRow.__table__
    now = runtime.clock.now()
    open_deliveries = select(func.count()).where(inbox.c.is_open.is_(True))
    if session.execute(open_deliveries).scalar_one():
        return "a delivery"
    open_effects = select(outbox.c.idem_key).where(
        outbox.c.is_open.is_(True), outbox.c.next_at <= now + SOON
    )
    effect = session.execute(open_effects.limit(1)).scalar_one_or_none()
    if effect is not None:
        return f"effect {effect}"
    attempts = AttemptRow.__table__
    waiting = select(attempts.c.event).where(
        attempts.c.is_open.is_(True), attempts.c.next_at <= now + SOON
    )
    attempt = session.execute(waiting.limit(1)).scalar_one_or_none()
    if attempt is not None:
        return f"a message of {attempt}"
    due = queues.due(session, now + SOON)
    return f"queue {due[0]} has a clock running" if due else ""
