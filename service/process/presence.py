"""One of several processes that serve a database: being there, and burying the dead.

A claim belongs to the process that made it. Only who has stopped, ended or stood still too
long loses it; then any other takes it back (RELIABILITY.md 6.3).
"""

from datetime import timedelta

import structlog

from service import time_limits
from service.database import instances
from service.database.database import Tx
from service.database.instances import Instance, Known
from service.errors import DatabaseUnavailable
from service.process.store import claims
from service.process.store.claims import Freed
from service.runtime import Runtime

BEAT = timedelta(seconds=5)
"""Between two heartbeats; see `instances.GONE_AFTER`."""

TOPICS = ("outbox", "inbox", "notifications", "collecting")

log = structlog.get_logger()


async def join(runtime: Runtime) -> None:
    """Be there from now on, before anything is claimed; what the dead had is taken back.

    Says so where others run with settings that should be the same and are not.
    """
    left = await beat(runtime)
    others = await _others(runtime)
    log.info("recovering", effects_unknown=left.effects, instances=1 + len(others))
    strange = [each.id for each in others if each.fingerprint != runtime.options.fingerprint]
    if strange:
        log.warning("settings_differ", instance=runtime.instance, others=strange)


async def beat(runtime: Runtime) -> Freed:
    """Be there for another while, and take back what belongs to nobody who lives.

    Raises DatabaseUnavailable.
    """
    await runtime.store.show_life(runtime.instance)
    me = Instance(runtime.instance, runtime.options.version, runtime.options.fingerprint)
    left = await runtime.store.run(_beat, runtime, me)
    if left.gone:
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
    return claims.free_those_of_gone(session, me.id, now)


async def prove_writable(runtime: Runtime) -> None:
    """Write the row of this process, for the proof that the database takes writes.

    Raises DatabaseUnavailable.
    """
    me = Instance(runtime.instance, runtime.options.version, runtime.options.fingerprint)
    await runtime.store.run(instances.beat, me, runtime.clock.now())


async def _others(runtime: Runtime) -> list[Known]:
    now = runtime.clock.now()
    found = await runtime.store.read(instances.living, runtime.instance, now)
    return [each for each in found if each.id != runtime.instance]


async def leave(runtime: Runtime) -> None:
    """Be there no more, after the last work has ended; what was cut off is anybody's.

    A database that is away is told by nobody: the others find out.
    """
    time_limits.answer_soon()
    try:
        await runtime.store.run(claims.free_mine, runtime.instance, runtime.clock.now())
    except DatabaseUnavailable as refused:
        log.warning("left_unsaid", why=refused.detail)


async def measure(runtime: Runtime) -> None:
    """Tell how many live; while the database is away the last level stands."""
    now = runtime.clock.now()
    try:
        found = await runtime.store.read(instances.living, runtime.instance, now)
    except DatabaseUnavailable:
        return
    runtime.telemetry.level("headgate_instances", len(found))
    differ = len({each.fingerprint for each in found}) > 1
    runtime.telemetry.level("headgate_config_mismatch", int(differ))
