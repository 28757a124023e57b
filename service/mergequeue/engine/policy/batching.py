"""Choose which batches are formed: who is tested alone, and who may join an adaptive batch.

See docs/design/testing.md 3; docs/design/testing.md 11.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from service.mergequeue.engine.config import BatchingRule, QueueConfig
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.policy import constants, early_looks, suspecting
from service.mergequeue.engine.policy.questions import Joins
from service.mergequeue.engine.state import bases, stacks
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.line import URGENT
from service.mergequeue.engine.targets import Targets


def is_isolated(config: QueueConfig, entry: Entry) -> bool:
    """Return whether the entry is always tested alone."""
    if not config.batch or entry.priority == URGENT or stacks.is_apart(entry):
        return True
    return any(_matches(rule, entry.touches) for rule in config.batching_rules)


def is_isolated_once_failed(config: QueueConfig, entry: Entry) -> bool:
    """The same with adaptive batches, where one failed batch is enough."""
    return bool(entry.failed_batches) or is_isolated(config, entry)


def waits_until(config: QueueConfig, group: Sequence[Entry]) -> datetime:
    """Return when a group that is not full starts nevertheless."""
    oldest = min(entry.state_since for entry in group)
    return oldest + timedelta(minutes=config.batching_max_wait_time_minutes)


def size_by_load(draft: Draft, waiting: int, free: int) -> int:
    """The most entries that a group may have: so that all waiting ones find a slot."""
    config = draft.queue.config
    if not config.batch:
        return 1
    return max(1, min(config.batching_min_size, -(-waiting // max(free, 1))))


class JoinsByChance(Joins):
    """The entries that may join a growing group: by its chance to pass, and by how long tests take.

    In SINGLE mode only the chance counts, for an entry whose tests take too long would keep
    everything behind it out of the group. From `wanted` entries on, the group takes only those that
    pass alone or are tested alone at the same time (`early_looks.py`).
    """

    def __init__(self, draft: Draft, first: Entry, wanted: int) -> None:
        self._draft = draft
        self._wanted = wanted
        self._is_known_soon = early_looks.is_known_soon(draft, first)
        self._left = 1.0 - suspecting.failing(draft, first)
        self._group = {first.id}
        self._is_cleared = draft.queue.config.can_optimistically_merge
        self._minutes = first.facts.own_minutes if draft.is_parallel else None

    def in_order(self, group: Sequence[Entry], spare: Iterable[Entry]) -> list[Entry]:
        """Entries that overlap none of the group and whose tests are not much faster.

        Entries with nothing ahead of them except what is ahead of the group come first, because
        then no other failure restarts the group. Otherwise they keep their order.
        """
        base = set(bases.ahead(self._draft, group))

        def adds(entry: Entry) -> bool:
            return not base.issuperset(bases.ahead(self._draft, (entry,)))

        return sorted((one for one in spare if self._share(one) >= constants.FASTER_MIN), key=adds)

    def admits(self, entry: Entry) -> bool:
        """Return whether the entry may join the group; if so it counts as a member.

        More than half of what failed together is never put together again: two that fail only
        together pass alone each time.
        """
        if self._share(entry) > constants.SLOWER_MAX:
            return False
        left = self._left * (1.0 - suspecting.failing(self._draft, entry))
        if left < self._least() or self._failed_before(entry):
            return False
        is_known_soon = self._is_known_soon and early_looks.is_known_soon(self._draft, entry)
        is_small = len(self._group) < self._wanted
        if not is_small and (not is_known_soon or left < constants.EARLY_GROUP_CHANCE_MIN):
            return False
        self._is_known_soon = is_known_soon
        self._left = left
        self._group.add(entry.id)
        return True

    def _least(self) -> float:
        draft = self._draft
        if self._is_cleared:
            return constants.CLEARED_CHANCE_MIN
        if len(self._group) == 1 and draft.is_parallel:
            return constants.PAIR_CHANCE_MIN
        crowd = constants.CROWDED_MIN * draft.queue.config.concurrency
        if draft.is_parallel and len(draft.places.waiting) <= crowd:
            return constants.BATCH_CHANCE_GRAPH_MIN
        return constants.BATCH_CHANCE_MIN

    def _share(self, entry: Entry) -> float:
        """Return how long its tests take, divided by those of the first; 1 if that is not known."""
        own, first = entry.facts.own_minutes, self._minutes
        return own / first if own and first else 1.0

    def _failed_before(self, entry: Entry) -> bool:
        group = {*self._group, entry.id}
        batches = suspecting.belief_of(self._draft).failed_together(entry.id)
        return any(2 * len(group & batch) > max(2, len(batch)) for batch in batches)


def _matches(rule: BatchingRule, touches: Targets | None) -> bool:
    if touches is None or touches.everything:
        return True
    pattern = rule.target_pattern
    if pattern.endswith("*"):
        return any(name.startswith(pattern[:-1]) for name in touches.names)
    return pattern in touches.names
