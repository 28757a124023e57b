"""Show the watched checks of a target branch: what is red, and the newest verified commit."""

from dataclasses import dataclass

from service.database.database import Tx
from service.mergequeue.breaks.search import StoredBreak, VerifiedCommit
from service.mergequeue.operations import breaks, turn
from service.mergequeue.store import breaks as stored
from service.runtime import Runtime
from service.vocabulary import QueueRef

BREAKS_MAX = 20


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """The watched checks of a target; `watched` is empty while it is not watched.

    `breaks` are the newest ones, the newest first, open and ended.
    """

    watched: tuple[str, ...]
    verified: VerifiedCommit | None
    breaks: tuple[StoredBreak, ...]

    @property
    def open_breaks(self) -> tuple[StoredBreak, ...]:
        """The checks that are red now."""
        return tuple(each for each in self.breaks if each.ended_at is None)


async def load_health(runtime: Runtime, queue: QueueRef) -> TargetHealth:
    """Return the health of a queue's target, as far as it is known."""
    value = await turn.last_value(runtime, queue.id)
    names = [one.name for one in breaks.watched(value)] if breaks.is_watched(value) else []
    return await runtime.store.read(_health, queue, tuple(names))


def _health(session: Tx, queue: QueueRef, names: tuple[str, ...]) -> TargetHealth:
    newest = stored.newest(session, queue.id, BREAKS_MAX)
    return TargetHealth(names, stored.verified(session, queue.id), newest)
