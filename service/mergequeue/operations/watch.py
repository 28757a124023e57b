"""Find queues that should make progress but do not, and report them.

It only reports: a log event, metrics, `/v1/status`. It repairs nothing, so that a mistake of its
own does no harm.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from cachetools import LRUCache

from service.database.database import Tx
from service.database.outbox import Lane
from service.errors import DatabaseUnavailable, InvariantBroken, NotFound
from service.memory import QUEUES_MAX
from service.mergequeue.engine.explaining import standstill
from service.mergequeue.engine.explaining.standstill import OpenEffect, Standstill, StandstillKind
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.operations import turn
from service.mergequeue.store import backlog, queues
from service.runtime import Runtime

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Seen:
    """The version of a queue's value, and since when it has been the same."""

    version: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Open:
    """The open effects and wake-up times of all queues."""

    effects: dict[int, tuple[OpenEffect, ...]]
    wakes: dict[int, datetime]
    live: tuple[int, ...]


async def watch(runtime: Runtime) -> None:
    """Sweep every queue with open entries or effects and report those that are stalled."""
    there = await runtime.store.read(_open)
    found: dict[int, tuple[Standstill, ...]] = {}
    for queue_id in sorted({*there.live, *there.effects, *there.wakes}):
        try:
            value = await turn.value(runtime, queue_id)
        except (InvariantBroken, NotFound):
            continue
        stalls = standstill.standstills(
            value,
            there.effects.get(queue_id, ()),
            there.wakes.get(queue_id),
            _unchanged_since(runtime, value),
            runtime.clock.now(),
        )
        if stalls:
            found[queue_id] = stalls
    _report(runtime, found, there)


def _open(session: Tx) -> Open:
    return Open(backlog.open_effects(session), backlog.wakes(session), queues.live_queues(session))


class SeenQueues:
    """Versions of queues that the watchdog saw last, and what is stalled, both by queue."""

    def __init__(self) -> None:
        self.versions: LRUCache[int, Seen] = LRUCache(QUEUES_MAX)
        self.stalled: dict[int, frozenset[str]] = {}


def _unchanged_since(runtime: Runtime, value: MergeQueue) -> datetime:
    """Return since when this process has seen the queue unchanged."""
    versions = runtime.memory.of(SeenQueues).versions
    seen = versions.get(value.id)
    if seen is None or seen.version != value.version:
        seen = versions[value.id] = Seen(value.version, runtime.clock.now())
    return seen.since


def _report(runtime: Runtime, found: dict[int, tuple[Standstill, ...]], there: Open) -> None:
    """Log stalled queues that are new or have recovered, and set the metrics."""
    before, now = runtime.memory.of(SeenQueues).stalled, runtime.clock.now()
    for queue_id, stalls in found.items():
        for one in stalls:
            if one.subject not in before.get(queue_id, frozenset()):
                # Something in the queue could move and has not for minutes. Restart the process and
                # report it.
                log.error(
                    "queue_stalled",
                    queue=queue_id,
                    kind=one.kind.value,
                    subject=one.subject,
                    since=one.since.isoformat(),
                    pull_requests=list(one.prs),
                )
    for queue_id in before.keys() - found.keys():
        # The queue is not stalled any more.
        log.info("queue_moves_again", queue=queue_id)
    runtime.memory.of(SeenQueues).stalled = {
        queue_id: frozenset(one.subject for one in stalls) for queue_id, stalls in found.items()
    }
    kinds = [one.kind for stalls in found.values() for one in stalls]
    for kind in StandstillKind:
        runtime.telemetry.level("headgate_stalled", kinds.count(kind), kind.value)
    effects = [one for each in there.effects.values() for one in each]
    runtime.telemetry.level("headgate_oldest_effect_seconds", _oldest_s(effects, now))
    throttled = sum(one.throttled and one.due_at > now for one in effects)
    runtime.telemetry.level("headgate_throttled_effects", throttled)


def _oldest_s(effects: list[OpenEffect], now: datetime) -> float:
    """Return the age of the oldest effect that is running or due."""
    ages = [
        (now - (one.sent_at if one.is_sent and one.sent_at else one.due_at)).total_seconds()
        for one in effects
        if one.is_first
    ]
    return max([0.0, *ages])


async def measure_backlog(runtime: Runtime) -> None:
    """Report the sizes of inbox and outbox; keep the last figures if the database is down."""
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
