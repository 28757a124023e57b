"""The only place that catches every exception: a bug in one piece of work stops no other."""

from collections.abc import Awaitable

import structlog

from service.errors import DatabaseUnavailable

log = structlog.get_logger()


async def failure_of(what: str, work: Awaitable[None]) -> Exception | None:
    """Do the work, log the error that ended it, and return that error or None."""
    try:
        await work
    except DatabaseUnavailable as away:
        # The work is tried again after a pause.
        log.warning("database_unavailable", what=what, why=str(away.__cause__ or away.detail))
        return away
    except Exception as error:
        # A mistake of ours; the work is tried again. Report the line with its stack.
        log.exception("crashed", what=what)
        return error
    return None
