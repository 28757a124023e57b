"""The priority of an entry: by a person, else by the rules of its queue, else the default.

See docs/design/rules.md 3.
"""

from service.mergequeue.engine.model import DEFAULT_PRIORITY, Detail, Entry
from service.mergequeue.engine.outputs import EntryUpdated
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.state import leaving, line, shares
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState


def by_rules(facts: Facts) -> int:
    """Return the priority where no person gave one."""
    return DEFAULT_PRIORITY if facts.ruled.priority is None else facts.ruled.priority


def follow_rules(draft: Draft, entry: Entry) -> None:
    """Give an entry the priority that rules give it now, unless a person gave it one."""
    priority = by_rules(entry.facts)
    if not entry.is_priority_given and priority != entry.priority:
        draft.put(replace(entry, priority=priority))
        note(draft, entry)


def note(draft: Draft, before: Entry) -> None:
    """Record new options of an entry; one that has become urgent goes first."""
    entry = draft.entries[before.pr]
    if (entry.priority, entry.no_batch) == (before.priority, before.no_batch):
        return
    draft.record(EntryUpdated(entry.pr, entry.id, entry.priority, entry.no_batch))
    if entry.priority != before.priority:
        _give_turn(draft, entry)
        entry = draft.entries[entry.pr]
    raised = entry.priority == line.URGENT and before.priority != line.URGENT
    placed = entry.rank is not None and not entry.held_by
    if raised and placed and entry.state in (EntryState.PENDING, EntryState.TESTING):
        _leave_batch(draft, entry)
        line.interrupt(draft, draft.entries[entry.pr])


def _give_turn(draft: Draft, entry: Entry) -> None:
    """Give an entry that waits its turn among those of its new priority."""
    draft.put(replace(entry, turn=0))
    if entry.rank is None and entry.state is EntryState.PENDING:
        shares.give_turn(draft, draft.entries[entry.pr])


def _leave_batch(draft: Draft, entry: Entry) -> None:
    """An urgent entry is tested alone, so a batch in progress restarts without it."""
    run = draft.runs.get(entry.run or "")
    if run is not None and len(run.entries) > 1:
        leaving.restart(draft, run, Reason.INTERRUPTED_BY_URGENT, Detail(prs=(entry.pr,)))
