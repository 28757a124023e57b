"""Keep the records of failed runs, and answer what is believed of an entry (engine/belief.py)."""

from collections.abc import Collection, Sequence

from service.mergequeue.engine import blame, records, suspicion
from service.mergequeue.engine.belief import Belief
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.reasons import CONVICTED
from service.mergequeue.engine.records import Record, Suspect
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.suspicion import Fate, Suspicion


def belief_of(draft: Draft) -> Belief:
    """What the records say; kept until they change."""
    known = draft.entries.belief
    queue = draft.queue
    if known is None or known.records is not queue.records or known.rates is not queue.rates:
        known = draft.entries.belief = Belief(queue.records, queue.rates)
    return known


def failing(draft: Draft, entry: Entry) -> float:
    """The chance that the entry fails by itself, after everything seen of it."""
    return belief_of(draft).failing(entry.id, prior(draft, entry))


def prior(draft: Draft, entry: Entry) -> float:
    """The chance that the entry fails by itself, before any failure."""
    return belief_of(draft).prior(entry.p_fail, has_passed=entry.screened)


def is_convicted(draft: Draft, entry: Entry, more: int = 0) -> bool:
    """Whether its failures alone reject the entry, after so many more of them."""
    return belief_of(draft).is_convicted(
        entry.id, 0.0 if entry.screened else entry.p_fail, has_passed=entry.screened, more=more
    )


def suspicion_of(draft: Draft, entry: Entry, *, is_convicted: bool = False) -> Suspicion | None:
    """What is believed of the entry, with its evidence; None if it is no suspect."""
    believed = belief_of(draft)
    if not believed.is_suspect(entry.id):
        return None
    return suspicion.made_of(
        believed.charges_against(entry.id),
        failing(draft, entry),
        lambda one: _fate(draft, one),
        is_convicted=is_convicted,
    )


def _fate(draft: Draft, one: Suspect) -> Fate:
    if one.has_merged:
        return Fate.MERGED
    entry = draft.entries.get(one.pr)
    is_here = entry is not None and entry.id == one.entry
    has_passed = is_here and entry is not None and entry.state is EntryState.TESTS_PASSED
    if not one.chance or has_passed:
        return Fate.PASSED
    return Fate.UNDECIDED if is_here else Fate.LEFT


def any_failing(draft: Draft, group: Sequence[Entry]) -> float:
    """The chance that one of these fails by itself."""
    passes = 1.0
    for entry in group:
        passes *= 1.0 - failing(draft, entry)
    return 1.0 - passes


def note_failure(draft: Draft, newest: Record) -> None:
    """Keep the record of a failed run."""
    _put(draft, records.with_failure(draft.queue.records, newest))


def forget(draft: Draft, runs: Collection[str]) -> None:
    """Forget failures: the run passed after all, or something else than the entries failed."""
    _put(draft, records.without(draft.queue.records, runs))


def clear(draft: Draft, entries: Sequence[Entry]) -> None:
    """These passed with nobody ahead of them: what they are charged with, others did."""
    good = [entry.id for entry in entries]
    _put(draft, _live(draft, records.cleared(draft.queue.records, good)))


def review(draft: Draft) -> None:
    """Draw what follows for the records from those that have left."""
    kept, finals = draft.queue.records, draft.finished_entries.values()
    if not kept or draft.finished_entries.keys().isdisjoint(
        one.entry for record in kept for one in record.suspects
    ):
        return
    merged = [final.id for final in finals if final.state is EntryState.MERGED]
    culprits = [
        final.id
        for final in finals
        if final.state is EntryState.FAILED and final.reason in CONVICTED
    ]
    kept = blame.explained(records.merged(kept, merged), culprits)
    _put(draft, _live(draft, kept))


def _live(draft: Draft, kept: tuple[Record, ...]) -> tuple[Record, ...]:
    def is_there(one: Suspect) -> bool:
        entry = draft.entries.get(one.pr)
        return entry is not None and entry.id == one.entry

    return records.live(kept, is_there)


def _put(draft: Draft, kept: tuple[Record, ...]) -> None:
    if kept != draft.queue.records:
        draft.put_queue(replace(draft.queue, records=kept))
