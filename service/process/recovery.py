"""What runs after a start, before the first plan (RELIABILITY.md 7, the barrier).

Effects that were under way with somebody who is gone are read back, repositories and queues are
read afresh. After any stop the service takes up where it was; nothing is sent twice.
"""

import structlog

from service.accounts import installations
from service.mergequeue.operations import reconcile
from service.process import presence, signals
from service.provider.errors import ProviderError, Unavailable
from service.runtime import Runtime

log = structlog.get_logger()


async def recover(runtime: Runtime) -> None:
    """Be one of those who serve, take back what the dead had claimed, then read the world.

    A provider that cannot be reached now does not stop the start: the sweeps go on.
    """
    runtime.boundary.reach("barrier.before_readback")
    await presence.join(runtime)
    runtime.boundary.reach("barrier.before_sweep")
    for host in runtime.providers:
        await _meet(runtime, host)
    troubled = runtime.memory.troubled_hosts
    away = {host for host, why in troubled.items() if isinstance(why, Unavailable)}
    present = tuple(host for host in runtime.providers if host not in away)
    await reconcile.read_all_queues(runtime, present)
    runtime.wakeups.wake("outbox")
    runtime.wakeups.wake("inbox")


async def _meet(runtime: Runtime, host: str) -> None:
    """Meet every repository that our App is installed on, and the heads open there."""
    try:
        for record in await installations.read(runtime, host):
            await signals.remember_heads(runtime, record.id, record.ref, record.default_branch)
    except ProviderError as trouble:
        log.warning("heads_unread", host=host, why=trouble.message)
