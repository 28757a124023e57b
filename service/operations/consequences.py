"""What else is kept of a turn, in its own transaction, by parts the queue knows nothing of.

A part adds one function to `KEEPERS`. It writes rows and nothing else: it may be run again
with its turn, and tells nobody before the commit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.model import MergeQueue
from service.mergequeue.outputs import Step
from service.operations import counting
from service.runtime import Runtime
from service.store.database import Tx
from service.vocabulary import QueueRef


@dataclass(frozen=True, slots=True)
class Happened:
    """One turn of one queue.

    `before` is the value that it began with, None when the queue was just made. `whole` is all
    its steps as one, its queue as it was saved, with the events in order.
    """

    ref: QueueRef
    before: MergeQueue | None
    whole: Step
    now: datetime


Keeper = Callable[[Tx, Runtime, Happened], None]


def _count(session: Tx, _: Runtime, happened: Happened) -> None:
    counting.keep(session, happened.ref, happened.before, happened.whole, happened.now)


KEEPERS: tuple[Keeper, ...] = (_count,)
"""Everybody who keeps something, in order."""


def keep(session: Tx, runtime: Runtime, happened: Happened) -> None:
    """Let everybody keep what follows; what one raises undoes the turn."""
    for keeper in KEEPERS:
        keeper(session, runtime, happened)
