"""Take back a failure that was foreseen and did not come (docs/design/early-failures.md 3).

The run goes on, and its entries have the places that they had: what runs without them restarts.
"""

from service.mergequeue.engine.culprits import bisecting, breaker
from service.mergequeue.engine.model import Bisection, Detail, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import leaving, ledger
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.states import EntryState, RunStatus


def take_back(draft: Draft, run: Run) -> None:
    """Let a failed run go on in which no required check fails any more.

    If others of its batch have been proved meanwhile, the rest is tested anew in its own places.
    """
    ledger.forget(draft, {run.id})
    breaker.forget(draft, run)
    own = draft.own(run)
    searched = draft.queue.bisections.get(own[0].bisection or "") if own else None
    if searched is not None and searched.lo:
        _begin_anew(draft, searched)
        return
    run = draft.finish(replace(run, is_foreseen=False), RunStatus.IN_PROGRESS, Finding())
    if not own:
        bisecting.reopen(draft, run)
        return
    if searched is not None:
        leaving.close(draft, searched, None, Reason.FAILURE_TAKEN_BACK)
    is_counted = searched is not None and len(own) > 1
    draft.doubted.add(run.id)
    draft.taken_back.update(entry.pr for entry in own)
    for entry in draft.own(run):
        failed_batches = entry.failed_batches - is_counted
        again = replace(entry, kept=False, batch=run.number, failed_batches=failed_batches)
        draft.move(again, EntryState.TESTING, Reason.FAILURE_TAKEN_BACK, Detail(run=run.id))


def _begin_anew(draft: Draft, searched: Bisection) -> None:
    undecided = leaving.close(draft, searched, None, Reason.FAILURE_TAKEN_BACK)
    detail = Detail(run=searched.run)
    for entry in undecided:
        draft.put(replace(entry, failed_batches=entry.failed_batches - 1))
    back = [leaving.Back(entry.pr, Reason.FAILURE_TAKEN_BACK, detail) for entry in undecided]
    draft.taken_back.update(entry.pr for entry in undecided)
    leaving.keep_places(draft, back)
