"""Queue values and rows as the views that faces render. Reads, decides nothing."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from service.mergequeue import estimates, explain, line
from service.mergequeue.explain import Explained
from service.mergequeue.model import Entry, MergeQueue, Run
from service.mergequeue.states import FINAL, EntryState
from service.operations import turn
from service.operations.views import Conclusion, PullRequestView, TimelineEvent
from service.runtime import Runtime
from service.store import access, journal, runs
from service.store.database import Tx
from service.vocabulary import CheckOutcome, QueueRef
from service.wording.times import TimeLeft


async def value(runtime: Runtime, queue: QueueRef) -> MergeQueue:
    """The queue's newest value."""
    return await turn.value(runtime, queue.id)


def explained(queue: MergeQueue, entry: Entry, now: datetime) -> Explained:
    """Why the entry is where it is; a final one has its reason and no conditions."""
    live = queue.entries.get(entry.pr)
    if live is None or live.id != entry.id:
        return explain.concluded(entry)
    return explain.explain(queue, entry.pr, now)
