"""Let one run on that contains a suspect, to know sooner whether the suspect fails again.

Only with `batchSizing: ADAPTIVE`, and where a follower that passes clears a failed group. When one
that failed leaves the line, everything that runs on top of it restarts without it. Of these runs
the one that ends first goes on in a spare slot: a *witness*. If it fails too, that is evidence
against the suspect; if it passes, the suspect only flaked. Meanwhile the suspect is tested alone,
but that test begins anew, and the witness has begun long ago.

F 10 x 8, seeds 911 to 918: rejections have a P50 of 1.58 without witnesses, and 1.51 with them; if
the failed tests are known, 1.50 and 1.37.
"""

from collections.abc import Iterable

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.culprits import failed_tests, verdict
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.planning import doubting, screening
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import ledger
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus


def keep(draft: Draft, restarting: Iterable[Run]) -> None:
    """Of the runs that are about to restart, let one run on for each suspect that has left.

    The run must contain no other suspect, so that its result tells of this one.
    """
    config = draft.queue.config
    if config.batch_sizing is not BatchSizing.ADAPTIVE or not config.can_optimistically_merge:
        return
    known = {entry.pr for run in draft.runs.of_kind(RunKind.WITNESS) for entry in _of(draft, run)}
    able = [run for run in restarting if _may_go_on(run)]
    for run in sorted(able, key=lambda one: (doubting.minutes_left(draft, one), one.number)):
        suspects = _of(draft, run)
        if len(suspects) == 1 and suspects[0].pr not in known:
            known.add(suspects[0].pr)
            draft.put_run(replace(run, kind=RunKind.WITNESS))


def review(draft: Draft) -> None:
    """Draw what follows from witnesses that have ended, and end those that tell nothing more."""
    for run in draft.runs.of_kind(RunKind.WITNESS):
        suspects = _of(draft, run)
        if not suspects or run.status is RunStatus.CANCELLED:
            draft.retire(run, Reason.AHEAD_CHANGED)
        elif run.status is RunStatus.SUCCEEDED:
            draft.retire(run, Reason.RUN_PASSED)
            for entry in suspects:
                screening.clear(draft, entry, run)
        elif run.status is RunStatus.FAILED:
            checks = verdict.failed_of(run)
            failed_tests.note_failure(draft, run, checks)
            for entry in suspects:
                if _is_proof(draft, run, entry) and screening.is_rejected(draft, entry):
                    screening.convict_by(draft, entry, run, checks)
            if run.id in draft.runs:
                draft.retire(run, Reason.CHECK_FAILED)


def _may_go_on(run: Run) -> bool:
    is_tested = run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.TESTING
    return run.kind is RunKind.MAIN and is_tested


def _of(draft: Draft, run: Run) -> list[Entry]:
    """The suspects in the base of a run that have left the line, and are not cleared yet."""
    believed = ledger.belief_of(draft)
    found = (draft.entry_of(member) for member in run.base)
    return [
        entry
        for entry in found
        if entry is not None
        and entry.rank is None
        and entry.state is not EntryState.NOT_READY
        and believed.is_suspect(entry.id)
    ]


def _is_proof(draft: Draft, run: Run, suspect: Entry) -> bool:
    """Whether nobody else ahead in the failed run is undecided."""
    others = (draft.entry_of(member) for member in run.base if member.pr != suspect.pr)
    return all(one is None or one.state is EntryState.TESTS_PASSED for one in others)
