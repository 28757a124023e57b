"""Deliveries that never arrived, asked for again (GITHUB.md 7.2)."""

import structlog

from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.store import inbox

ASKED_MAX = 100
"""In one sweep of one host; what is left waits for the next."""
PAUSE_S = 1.0

log = structlog.get_logger()


async def ask_again(runtime: Runtime) -> None:
    """Sweep: have every provider send again what failed and never came in."""
    for host in runtime.providers:
        try:
            await _ask_again(runtime, host)
        except ProviderError as trouble:
            log.warning("redelivery_postponed", host=host, why=trouble.message)


async def _ask_again(runtime: Runtime, host: str) -> None:
    """One host, the longest lost first.

    Only a sweep that asked for everything moves the look back forward. Whatever fails again
    is in the log as a newer try by then, and whatever arrived is in the inbox.
    """
    provider = runtime.providers[host]
    started = runtime.clock.now()
    failed = await provider.failed_deliveries(runtime.redeliveries.since(host, started))
    ids = [one.id for one in failed]
    known = await runtime.store.read(inbox.known, host, ids) if ids else frozenset()
    lost = [one for one in failed if one.id not in known]
    asked = lost[:ASKED_MAX]
    for place, one in enumerate(asked):
        if place:
            await runtime.clock.sleep(PAUSE_S)
        await provider.redeliver(one.attempt)
    if asked:
        log.info("redelivered", host=host, deliveries=len(asked), left=len(lost) - len(asked))
    if len(lost) == len(asked):
        runtime.redeliveries.note(host, started)
