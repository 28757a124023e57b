"""Choose which entries one run tests together (docs/design/testing.md 3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.policy import constants, policies
from service.mergequeue.engine.policy.questions import Joins, Starts
from service.mergequeue.engine.state import stacks
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.targets import Targets


@dataclass(slots=True)
class Reach:
    """The targets that entries touch together; in SINGLE mode any of them touches everything."""

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
        """Return whether any other entry meets one of them."""
        return self.any and (self.single or self.everything)

    def meets(self, touches: Targets | None) -> bool:
        """Return whether any of them meets what touches this."""
        if not self.any:
            return False
        if self.meets_all or touches is None or touches.everything:
            return True
        return not self.names.isdisjoint(touches.names)


@dataclass(frozen=True, slots=True)
class Room:
    """The room of a group about to be formed: `size` entries; on the last slot also others."""

    size: int
    is_last_slot: bool
    blocked: Reach
    starts: Starts


def is_isolated(config: QueueConfig, entry: Entry) -> bool:
    """Return whether the entry is always tested alone."""
    return policies.policy_of(config).is_isolated(config, entry)


def form(draft: Draft, first: Entry, others: Iterable[Entry], room: Room) -> list[Entry]:
    """The group that begins with `first`, taken from those behind it in their order.

    `others` are all that are behind it, placed or waiting as it is, also those that cannot be
    taken: no entry is moved ahead of one that it overlaps. In SINGLE mode the group ends at the
    first that cannot be taken.
    """
    config = draft.queue.config
    if stacks.is_member(draft, first):
        return _with_those_above(draft, first, others, room.starts)
    group = [first]
    if is_isolated(config, first) or room.size < 2:
        return group
    taken, passed = Reach(not draft.is_parallel), room.blocked.copy()
    taken.add(first.touches)
    spare: list[Entry] = []
    spare_max = max(constants.SPARE_MAX, room.size)
    joins = room.starts.joins(first)
    for entry in others:
        if len(group) >= room.size:
            break
        fits = _may_join(draft, entry) and not passed.meets(entry.touches)
        if fits and taken.meets(entry.touches) and joins.admits(entry):
            group.append(entry)
            taken.add(entry.touches)
            continue
        if not draft.is_parallel:
            break
        if fits and not taken.meets(entry.touches) and len(spare) < spare_max:
            spare.append(entry)
        passed.add(entry.touches)
    if room.is_last_slot and spare:
        _fill(group, spare, room.size, joins)
    return group


def is_complete(draft: Draft, group: Sequence[Entry], follower: Entry | None, size: int) -> bool:
    """Return whether a group of waiting entries need not wait for company any more."""
    config = draft.queue.config
    if stacks.is_member(draft, group[0]) or is_isolated(config, group[0]) or len(group) >= size:
        return True
    starts_at = policies.policy_of(config).waits_until(config, group)
    if starts_at is None:
        return True
    if not draft.is_parallel and follower is not None and _ends_batch(draft, follower):
        return True
    return starts_at <= draft.now


def _ends_batch(draft: Draft, follower: Entry) -> bool:
    """Return whether an entry never joins those ahead of it."""
    return is_isolated(draft.queue.config, follower) or stacks.is_member(draft, follower)


def _with_those_above(
    draft: Draft, first: Entry, others: Iterable[Entry], starts: Starts
) -> list[Entry]:
    """The members of a stack that follow each other: one group of any size."""
    group = [first]
    for entry in () if stacks.is_apart(first) else others:
        is_above = first.pr in entry.facts.below
        is_alone = stacks.is_apart(entry) or starts.is_suspect(entry)
        if not is_above or is_alone or entry.run or not is_startable(draft, entry):
            break
        group.append(entry)
    return group


def _may_join(draft: Draft, entry: Entry) -> bool:
    """Return whether the entry is free to be tested together with others."""
    if stacks.is_member(draft, entry) or entry.run is not None or not is_startable(draft, entry):
        return False
    return not is_isolated(draft.queue.config, entry)


def _fill(group: list[Entry], spare: Sequence[Entry], size: int, joins: Joins) -> None:
    """The last slot also takes entries that overlap no entry of the group."""
    for entry in joins.in_order(group, spare):
        if len(group) >= size:
            return
        if joins.admits(entry):
            group.append(entry)
