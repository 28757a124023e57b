"""How large a batch may become: fixed, or by load and by its chance to pass.

See docs/design/testing.md 11.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.mergequeue.engine.config import BatchingRule, BatchSizing, QueueConfig
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.state import bases, ledger, stacks
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.line import URGENT
from service.mergequeue.engine.targets import Targets

CHANCE_MIN = 0.8
"""A batch is closed before the chance that all of it passes falls below this."""

CHANCE_GRAPH_MIN = 0.88
"""The same in PARALLEL mode, unless very many wait: a failure restarts much of the graph.

S 300 x 100, seeds 911 to 916: 2.75 / 2.67 at 1.04 runs for each merge with 0.8, 2.43 / 2.08 at 0.80
with 0.9, 2.76 / 2.24 at 0.84 with 0.93, before it mattered how long tests take. In SINGLE mode
without optimistic merging it would cost F 60 x 8 far more: P50 83 minutes with 0.8, 219 with 0.88.
"""

CROWDED = 2
"""More than this many waiting entries for each slot are very many.

S 60 x 8, seeds 941 to 945: P50 559 minutes without this, 368 with it.
"""

PAIR_MIN = 0.78
"""The least for two in PARALLEL mode: where many conflict, there would be no batch at all.

S 300 x 100 with 10 % conflicts, seeds 911 and 912: 3.26 / 2.87 with 0.8, 4.61 / 3.80 with 0.85.
"""

CHANCE_CLEARED_MIN = 0.65
"""The same where a follower that passes clears a failed batch, so that a failure costs less."""

SLOWER_MAX = 1.2
"""In PARALLEL mode, no entry joins whose tests take this many times as long as the first's.

S 300 x 100, seeds 911 to 918: 2.30 / 2.36 if it does not matter how long tests take, 1.99 / 1.88
with this limit and the next.
"""

FASTER_MIN = 0.5
"""An entry whose tests take less than this share joins only entries that it overlaps.

It need not wait for the tests of others.
"""

SPARE_MAX = 64
"""At most this many entries are considered that overlap none of the group.

If the group may have more members than that, as many are considered as it may have.
"""


def size_of(draft: Draft, waiting: int, free: int) -> int:
    """The most entries that a group may have: so that all waiting ones find a slot."""
    config = draft.queue.config
    if not config.batch:
        return 1
    if config.batch_sizing is BatchSizing.FIXED:
        return config.batching_min_size
    return max(1, min(config.batching_min_size, -(-waiting // max(free, 1))))


class Limits:
    """Which entries may join a growing group: by its chance to pass, and by how long tests take.

    With FIXED sizing neither counts. In SINGLE mode only the chance counts, for an entry whose
    tests take too long would keep everything behind it out of the group.
    """

    def __init__(self, draft: Draft, first: Entry) -> None:
        self._draft = draft
        self._matters = draft.queue.config.batch_sizing is BatchSizing.ADAPTIVE
        self._left = 1.0 - ledger.failing(draft, first) if self._matters else 1.0
        self._group = {first.id}
        self._is_cleared = draft.queue.config.can_optimistically_merge
        is_timed = self._matters and draft.is_parallel
        self._minutes = first.facts.own_minutes if is_timed else None

    def in_order(self, group: Sequence[Entry], spare: Iterable[Entry]) -> list[Entry]:
        """Entries that overlap none of the group and whose tests are not much faster.

        Entries with nothing ahead of them except what is ahead of the group come first, because
        then no other failure restarts the group. Otherwise they keep their order.
        """
        if not self._matters:
            return list(spare)
        base = set(bases.ahead(self._draft, group))

        def adds(entry: Entry) -> bool:
            return not base.issuperset(bases.ahead(self._draft, (entry,)))

        return sorted((one for one in spare if self._share(one) >= FASTER_MIN), key=adds)

    def admits(self, entry: Entry) -> bool:
        """Whether the entry may join the group; if so it counts as a member.

        More than half of what failed together is never put together again: two that fail only
        together pass alone each time.
        """
        if not self._matters:
            return True
        if self._share(entry) > SLOWER_MAX:
            return False
        left = self._left * (1.0 - ledger.failing(self._draft, entry))
        if left < self._least() or self._failed_before(entry):
            return False
        self._left = left
        self._group.add(entry.id)
        return True

    def _least(self) -> float:
        draft = self._draft
        if self._is_cleared:
            return CHANCE_CLEARED_MIN
        if len(self._group) == 1 and draft.is_parallel:
            return PAIR_MIN
        is_crowded = len(draft.places.waiting) > CROWDED * draft.queue.config.concurrency
        return CHANCE_GRAPH_MIN if draft.is_parallel and not is_crowded else CHANCE_MIN

    def _share(self, entry: Entry) -> float:
        """How long its tests take, divided by those of the first; 1 if that is not known."""
        own, first = entry.facts.own_minutes, self._minutes
        return own / first if own and first else 1.0

    def _failed_before(self, entry: Entry) -> bool:
        group = {*self._group, entry.id}
        batches = ledger.belief_of(self._draft).failed_together(entry.id)
        return any(2 * len(group & batch) > max(2, len(batch)) for batch in batches)


FAILED_BATCHES_MAX = 3
"""Failed batches after which an entry is tested alone (docs/design/engine.md 6)."""


@dataclass(slots=True)
class Reach:
    """What some entries touch together; in SINGLE mode any of them touches everything."""

    single: bool
    names: set[str] = field(default_factory=set)
    everything: bool = False
    any: bool = False

    def copy(self) -> "Reach":
        """One of its own with the same content."""
        return Reach(self.single, set(self.names), self.everything, self.any)

    def add(self, touches: Targets | None) -> None:
        """One more of them."""
        self.any = True
        if touches is None or touches.everything:
            self.everything = True
        else:
            self.names |= touches.names

    @property
    def meets_all(self) -> bool:
        """Whether any other entry meets one of them."""
        return self.any and (self.single or self.everything)

    def meets(self, touches: Targets | None) -> bool:
        """Whether any of them meets what touches this."""
        if not self.any:
            return False
        if self.meets_all or touches is None or touches.everything:
            return True
        return not self.names.isdisjoint(touches.names)


@dataclass(frozen=True, slots=True)
class Room:
    """What a group about to be formed may take: `size` entries; on the last slot also others."""

    size: int
    is_last_slot: bool
    blocked: Reach


def is_isolated(config: QueueConfig, entry: Entry) -> bool:
    """Whether the entry is always tested alone."""
    if not config.batch or entry.no_batch or entry.priority == URGENT or entry.taken_apart:
        return True
    if entry.failed_batches >= FAILED_BATCHES_MAX:
        return True
    if config.batch_sizing is BatchSizing.ADAPTIVE and entry.failed_batches:
        return True
    return any(_matches(rule, entry.touches) for rule in config.batching_rules)


def is_startable(draft: Draft, entry: Entry) -> bool:
    """Whether nothing about the entry itself keeps it from being tested now."""
    is_early = entry.build_after is not None and entry.build_after > draft.now
    return not (entry.unmet or entry.cancel is not None or is_early)


def form(draft: Draft, first: Entry, others: Iterable[Entry], room: Room) -> list[Entry]:
    """The group that begins with `first`, taken from those behind it in their order.

    `others` are all that are behind it, placed or waiting as it is, also those that cannot be
    taken: no entry is moved ahead of one that it overlaps. In SINGLE mode the group ends at the
    first that cannot be taken.
    """
    config = draft.queue.config
    if stacks.is_member(draft, first):
        return _with_those_above(draft, first, others)
    group = [first]
    if is_isolated(config, first) or room.size < 2:
        return group
    taken, passed = Reach(not draft.is_parallel), room.blocked.copy()
    taken.add(first.touches)
    spare: list[Entry] = []
    limits = Limits(draft, first)
    for entry in others:
        if len(group) >= room.size:
            break
        fits = _may_join(draft, entry) and not passed.meets(entry.touches)
        if fits and taken.meets(entry.touches) and limits.admits(entry):
            group.append(entry)
            taken.add(entry.touches)
            continue
        if not draft.is_parallel:
            break
        if fits and not taken.meets(entry.touches) and len(spare) < max(SPARE_MAX, room.size):
            spare.append(entry)
        passed.add(entry.touches)
    if room.is_last_slot and spare:
        _fill(group, spare, room.size, limits)
    return group


def is_complete(draft: Draft, group: Sequence[Entry], follower: Entry | None, size: int) -> bool:
    """Whether a group of waiting entries need not wait for company any more."""
    config = draft.queue.config
    if stacks.is_member(draft, group[0]) or is_isolated(config, group[0]) or len(group) >= size:
        return True
    if config.batch_sizing is BatchSizing.ADAPTIVE:
        return True
    if not draft.is_parallel and follower is not None and _ends_batch(draft, follower):
        return True
    return waits_until(config, group) <= draft.now


def _ends_batch(draft: Draft, follower: Entry) -> bool:
    """Return whether an entry never joins those ahead of it."""
    return is_isolated(draft.queue.config, follower) or stacks.is_member(draft, follower)


def waits_until(config: QueueConfig, group: Sequence[Entry]) -> datetime:
    """When a group that is not full starts nevertheless."""
    oldest = min(entry.state_since for entry in group)
    return oldest + timedelta(minutes=config.batching_max_wait_time_minutes)


def is_apart(entry: Entry) -> bool:
    """Whether a member of a stack is tested by a run of its own."""
    return entry.no_batch or entry.taken_apart or entry.failed_batches >= FAILED_BATCHES_MAX


def _with_those_above(draft: Draft, first: Entry, others: Iterable[Entry]) -> list[Entry]:
    """The members of a stack that follow each other: one group of any size."""
    group = [first]
    for entry in () if is_apart(first) else others:
        is_above = first.pr in entry.facts.below
        is_alone = is_apart(entry) or _has_failed_with_those_below(draft, entry)
        if not is_above or is_alone or entry.run or not is_startable(draft, entry):
            break
        group.append(entry)
    return group


def _has_failed_with_those_below(draft: Draft, entry: Entry) -> bool:
    """Whether a member of a stack is suspected, and so is tested by itself on top of the others.

    It cannot be tested apart from the line, since its head contains what is below it.
    """
    is_adaptive = draft.queue.config.batch_sizing is BatchSizing.ADAPTIVE
    return is_adaptive and ledger.belief_of(draft).is_suspect(entry.id)


def _may_join(draft: Draft, entry: Entry) -> bool:
    """Whether the entry is free to be tested together with others."""
    if stacks.is_member(draft, entry) or entry.run is not None or not is_startable(draft, entry):
        return False
    return not is_isolated(draft.queue.config, entry)


def _fill(group: list[Entry], spare: Sequence[Entry], size: int, limits: Limits) -> None:
    """The last slot also takes entries that overlap no entry of the group."""
    for entry in limits.in_order(group, spare):
        if len(group) >= size:
            return
        if limits.admits(entry):
            group.append(entry)


def _matches(rule: BatchingRule, touches: Targets | None) -> bool:
    if touches is None or touches.everything:
        return True
    pattern = rule.target_pattern
    if pattern.endswith("*"):
        return any(name.startswith(pattern[:-1]) for name in touches.names)
    return pattern in touches.names
