"""The one place where everything is caught: a mistake in one piece of work stops no other."""

from collections.abc import Awaitable

import structlog

log = structlog.get_logger()


async def guarded(what: str, work: Awaitable[None]) -> bool:
    """Do it; False when it ended by an error that nobody expected, which is then logged."""
    try:
        await work
    except Exception:
        log.exception("crashed", what=what)
        return False
    return True
