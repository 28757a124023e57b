"""How much waits to be done, told to the process's meter when somebody asks for its figures."""

from service.database.records import Lane
from service.errors import DatabaseUnavailable
from service.mergequeue.store import backlog
from service.runtime import Runtime


async def measure(runtime: Runtime) -> None:
    """Tell the levels of inbox and outbox; while the database is away the last ones stand."""
    try:
        found = await runtime.store.read(backlog.waiting)
    except DatabaseUnavailable:
        return
    for lane in Lane:
        runtime.telemetry.level("headgate_outbox_pending", found.effects.get(lane, 0), lane.value)
    now = runtime.clock.now()
    oldest = found.oldest_delivery
    lag_s = 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
    runtime.telemetry.level("headgate_delivery_lag_seconds", lag_s)
