"""The newest committed value of each queue, so that a turn rarely loads one.

Only committed values enter; a reader names the version that it read in its own transaction.
Used from the event loop and from the store's threads.
"""

from collections import OrderedDict
from threading import Lock

from service.database.database import Store
from service.mergequeue.engine.model import MergeQueue

QUEUES_MAX = 512
"""Queue values in memory; the least recently used is evicted first."""


class QueueCache:
    """At most `QUEUES_MAX` values, each the newest that was put."""

    def __init__(self) -> None:
        self._values: OrderedDict[int, MergeQueue] = OrderedDict()
        self._lock = Lock()

    def get(self, queue_id: int, version: int) -> MergeQueue | None:
        """Return the value of exactly this version, if it is here."""
        found = self.newest(queue_id)
        return found if found is not None and found.version == version else None

    def newest(self, queue_id: int) -> MergeQueue | None:
        """Return the newest value that was put; another process may have committed a newer one."""
        with self._lock:
            found = self._values.get(queue_id)
            if found is not None:
                self._values.move_to_end(queue_id)
            return found

    def put(self, queue: MergeQueue) -> None:
        """Keep a committed value; an older one than is here changes nothing."""
        with self._lock:
            known = self._values.get(queue.id)
            if known is not None and known.version > queue.version:
                return
            self._values[queue.id] = queue
            self._values.move_to_end(queue.id)
            if len(self._values) > QUEUES_MAX:
                self._values.popitem(last=False)

    def drop(self, queue_id: int) -> None:
        """Remove a queue, if it is cached."""
        with self._lock:
            self._values.pop(queue_id, None)


async def newest_known(store: Store, queue_id: int) -> MergeQueue | None:
    """Return the queue's newest committed value if it is cached. Raises DatabaseUnavailable."""
    known = store.caches.of(QueueCache).newest(queue_id)
    if known is None or not await store.is_newest(queue_id, known.version):
        return None
    return known
