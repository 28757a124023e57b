"""Start while the database is away: listen, refuse with 503, and retry until it is available."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from bot import listening
from bot.listening import Address
from service.accounts import administrators, signing_keys
from service.clock import Clock
from service.database.database import Store
from service.errors import DatabaseAway, DatabaseUnavailable
from service.http import connections
from service.mergequeue.operations import landing_evidence
from service.process import presence
from service.runtime import Runtime

PAUSE_MIN_S = 0.5
PAUSE_MAX_S = 5.0
"""Bounds of the pause between two tries."""
DRAIN_S = 0.5
CHECK = {"database": "failed"}
RETRY_AFTER_S = 5
NO_DATABASE = {
    "title": "The database cannot be used now",
    "code": "database_unavailable",
    "detail": "Headgate waits for its database. An operator finds the reason in its log. Try again "
    "in 5 seconds.",
}

log = structlog.get_logger()


async def store_once_there(
    open_now: Callable[[], Awaitable[Store]], address: Address, clock: Clock
) -> Store:
    """Open the store; while the database is away, answer 503 and retry.

    Raises StartRefused for an error that waiting does not cure.
    """
    try:
        return await open_now()
    except (DatabaseAway, DatabaseUnavailable) as away:
        why = away.detail
    health = listening.health_for_operators(address.settings, CHECK, NO_DATABASE, RETRY_AFTER_S)
    async with _refusing(address) as url, health:
        pause_s = PAUSE_MIN_S
        while True:
            log.warning("waiting_for_database", url=url, why=why, seconds=pause_s)
            await clock.sleep(pause_s)
            try:
                return await open_now()
            except (DatabaseAway, DatabaseUnavailable) as away:
                why = away.detail
            pause_s = min(pause_s * 2, PAUSE_MAX_S)


async def recover(runtime: Runtime) -> None:
    """Recover; begin again after a pause whenever the database is away meanwhile."""
    pause_s = PAUSE_MIN_S
    while True:
        try:
            await presence.recover(runtime)
            await signing_keys.prepare(runtime)
            await administrators.end_unnamed(runtime)
            await landing_evidence.sign_waiting(runtime)
        except DatabaseUnavailable as away:
            log.warning("recovery_waits_for_database", why=away.detail, seconds=pause_s)
            await runtime.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
        else:
            return


@asynccontextmanager
async def _refusing(address: Address) -> AsyncIterator[str]:
    """Listen on the service's address; `/healthz` answers ok, anything else is refused."""
    app = web.Application()
    listening.refuse_the_rest(app, CHECK, NO_DATABASE, RETRY_AFTER_S)
    runner = connections.runner(app, drain_s=DRAIN_S)
    try:
        yield await address.listen(runner)
    finally:
        await runner.cleanup()
