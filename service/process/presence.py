"""Start, heartbeats and end of an instance among those that serve a database.

A claim belongs to the process that made it. A process that stopped, ended or hung too long loses
its claims; then any other process frees them (docs/design/transactions.md 9).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from service import time_limits
from service.accounts import installations
from service.database import inbox, instances, outbox
from service.database.database import Tx
from service.database.instances import Departure, Instance, LiveInstance
from service.errors import DatabaseUnavailable
from service.mergequeue.operations import reconcile, restored
from service.notifications.store import notifications
from service.process import signals
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.troubles import Part, TroubleName

BEAT = timedelta(seconds=5)
"""Between two heartbeats; see `instances.GONE_AFTER`."""

READS_MAX_S = 60.0
"""A start begins no read of a provider after this time."""

TOPICS = ("inbox", "notifications", *dict.fromkeys(outbox.TOPICS.values()))

AWAY = (Part.PROVIDER, Part.PRIMARY_LIMIT, Part.SECONDARY_LIMIT)
"""Parts whose trouble means that queues are read by the sweeps, not before the first plan."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Freed:
    """The instances that are gone, and how many claims of theirs were freed."""

    gone: tuple[str, ...]
    effects: int
    deliveries: int
    notifications: int


async def recover(runtime: Runtime) -> None:
    """Join the instances, free the claims of those that are gone, then read every provider afresh.

    Runs after a start, before the first plan (docs/design/transactions.md 10). After any stop the
    service continues where it was, and sends nothing twice. A provider that cannot be reached now
    does not stop the start, and a slow one does not hold it up: the sweeps read the rest.
    """
    end_s = runtime.clock.monotonic_s() + READS_MAX_S

    def is_over() -> bool:
        return runtime.clock.monotonic_s() >= end_s

    runtime.crash_points.reach("barrier.before_readback")
    is_alone = await join(runtime)
    runtime.crash_points.reach("barrier.before_sweep")
    if is_alone:
        await restored.look_at_start(runtime, is_over)
    for host in runtime.providers:
        await _meet(runtime, host, is_over)
    away = {one.host for one in runtime.troubles.all() if one.part in AWAY}
    present = runtime.providers.keys() - away
    await reconcile.read_all_queues(runtime, present, is_over)
    outbox.wake(runtime.wakeups)
    runtime.wakeups.wake("inbox")


async def _meet(runtime: Runtime, host: str, is_over: Callable[[], bool]) -> None:
    """Meet every repository that our App is installed on, and the heads open there."""
    try:
        for record in await installations.read(runtime, host):
            if is_over():
                break
            await signals.remember_heads(runtime, record.id, record.ref, record.default_branch)
    except ProviderError as trouble:
        # Heads of open pull requests are not known at the start; sweeps read them later.
        log.warning("heads_unread", host=host, why=trouble.message)


async def join(runtime: Runtime) -> bool:
    """Store the first heartbeat, before anything is claimed, and free the claims of gone instances.

    Return whether no other instance lives: only then may the database have been replaced. Logs a
    warning if other instances run with settings that should be the same and are not.
    """
    left = await beat(runtime)
    others = await _others(runtime)
    # The start looks after what was under way before.
    log.info("recovering", effects_unknown=left.effects, instances=1 + len(others))
    strange = [each.id for each in others if each.fingerprint != runtime.options.fingerprint]
    if strange:
        # Instances of one database have different settings. Restart those with the older ones.
        log.warning("settings_differ", instance=runtime.instance, others=strange)
    return not others


async def beat(runtime: Runtime) -> Freed:
    """Store a heartbeat, and free the claims of instances that are gone.

    Raises DatabaseUnavailable.
    """
    await runtime.store.show_life(runtime.instance)
    me = Instance(runtime.instance, runtime.options.version, runtime.options.fingerprint)
    left = await runtime.store.run(_beat, runtime, me)
    if left.gone:
        # Instances ended without a stop; this one takes over what they had begun.
        log.warning(
            "instances_gone",
            gone=left.gone,
            effects=left.effects,
            deliveries=left.deliveries,
            notifications=left.notifications,
        )
    if left.effects or left.deliveries or left.notifications:
        for topic in TOPICS:
            runtime.wakeups.wake(topic)
    return left


def _beat(session: Tx, runtime: Runtime, me: Instance) -> Freed:
    now = runtime.clock.now()
    instances.beat(session, me, now)
    return free_claims_of_gone(session, me.id, now)


def free_claims_of_gone(session: Tx, me: str, now: datetime) -> Freed:
    """Forget instances that are gone and free their claims; effects being sent become unknown."""
    return _freed(session, instances.forget_gone(session, me, now), now)


def free_own_claims(session: Tx, me: str, now: datetime) -> Freed:
    """Forget this instance, whose work has ended, and free its claims."""
    return _freed(session, instances.forget_me(session, me, now), now)


def _freed(session: Tx, departure: Departure, now: datetime) -> Freed:
    living, at = departure.living, instances.time_of(session, now)
    return Freed(
        gone=departure.gone,
        effects=outbox.reopen_sent(session, living, now),
        deliveries=inbox.release(session, living, at, thorough=bool(departure.gone)),
        notifications=notifications.release(session, living),
    )


async def prove_writable(runtime: Runtime) -> None:
    """Write the row of this process, for the proof that the database takes writes.

    Raises DatabaseUnavailable.
    """
    me = Instance(runtime.instance, runtime.options.version, runtime.options.fingerprint)
    await runtime.store.run(instances.beat, me, runtime.clock.now())


async def _others(runtime: Runtime) -> list[LiveInstance]:
    now = runtime.clock.now()
    found = await runtime.store.read(instances.living, runtime.instance, now)
    return [each for each in found if each.id != runtime.instance]


async def leave(runtime: Runtime) -> None:
    """Leave after the last work has ended, and free the claims of work that was cut off.

    If the database is away, the other instances notice by the missing heartbeats.
    """
    time_limits.answer_soon()
    try:
        await runtime.store.run(free_own_claims, runtime.instance, runtime.clock.now())
    except DatabaseUnavailable as refused:
        # The database was away at the stop; others notice it after 40 seconds.
        log.warning("left_unsaid", why=refused.detail)


async def measure(runtime: Runtime) -> None:
    """Measure how many instances live; while the database is away the last level remains."""
    now = runtime.clock.now()
    try:
        found = await runtime.store.read(instances.living, runtime.instance, now)
    except DatabaseUnavailable:
        return
    runtime.telemetry.level("headgate_instances", len(found))
    differ = len({each.fingerprint for each in found}) > 1
    runtime.telemetry.level("headgate_config_mismatch", int(differ))


def measure_troubles(runtime: Runtime) -> None:
    """Measure which troubles there are, and since when each of them; asks no database."""
    since = dict.fromkeys(TroubleName, 0.0)
    for one in runtime.troubles.all():
        since[one.name] = min(since[one.name] or one.since.timestamp(), one.since.timestamp())
    for name, at_s in since.items():
        runtime.telemetry.level("headgate_trouble", int(at_s > 0), name.value)
        runtime.telemetry.level("headgate_trouble_since_timestamp_seconds", at_s, name.value)
