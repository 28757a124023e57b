"""An index of a queue's entries: the line, those that wait, and those that a clock may move.

It follows from the entries; an index that is carried from step to step saves rebuilding it, so
that the cost of a step depends on what it touches. `draft.py` keeps it true. Two results of
`bases.py` are carried with it. The graph of the line: with 100 live runs in PARALLEL mode the
median step took 0.8 ms with the carried graph and 1.4 ms when each step drew it. The progress of
each run: at 1,000 entries in PARALLEL mode the slowest hundredth took 3.7 ms with it and 5.3 ms
without (2026-11-23, on a busy machine).
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from service.mergequeue.engine.model import Entry, LandedStep, WaitingKey
from service.mergequeue.engine.state import waiting
from service.mergequeue.engine.state.graph import Graph
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.targets import ALL, Targets

_NOBODY: frozenset[int] = frozenset()
_COUNTED_ON = frozenset({EntryState.PENDING, EntryState.TESTING, EntryState.TESTS_PASSED})


@dataclass(frozen=True, slots=True)
class Progress:
    """The landings since a run's tip: pull requests of its own, and whether others landed too.

    `unproved` are those of the run and its base that others merged before they had passed.
    `newest` is the last move of the target that it knows, `idle` are those of the run and its
    base that brought nothing, `reach` is what all of them touched when it was begun.
    """

    landed: frozenset[int]
    others: bool
    unproved: tuple[int, ...] = ()
    newest: LandedStep | None = None
    idle: frozenset[int] = frozenset()
    reach: Targets = ALL


NOTHING_LANDED: Mapping[str, Progress] = MappingProxyType({})


def is_expected(entry: Entry) -> bool:
    """Return whether those behind count on it: placed and not out (docs/design/engine.md 2)."""
    if entry.rank is None or entry.held_by:
        return False
    return entry.state in _COUNTED_ON or entry.kept


def is_wide(entry: Entry) -> bool:
    """Return whether an entry impacts every target."""
    touches = entry.touches
    return touches is None or touches.everything


def effect_on_followers(entry: Entry) -> tuple[object, ...]:
    """Return what of an entry those behind it depend on, beside its batch."""
    return entry.rank, is_expected(entry), entry.touches


class Places:
    """The index.

    `line` is (rank, pull request) in order, `waiting` the keys of those that wait, in order;
    the sets are numbers of pull requests that a clock or another's leaving may move: `idle` are
    placed ones that wait for a run, `delayed` those whose branch is built later, `verified` those
    that a passed run proves, `stacked` those with others below them, `dependent` those that depend
    on others, `timed` those that wait for times, `wide` placed ones that impact every target;
    `in_run` are the entries of each run by its id.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.line: list[tuple[int, int]] = []
        self.waiting: list[WaitingKey] = []
        self.not_ready: set[int] = set()
        self.failing: set[int] = set()
        self.held: set[int] = set()
        self.unready: set[int] = set()
        self.leaving: set[int] = set()
        self.idle: set[int] = set()
        self.delayed: set[int] = set()
        self.verified: set[int] = set()
        self.stacked: set[int] = set()
        self.dependent: set[int] = set()
        self.timed: set[int] = set()
        self.wide: set[int] = set()
        self.in_run: dict[str, frozenset[int]] = {}
        for entry in entries:
            if entry.rank is not None:
                self.line.append((entry.rank, entry.pr))
            elif entry.state is EntryState.PENDING:
                self.waiting.append(entry.waiting_key)
            self._note(entry)
        self.line.sort()
        self.waiting.sort()

    def add(self, entry: Entry) -> None:
        """Take in an entry that is not in the index."""
        if entry.rank is not None:
            insort(self.line, (entry.rank, entry.pr))
        elif entry.state is EntryState.PENDING:
            insort(self.waiting, entry.waiting_key)
        self._note(entry)

    def remove(self, entry: Entry) -> None:
        """Forget an entry, in exactly the form in which it was added."""
        if entry.rank is not None:
            del self.line[bisect_left(self.line, (entry.rank, entry.pr))]
        elif entry.state is EntryState.PENDING:
            del self.waiting[bisect_left(self.waiting, entry.waiting_key)]
        for numbers in self._sets():
            numbers.discard(entry.pr)
        if entry.run is not None:
            left = self.in_run[entry.run] - {entry.pr}
            if left:
                self.in_run[entry.run] = left
            else:
                del self.in_run[entry.run]

    def copy(self) -> "Places":
        """An index of its own with the same content."""
        twin = object.__new__(Places)
        for name, known in vars(self).items():
            setattr(twin, name, known.copy())
        return twin

    def _sets(self) -> tuple[set[int], ...]:
        return (
            self.not_ready,
            self.failing,
            self.held,
            self.unready,
            self.leaving,
            self.idle,
            self.delayed,
            self.verified,
            self.stacked,
            self.dependent,
            self.timed,
            self.wide,
        )

    def _note(self, entry: Entry) -> None:
        if entry.state is EntryState.NOT_READY:
            self.not_ready.add(entry.pr)
        elif entry.state is EntryState.PENDING_FAILURE:
            self.failing.add(entry.pr)
        if entry.held_by:
            self.held.add(entry.pr)
        if entry.unready_since is not None:
            self.unready.add(entry.pr)
        if entry.cancel is not None:
            self.leaving.add(entry.pr)
        if entry.state is EntryState.PENDING and is_expected(entry):
            self.idle.add(entry.pr)
        self._note_rest(entry)

    def _note_rest(self, entry: Entry) -> None:
        if entry.build_after is not None:
            self.delayed.add(entry.pr)
        if entry.verified_by is not None:
            self.verified.add(entry.pr)
        if entry.facts.below:
            self.stacked.add(entry.pr)
        if entry.facts.depends_on:
            self.dependent.add(entry.pr)
        if waiting.is_timed(entry.facts):
            self.timed.add(entry.pr)
        if entry.rank is not None and is_wide(entry):
            self.wide.add(entry.pr)
        if entry.run is not None:
            self.in_run[entry.run] = self.in_run.get(entry.run, _NOBODY) | {entry.pr}


class IndexedEntries(dict[int, Entry]):
    """Entries by number together with their index, as the engine returns them.

    Equal to a plain mapping of the same entries; a value that was loaded or made by hand has a
    plain one, and its first step builds the index. Until `rests_until` time alone lets nothing
    start that did not start in the last step; None: nothing is known of that. `belief` is what
    the policy has computed of the records.
    """

    __slots__ = ("belief", "graph", "places", "progress", "rests_until")

    def __init__(
        self,
        entries: Mapping[int, Entry],
        places: Places,
        graph: Graph | None = None,
        progress: Mapping[str, Progress] = NOTHING_LANDED,
    ) -> None:
        super().__init__(entries)
        self.places = places
        self.graph = graph
        self.progress = dict(progress)
        self.rests_until: datetime | None = None
        self.belief: object = None


def indexed(entries: Mapping[int, Entry]) -> IndexedEntries:
    """Return these entries with an index of their own, to be changed together.

    The graph is shared with the older value: `bases.graph` copies it before it adds to it.
    """
    if isinstance(entries, IndexedEntries):
        twin = IndexedEntries(entries, entries.places.copy(), entries.graph, entries.progress)
        twin.rests_until = entries.rests_until
        twin.belief = entries.belief
        return twin
    return IndexedEntries(entries, Places(entries.values()))
