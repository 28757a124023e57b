"""Keep the records of failed runs, from which follows what is believed of an entry."""

from collections.abc import Sequence, Set

from service.mergequeue.engine import blame, records
from service.mergequeue.engine.model import Entry, Failure
from service.mergequeue.engine.reasons import CONVICTED
from service.mergequeue.engine.records import Record, Suspect
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState


def note_failure(draft: Draft, newest: Record) -> None:
    """Keep the record of a failed run."""
    _put(draft, records.with_failure(draft.queue.records, newest))


def forget(draft: Draft, runs: Set[str]) -> None:
    """Forget failures: the run passed after all, or something else than the entries failed."""
    _put(draft, records.without(draft.queue.records, runs))


def clear(draft: Draft, entries: Sequence[Entry]) -> None:
    """These passed with nobody ahead of them: what they are charged with, others did."""
    good = [entry.id for entry in entries]
    _put(draft, _live(draft, records.cleared(draft.queue.records, good)))


def review(draft: Draft) -> None:
    """Draw what follows for the records from those that have left."""
    _join_failures(draft)
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


def _join_failures(draft: Draft) -> None:
    """Of failures alike upon an entry that left without landing, the breaker keeps the newest.

    The entry may have caused them all, and nobody can ask it any more.
    """
    finals = draft.finished_entries.values()
    gone = {final.pr for final in finals if final.state is not EntryState.MERGED}
    if not gone:
        return
    memory = draft.queue.breaker
    seen: set[tuple[int, str]] = set()
    kept: list[Failure] = []
    for one in reversed(memory.failures):
        causes = {(pr, one.fingerprint) for pr in gone.intersection(one.base)}
        if seen.isdisjoint(causes):
            kept.insert(0, one)
        seen |= causes
    if len(kept) < len(memory.failures):
        draft.put_queue(replace(draft.queue, breaker=replace(memory, failures=tuple(kept))))


def _live(draft: Draft, kept: tuple[Record, ...]) -> tuple[Record, ...]:
    def is_there(one: Suspect) -> bool:
        entry = draft.entries.get(one.pr)
        return entry is not None and entry.id == one.entry

    return records.live(kept, is_there)


def _put(draft: Draft, kept: tuple[Record, ...]) -> None:
    if kept != draft.queue.records:
        draft.put_queue(replace(draft.queue, records=kept))


def are_independent(draft: Draft, first: Failure, second: Failure) -> bool:
    """Return whether nothing that is undecided can have caused both."""
    mine, others = set(first.entries), set(second.entries)
    if mine & others or mine & set(second.base) or others & set(first.base):
        return False
    shared = (draft.entries.get(pr) for pr in set(first.base) & set(second.base))
    return all(one is None or one.state is EntryState.TESTS_PASSED for one in shared)
