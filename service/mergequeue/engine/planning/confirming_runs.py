"""Let one run on that contains a suspect, to know sooner whether the suspect fails again.

See docs/design/testing.md 11. The policy chooses which of the runs that restart without a suspect
goes on in a spare slot, as a *witness*. If it fails too, that may be enough to
reject the suspect by its own failed run, which is kept until then; if it passes, the suspect only
flaked. Meanwhile the suspect is tested alone, but that test begins anew, and the witness has begun
long ago.
"""

from collections.abc import Iterable

from service.mergequeue.engine.culprits import breaker, failed_tests, optimism, verdict
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.planning import screening
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus

_WAITS = frozenset({EntryState.PENDING, EntryState.TESTING})


def keep(draft: Draft, restarting: Iterable[Run]) -> None:
    """Let one of the runs that are about to restart go on for each suspect that has just left."""
    confirms = policies.policy_of(draft.queue.config).confirms(draft)
    for run, failed in confirms.witnesses(restarting):
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
            is_enough = screening.is_enough(draft, suspect, failed, at_once=True)
            if bases.is_sure(draft, failed) and is_enough:
                screening.convict_by(draft, suspect, failed)
            draft.retire(run, Reason.CHECK_FAILED)


def _is_wanted(draft: Draft, run: Run, failed: Run, suspect: Entry) -> bool:
    """Return whether the result of a witness can still tell something of its suspect.

    Not while CI fails everything, nor if another member of the run has left without landing.
    """
    policy, made = policies.policy_of(draft.queue.config), bases.progress(draft, run)
    if not policy.confirms(draft).has_witnesses or breaker.is_open(draft.queue) or made is None:
        return False
    if run.status is RunStatus.CANCELLED or failed.status is not RunStatus.FAILED:
        return False
    if any(draft.entry_of(one) is None and one.pr not in made.landed for one in run.members):
        return False
    is_apart = suspect.rank is None and suspect.state in _WAITS
    return is_apart and policy.suspects(draft).is_suspect(suspect)
