"""Let one run on that contains a suspect, to know sooner whether the suspect fails again.

Only with `batchSizing: ADAPTIVE`, and where a follower that passes clears a failed group. When one
that failed leaves the line, everything that runs on top of it restarts without it. Of these runs
the one that ends first goes on in a spare slot: a *witness*. If it fails too, that may be enough to
reject the suspect by its own failed run, which is kept until then; if it passes, the suspect only
flaked. Meanwhile the suspect is tested alone, but that test begins anew, and the witness has begun
long ago.
"""

from collections.abc import Iterable

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.culprits import breaker, failed_tests, optimism, verdict
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.planning import doubting, screening
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, ledger
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus

_WAITS = frozenset({EntryState.PENDING, EntryState.TESTING})


def keep(draft: Draft, restarting: Iterable[Run]) -> None:
    """Let one of the runs that are about to restart go on for each suspect that has just left.

    A run that contains two suspects is not taken, because its result would not say which one fails.
    """
    able = [run for run in restarting if _may_go_on(run)]
    for run in sorted(able, key=lambda one: (doubting.minutes_left(draft, one), one.number)):
        if not draft.unwitnessed:
            return
        suspects = _suspects(draft, run)
        failed = _unwitnessed(draft, suspects[0]) if len(suspects) == 1 else None
        if failed is not None:
            draft.unwitnessed.discard(failed.id)
            draft.put_run(replace(run, kind=RunKind.WITNESS, witness_of=failed.id))


def review(draft: Draft) -> None:
    """Draw what follows from witnesses that have ended, and end those that tell nothing more."""
    for run_id in sorted(draft.unwitnessed):
        draft.unwitnessed.discard(run_id)
        draft.retire(draft.runs[run_id], Reason.SCREEN_FAILED)
    for run in draft.runs.of_kind(RunKind.WITNESS):
        failed = draft.runs[run.witness_of or ""]
        suspect = draft.entry_of(failed.entries[0])
        if suspect is None or not _is_wanted(draft, run, failed, suspect):
            draft.retire(run, Reason.AHEAD_CHANGED)
        elif run.status is RunStatus.SUCCEEDED:
            if optimism.proves(run, (suspect,)):
                screening.clear(draft, suspect, run)
            draft.retire(run, Reason.RUN_PASSED)
        elif run.status is RunStatus.FAILED:
            failed_tests.note_failure(draft, run, verdict.failed_of(run))
            if bases.is_sure(draft, failed) and screening.is_rejected(draft, suspect, at_once=True):
                screening.convict_by(draft, suspect, failed)
            draft.retire(run, Reason.CHECK_FAILED)


def _may_go_on(run: Run) -> bool:
    is_tested = run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.TESTING
    return run.kind is RunKind.MAIN and is_tested


def _suspects(draft: Draft, run: Run) -> list[Entry]:
    """The suspects in the base of a run that have left the line."""
    believed = ledger.belief_of(draft)
    entries = map(draft.entry_of, run.base)
    return [
        one
        for one in entries
        if one is not None and one.rank is None and believed.is_suspect(one.id)
    ]


def _unwitnessed(draft: Draft, suspect: Entry) -> Run | None:
    """The failed run of a suspect that has left the line in this step."""
    runs = (draft.runs[run_id] for run_id in sorted(draft.unwitnessed))
    return next((run for run in runs if run.entries[0].entry == suspect.id), None)


def _is_wanted(draft: Draft, run: Run, failed: Run, suspect: Entry) -> bool:
    """Whether the result of a witness can still tell something of its suspect.

    Not while CI fails everything, nor if another member of the run has left without landing.
    """
    config, made = draft.queue.config, bases.progress(draft, run)
    is_on = config.batch_sizing is BatchSizing.ADAPTIVE and config.can_optimistically_merge
    if not is_on or breaker.is_open(draft.queue) or made is None:
        return False
    if run.status is RunStatus.CANCELLED or failed.status is not RunStatus.FAILED:
        return False
    if any(draft.entry_of(one) is None and one.pr not in made.landed for one in run.members):
        return False
    is_apart = suspect.rank is None and suspect.state in _WAITS
    return is_apart and ledger.belief_of(draft).is_suspect(suspect.id)
