"""What is known of the ground that runs stand on, carried from step to step.

All of it follows from the queue's value and only saves looking again: a value that was loaded
has none of it. Kept true by `draft.py`; nothing here decides anything.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from service.mergequeue.engine.model import Entry, LandedStep, Run
from service.mergequeue.engine.state.graph import Graph
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.targets import Targets


@dataclass(frozen=True, slots=True)
class Progress:
    """What has landed since a run's tip: pull requests of its own, and whether others did too.

    `until` is the last move looked at, so that a later look begins behind it. `numbers` are the
    pull requests of the run and its base, `unproved` those of them that others merged before they
    had passed, `reach` what those of them that were live touched (None:
    not looked at), `evidence` says that the run was looked at as evidence.
    """

    landed: frozenset[int]
    others: bool
    until: LandedStep | None
    numbers: frozenset[int]
    reach: Targets | None
    evidence: bool
    unproved: tuple[int, ...] = ()


@dataclass(slots=True)
class Footing:
    """The graph (None: not built), the progress of runs by id, and the runs known to hold.

    The runs in `sound` stood on the graph as it is drawn when the last of the target's moves was
    `seen`.
    """

    graph: Graph | None = None
    progress: dict[str, Progress] = field(default_factory=dict)
    sound: set[str] = field(default_factory=set)
    seen: LandedStep | None = None

    def copy(self) -> "Footing":
        """One that may be changed; the graph is shared with the older value."""
        return Footing(self.graph, self.progress.copy(), self.sound.copy(), self.seen)


def foreseen_by(run: Run) -> tuple[object, ...]:
    """What of a run decides whether its base holds."""
    return run.kind, run.status, run.base_tip, run.base, run.entries, run.steps


_NOBODY: frozenset[int] = frozenset()
_COUNTED_ON = frozenset({EntryState.PENDING, EntryState.TESTING, EntryState.TESTS_PASSED})


def is_expected(entry: Entry) -> bool:
    """Whether those behind count on its landing: placed and not out (ENGINE.md 1)."""
    if entry.rank is None or entry.held_by:
        return False
    return entry.state in _COUNTED_ON or entry.kept


def standing_of(entry: Entry) -> tuple[object, ...]:
    """What of an entry those behind it depend on, beside its batch."""
    return entry.rank, is_expected(entry), entry.touches


class Places:
    """The index.

    `line` is (rank, pull request) in order, `waiting` (priority, seq, pull request) in order;
    the sets are numbers of pull requests that a clock or another's leaving may move: `idle` are
    placed ones that wait for a run, `delayed` those whose branch is built later, `verified` those
    that a passed run proves; `in_run` are the entries of each run by its id.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.line: list[tuple[int, int]] = []
        self.waiting: list[tuple[int, int, int]] = []
        self.not_ready: set[int] = set()
        self.failing: set[int] = set()
        self.held: set[int] = set()
        self.unready: set[int] = set()
        self.leaving: set[int] = set()
        self.idle: set[int] = set()
        self.delayed: set[int] = set()
        self.verified: set[int] = set()
        self.in_run: dict[str, frozenset[int]] = {}
        for entry in entries:
            if entry.rank is not None:
                self.line.append((entry.rank, entry.pr))
            elif entry.state is EntryState.PENDING:
                self.waiting.append((entry.priority, entry.seq or 0, entry.pr))
            self._note(entry)
        self.line.sort()
        self.waiting.sort()

    def add(self, entry: Entry) -> None:
        """Take in an entry that is not in the index."""
        if entry.rank is not None:
            insort(self.line, (entry.rank, entry.pr))
        elif entry.state is EntryState.PENDING:
            insort(self.waiting, (entry.priority, entry.seq or 0, entry.pr))
        self._note(entry)

    def remove(self, entry: Entry) -> None:
        """Forget an entry, in exactly the form in which it was added."""
        if entry.rank is not None:
            del self.line[bisect_left(self.line, (entry.rank, entry.pr))]
        elif entry.state is EntryState.PENDING:
            key = (entry.priority, entry.seq or 0, entry.pr)
            del self.waiting[bisect_left(self.waiting, key)]
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
        twin = Places(())
        twin.line = self.line.copy()
        twin.waiting = self.waiting.copy()
        for numbers, copied in zip(self._sets(), twin._sets(), strict=True):
            copied.update(numbers)
        twin.in_run = self.in_run.copy()
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
        if entry.build_after is not None:
            self.delayed.add(entry.pr)
        if entry.verified_by is not None:
            self.verified.add(entry.pr)
        if entry.run is not None:
            self.in_run[entry.run] = self.in_run.get(entry.run, _NOBODY) | {entry.pr}


class IndexedEntries(dict[int, Entry]):
    """Entries by number together with their index, as the engine hands them out.

    Equal to a plain mapping of the same entries; a value that was loaded or made by hand has
    such a one, and its first step builds the index.
    """

    __slots__ = ("footing", "places")

    def __init__(self, entries: Mapping[int, Entry], places: Places, footing: Footing) -> None:
        super().__init__(entries)
        self.places = places
        self.footing = footing


def indexed(entries: Mapping[int, Entry]) -> IndexedEntries:
    """These entries with an index of their own, to be changed together."""
    if isinstance(entries, IndexedEntries):
        return IndexedEntries(entries, entries.places.copy(), entries.footing.copy())
    return IndexedEntries(entries, Places(entries.values()), Footing())
