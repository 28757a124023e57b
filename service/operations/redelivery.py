"""Deliveries that never arrived, asked for again (GITHUB.md 7.2)."""

from datetime import timedelta

import structlog

from service.provider.errors import ProviderError
from service.runtime import Runtime

LOOK_BACK = timedelta(days=3)
"""How far back a provider keeps its own log."""

log = structlog.get_logger()


async def ask_again(runtime: Runtime) -> None:
    """Have every provider send its failed deliveries again; known ids change nothing."""
    since = runtime.clock.now() - LOOK_BACK
    for host, provider in runtime.providers.items():
        try:
            count = await provider.redeliver(since)
        except ProviderError as trouble:
            log.warning("redelivery_postponed", host=host, why=trouble.message)
        else:
            if count:
                log.info("redelivered", host=host, deliveries=count)
