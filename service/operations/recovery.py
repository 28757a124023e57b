"""What runs after a start, before the first plan (RELIABILITY.md 7, the barrier).

Effects that were under way are read back, repositories and queues are read afresh. After any
stop the service takes up where it was; nothing is sent twice.
"""

import structlog

from service.operations import reconcile, signals
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.store import outbox

log = structlog.get_logger()


async def recover(runtime: Runtime) -> None:
    """Turn every effect that was being sent into an unknown one, then read the world.

    A provider that cannot be reached now does not stop the start: the sweeps go on.
    """
    runtime.boundary.reach("barrier.before_readback")
    reopened = await runtime.store.run(outbox.reopen_sent)
    log.info("recovering", effects_unknown=reopened)
    runtime.boundary.reach("barrier.before_sweep")
    for host in runtime.providers:
        await _read_installations(runtime, host)
    await reconcile.read_all_queues(runtime)
    runtime.wakeups.wake("outbox")
    runtime.wakeups.wake("inbox")


async def _read_installations(runtime: Runtime, host: str) -> None:
    """Meet every repository that our App is installed on, and the heads open there."""
    try:
        for fresh in await runtime.providers[host].repositories():
            record = await runtime.store.run(signals.keep_repository, fresh)
            await signals.remember_heads(
                runtime, record.id, record.ref, record.default_branch
            )
    except ProviderError as trouble:
        log.warning("installations_unread", host=host, why=trouble.message)
