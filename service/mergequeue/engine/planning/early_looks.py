"""Draw what follows from early looks (docs/design/testing.md 11).

An early look tests an entry alone while the line tests it as well, or while it waits for the line.
The policy says of whom, and for how long that is wanted.
"""

from service.mergequeue.engine.model import Detail, Entry, Run
from service.mergequeue.engine.outputs import EntryPlaced, PlacedWhy
from service.mergequeue.engine.planning import launching, screening
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.policy.questions import Confirms
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import leaving, ledger
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus


def review(draft: Draft) -> None:
    """Let looks count that have passed, and end those that say nothing new any more.

    A suspect beside the line is not tested again: its look becomes its test apart.
    """
    wanted = _confirms(draft).is_early_look_wanted
    for run in draft.runs.of_kind(RunKind.EARLY_LOOK):
        entry = draft.entry_of(run.entries[0])
        if entry is None or not wanted(entry):
            draft.retire(run, Reason.AHEAD_CHANGED)
        elif run.status is RunStatus.SUCCEEDED:
            _passed(draft, entry, run)
        elif _is_suspect_beside(draft, entry):
            if run.status is RunStatus.IN_PROGRESS:
                _become_own(draft, entry, run)
            else:
                draft.retire(run, Reason.AHEAD_CHANGED)


def take_over(draft: Draft, look: Run) -> Run:
    """Make a look that has failed the entry's own test apart, before the failure is judged.

    The entry leaves the line, and the others of its group are tested again without it. Return the
    run as it is now.
    """
    entry = draft.entry_of(look.entries[0])
    if entry is None or not _confirms(draft).is_early_look_wanted(entry):
        return look
    run = draft.runs.get(entry.run or "")
    if run is not None:
        left = Detail(run=look.id, prs=(entry.pr,))
        others = [one.pr for one in draft.own(run) if one.pr != entry.pr]
        backs = [leaving.Back(pr, Reason.BATCH_MEMBER_LEFT, left) for pr in others]
        mine = leaving.Back(entry.pr, Reason.SCREEN_FAILED, Detail(run=look.id))
        leaving.send_back(draft, [mine, *backs])
    known = draft.entries[entry.pr]
    if known.rank is not None:
        draft.put(replace(known, rank=None))
        draft.record(EntryPlaced(known.pr, known.id, None, PlacedWhy.SCREENED))
    _become_own(draft, draft.entries[entry.pr], look)
    if run is not None and run.kind is RunKind.MAIN:
        draft.unwitnessed.add(look.id)
    return draft.runs[look.id]


def _passed(draft: Draft, entry: Entry, look: Run) -> None:
    """The entry is counted on from now on; if it waits, it may land as it is."""
    if _is_beside(entry) and is_startable(draft, entry):
        _become_own(draft, entry, look)
        screening.passed(draft, draft.runs[look.id])
        return
    ledger.clear(draft, (entry,))
    draft.put(replace(draft.entries[entry.pr], screened=True))
    run = draft.runs.get(entry.run or "")
    has_failed = entry.state is EntryState.PENDING_FAILURE
    if run is not None and has_failed and len(draft.own(run)) == 1:
        leaving.restart(draft, run, Reason.SCREEN_PASSED, Detail(run=look.id))
    draft.retire(look, Reason.RUN_PASSED)


def _become_own(draft: Draft, entry: Entry, look: Run) -> None:
    run = replace(look, kind=RunKind.SCREEN)
    draft.put_run(run)
    launching.put_into(draft, entry, run)


def _is_suspect_beside(draft: Draft, entry: Entry) -> bool:
    suspects = policies.policy_of(draft.queue.config).suspects(draft)
    return _is_beside(entry) and is_startable(draft, entry) and suspects.is_suspect(entry)


def _is_beside(entry: Entry) -> bool:
    return entry.state is EntryState.PENDING and entry.rank is None


def _confirms(draft: Draft) -> Confirms:
    return policies.policy_of(draft.queue.config).confirms(draft)
