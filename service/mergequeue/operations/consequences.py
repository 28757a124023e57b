"""What else is kept of a turn, in its own transaction, by parts the queue knows nothing of.

A part adds one function to `KEEPERS`. It writes rows and nothing else: it may be run again
with its turn, and tells nobody before the commit.
"""

from collections.abc import Callable

from service.database.database import Tx
from service.mergequeue.operations import announcements, counting
from service.mergequeue.operations.happened import Happened
from service.runtime import Runtime

Keeper = Callable[[Tx, Runtime, Happened], None]


def _count(session: Tx, _: Runtime, happened: Happened) -> None:
    counting.keep(session, happened.ref, happened.before, happened.whole, happened.now)


KEEPERS: tuple[Keeper, ...] = (_count, announcements.announce)
"""Everybody who keeps something, in order."""


def keep(session: Tx, runtime: Runtime, happened: Happened) -> None:
    """Let everybody keep what follows; what one raises undoes the turn."""
    for keeper in KEEPERS:
        keeper(session, runtime, happened)
