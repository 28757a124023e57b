"""The answers of `batchSizing: ADAPTIVE`: by what is believed of each entry, and by the load.

docs/design/testing.md 11; the parts beside this module have the rules.
"""

from collections.abc import Iterable, Iterator, Sequence

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.outputs import PlacedWhy
from service.mergequeue.engine.policy import (
    batching,
    confirming,
    constants,
    early_looks,
    entries_on_all_targets,
    foresight,
    retesting_failed_groups,
    screening,
)
from service.mergequeue.engine.policy.questions import Confirms, Joins, Starts, Suspects
from service.mergequeue.engine.state.draft import Draft


class AdaptiveStarts(Starts):
    """Risky entries are tested apart first, and few things start around those on all targets."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft)
        self._due = screening.EntriesToScreen(draft)
        self._limit = entries_on_all_targets.Limit(draft)
        self._early = early_looks.Limit(draft)
        self._wanted = 1

    def in_order(self) -> Sequence[int]:
        return entries_on_all_targets.in_order(self._draft, super().in_order())

    def is_apart(self, entry: Entry) -> bool:
        return self._due.has(entry)

    def is_suspect(self, entry: Entry) -> bool:
        return AdaptiveSuspects(self._draft).is_suspect(entry)

    def waits(self, entry: Entry) -> bool:
        return entries_on_all_targets.waits(self._draft, entry)

    def holds_back(self, entry: Entry) -> bool:
        return self._limit.holds_back(entry) or self._early.holds_back(entry)

    def note_start(self, group: Sequence[Entry]) -> None:
        self._limit.note_start(group)
        self._early.note_start()

    def size(self, waiting: int, free: int) -> int:
        self._wanted = batching.size_by_load(self._draft, waiting, free)
        if foresight.is_lacking(self._draft):
            most = self._draft.queue.config.batching_min_size
            return max(self._wanted, min(constants.EARLY_GROUP_MAX, most))
        return self._wanted

    def joins(self, first: Entry) -> Joins:
        return batching.JoinsByChance(self._draft, first, self._wanted)

    def why_placed(self, entry: Entry) -> PlacedWhy | None:
        if screening.is_overtaken(self._draft, entry, self._due):
            return PlacedWhy.SCREENED
        is_ahead = entries_on_all_targets.is_ahead_of_order(self._draft, entry)
        return PlacedWhy.IMPACTS_ALL if is_ahead else None


class AdaptiveSuspects(Suspects):
    """A failed run is a record against those who can have caused it; no search is needed."""

    are_searched = False
    joint_chance_max = constants.JOINT_CHANCE_ADAPTIVE_MAX

    def leaves(self, run: Run) -> bool:
        return retesting_failed_groups.is_out(self._draft, run)

    def is_to_blame(self, run: Run) -> bool:
        return retesting_failed_groups.is_to_blame(self._draft, run)


class AdaptiveConfirms(Confirms):
    """Second looks, and witnesses where a follower that passes clears a failed group."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft)
        self.has_witnesses = draft.queue.config.can_optimistically_merge

    def second_looks(self) -> list[Entry]:
        return confirming.second_looks(self._draft)

    def is_look_wanted(self, entry: Entry) -> bool:
        return confirming.may_be_wanted(self._draft, entry)

    def early_looks(self) -> list[Entry]:
        return early_looks.entries_to_look_at(self._draft)

    def is_early_look_wanted(self, entry: Entry) -> bool:
        return early_looks.is_wanted(self._draft, entry)

    def witnesses(self, restarting: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
        return confirming.witnesses(self._draft, restarting)
