"""How large a batch may become: fixed, or by load and by its chance to pass (ENGINE.md 14.1)."""

from collections.abc import Sequence

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.draft import Draft
from service.mergequeue.engine.model import Entry

CHANCE_MIN = 0.75
"""A batch is closed before the chance that all of it passes falls below this."""

SCREENED_P_FAIL = 0.015
"""The chance of failing that is left to an entry which passed alone."""


def p_fail(entry: Entry) -> float:
    """The chance that the entry fails by itself, as far as is known."""
    return min(entry.p_fail, SCREENED_P_FAIL) if entry.screened else entry.p_fail


def size_of(draft: Draft, waiting: int, free: int) -> int:
    """The most entries that a group may have: so that all waiting ones find a slot."""
    config = draft.queue.config
    if not config.batch:
        return 1
    if config.batch_sizing is BatchSizing.FIXED:
        return config.batching_min_size
    return max(1, min(config.batching_min_size, -(-waiting // max(free, 1))))


class Chance:
    """The chance that a growing group passes; with FIXED sizing it does not matter."""

    def __init__(self, draft: Draft, group: Sequence[Entry]) -> None:
        self._matters = draft.queue.config.batch_sizing is BatchSizing.ADAPTIVE
        self._left = 1.0
        if self._matters:
            for entry in group:
                self._left *= 1.0 - p_fail(entry)

    def admits(self, entry: Entry) -> bool:
        """Whether the group is likely enough to pass with this one too; if so it counts in."""
        if not self._matters:
            return True
        left = self._left * (1.0 - p_fail(entry))
        if left < CHANCE_MIN:
            return False
        self._left = left
        return True
