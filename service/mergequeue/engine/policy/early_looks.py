"""Test entries of the line alone at the same time, while the queue cannot foresee who fails.

A new queue has no history, so all of its entries have nearly the same chance of failing, and nobody
is worth a test apart first. See docs/design/testing.md 11. Three rules belong together:

- An entry enters the line at once, and an *early look* tests it alone in a slot that nothing else
  uses. If the look fails, the entry leaves the line before its run there has ended.
- After a restart, entries whose look has passed or runs form large groups: their looks find the
  culprit, so a large group costs no search.
- An entry does not start in the line while what is ahead of it will probably fail; its look does.
"""

from collections.abc import Iterator

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.policy import constants, durations, foresight, suspecting
from service.mergequeue.engine.state import bases, slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.line import URGENT
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus

_UNDECIDED = frozenset({EntryState.PENDING, EntryState.TESTING, EntryState.PENDING_FAILURE})


def may_begin(draft: Draft) -> bool:
    """Return whether early looks have slots: few entries are in the line or wait for it."""
    count = len(draft.places.line) + len(draft.places.waiting)
    most = constants.EARLY_ENTRIES_MAX * draft.queue.config.concurrency
    return foresight.is_lacking(draft) and count <= most


def risk_max(draft: Draft) -> float:
    """Return the chance of failing above which an entry is tested apart first."""
    return constants.EARLY_RISK_MAX if may_begin(draft) else constants.RISK_MAX


def entries_to_look_at(draft: Draft) -> list[Entry]:
    """Return the entries to test alone now: those of the line, then those that wait for it."""
    free = slots.unused(draft)
    if free < 1 or not may_begin(draft):
        return []
    looked_at = {run.entries[0].entry for run in draft.runs.of_kind(RunKind.EARLY_LOOK)}
    found = [one for one in _candidates(draft) if one.id not in looked_at and _may_fail(one)]
    return found[:free]


def is_wanted(draft: Draft, entry: Entry) -> bool:
    """Return whether the result of an early look at the entry still says something new."""
    run = draft.runs.get(entry.run or "")
    is_apart = run is not None and run.kind is not RunKind.MAIN
    is_open = entry.state in _UNDECIDED and not entry.screened and not is_apart
    return is_open and foresight.is_lacking(draft)


def is_known_soon(draft: Draft, entry: Entry) -> bool:
    """Return whether a test alone has passed, or one is under way."""
    return entry.screened or is_looked_at(draft, entry)


def is_looked_at(draft: Draft, entry: Entry) -> bool:
    """Return whether a test of the entry alone is under way beside the line."""
    return any(
        run.entries[0].entry == entry.id and run.status is RunStatus.IN_PROGRESS
        for run in draft.runs.of_kind(RunKind.EARLY_LOOK)
    )


def is_as_good_as_before(draft: Draft, entry: Entry) -> bool:
    """Return whether a suspect need not be tested alone again: it has passed so, with others since.

    The look at another member of its failed group says more.
    """
    is_good = suspecting.failing(draft, entry) <= constants.CLEARED_CHANCE_MAX
    return entry.screened and is_good and foresight.is_lacking(draft)


def chance_of_line(draft: Draft) -> float:
    """Return the chance that everything in the line passes."""
    placed = (draft.entries[pr] for pr in bases.graph(draft).of)
    undecided = [one for one in placed if one.state is not EntryState.TESTS_PASSED]
    return 1.0 - suspecting.any_failing(draft, undecided)


class Limit:
    """Decides during one pass over the waiting entries which of them wait for the line to improve.

    It reads the line when it is first asked, and anew when something starts.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._chance: float | None = None

    def holds_back(self, entry: Entry) -> bool:
        """Return whether what is ahead of a waiting entry will probably fail.

        One that has passed alone does not wait, nor does one that interrupts.
        """
        if entry.rank is not None or entry.screened or entry.priority == URGENT:
            return False
        if not may_begin(self._draft):
            return False
        if self._chance is None:
            self._chance = chance_of_line(self._draft)
        return self._chance < constants.LINE_CHANCE_MIN

    def note_start(self) -> None:
        """Take into account that a group has started."""
        self._chance = None


def _candidates(draft: Draft) -> Iterator[Entry]:
    """The entries of which a test alone says more than their own run."""
    for _, pr in draft.places.line:
        entry = draft.entries[pr]
        run = draft.runs.get(entry.run or "")
        if run is not None and entry.state is EntryState.TESTING and _is_early(draft, run):
            yield entry
    for _, _, pr in draft.places.waiting:
        entry = draft.entries[pr]
        is_suspect = suspecting.belief_of(draft).is_suspect(entry.id)
        if not is_suspect and is_startable(draft, entry):
            yield entry


def _may_fail(entry: Entry) -> bool:
    """Return whether a test alone is worth it, and possible.

    One with others below it in its stack contains them, and a risky one is tested apart first.
    """
    is_worth_it = constants.EARLY_RISK_MIN <= entry.p_fail <= constants.EARLY_RISK_MAX
    is_able = not entry.facts.below and entry.priority != URGENT
    return is_worth_it and is_able and not entry.screened


def _is_early(draft: Draft, run: Run) -> bool:
    """Return whether a run in the line depends on undecided entries and has begun lately."""
    if run.kind is not RunKind.MAIN or run.status is not RunStatus.IN_PROGRESS:
        return False
    left = durations.minutes_left(draft, run)
    if left < constants.EARLY_LEFT_MIN * durations.expected_minutes(draft, run):
        return False
    base = map(draft.entry_of, run.base)
    return any(one is not None and one.state is not EntryState.TESTS_PASSED for one in base)
