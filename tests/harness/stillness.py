"""Whether a world has come to rest: what still moves, in one word."""

from datetime import timedelta

from sqlalchemy import bindparam, select

from bot.sandbox.app import Sandbox
from service.database.database import Tx
from service.database.tables_deliveries import InboxRow, OutboxRow
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.mergequeue.store import queues
from service.notifications.store.tables_notifications import AttemptRow
from service.runtime import Runtime

SOON = timedelta(minutes=3)
"""What is due later than this is a clock of its own, not something left to do."""

inbox, outbox = InboxRow.__table__, OutboxRow.__table__
attempts = AttemptRow.__table__
OPEN_DELIVERY = select(inbox.c.id).where(inbox.c.is_open.is_(True)).limit(1)
OPEN_EFFECT = (
    select(outbox.c.idem_key)
    .where(outbox.c.is_open.is_(True), outbox.c.next_at <= bindparam("soon"))
    .limit(1)
)
WAITING_MESSAGE = (
    select(attempts.c.event)
    .where(attempts.c.is_open.is_(True), attempts.c.next_at <= bindparam("soon"))
    .limit(1)
)


async def is_still(runtime: Runtime, sandbox: Sandbox) -> str:
    """What still moves; empty when nothing does."""
    why = _in_memory(runtime, sandbox) or await runtime.store.read(_rows, runtime)
    # An effect that ended before the rows were read may have begun something in the sandbox.
    return why or _in_memory(runtime, sandbox)


def _in_memory(runtime: Runtime, sandbox: Sandbox) -> str:
    timeline = sandbox.world.timeline
    if timeline.waiting() or timeline.is_busy():
        return f"the sandbox: {', '.join(timeline.waiting()[:5])}"
    return "a postponed read of checks" if runtime.memory.of(CheckReadScheduler).is_open else ""


def _rows(session: Tx, runtime: Runtime) -> str:
    soon = runtime.clock.now() + SOON
    if session.execute(OPEN_DELIVERY).first() is not None:
        return "a delivery"
    effect = session.execute(OPEN_EFFECT, {"soon": soon}).scalar_one_or_none()
    if effect is not None:
        return f"effect {effect}"
    waiting = session.execute(WAITING_MESSAGE, {"soon": soon}).scalar_one_or_none()
    if waiting is not None:
        return f"a message of {waiting}"
    due = queues.due(session, soon)
    return f"queue {due[0]} has a clock running" if due else ""
