"""One turn as those see it who keep something of it."""

from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Step
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
