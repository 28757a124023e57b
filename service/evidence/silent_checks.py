"""Failed checks that never have test results, so that no queue waits for them.

See docs/design/evidence.md 1.
"""

from collections import Counter

from service.database.database import Tx
from service.evidence.store import queue_facts
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.store import runs as stored_runs
from service.vocabulary import CheckOutcome

PAST_MAX = 20
"""Failed runs that are considered, the newest of a queue."""

IN_VAIN_MIN = 2
"""A check is silent after this many failures whose results were awaited in vain."""


def silent_of(session: Tx, queue_id: int) -> frozenset[str]:
    """Return the checks that had no results when they failed, in any of the newest failed runs.

    Only a run in which one check failed shows for which check its queue waited.
    """
    in_vain: Counter[str] = Counter()
    reported: set[str] = set()
    ids = queue_facts.runs_with_evidence_asked(session, queue_id, PAST_MAX)
    for run in stored_runs.runs_of(session, queue_id, ids):
        explained = frozenset(run.evidence.explanations) if run.evidence is not None else set()
        silent = frozenset(run.evidence.silent) if run.evidence is not None else set()
        reported |= explained - silent
        names = _failed_names(run)
        in_vain.update(names & silent)
        if len(names) == 1 and run.evidence is None and _was_awaited(run):
            in_vain.update(names)
    return frozenset(
        name for name, count in in_vain.items() if count >= IN_VAIN_MIN and name not in reported
    )


def _failed_names(run: Run) -> frozenset[str]:
    return frozenset(
        one.required.name
        for one in verdict.standings_of(run)
        if one.outcome is CheckOutcome.FAILED and not one.is_revoked
    )


def _was_awaited(run: Run) -> bool:
    """Return whether the run was judged only after the whole wait."""
    asked, finished = run.asked_evidence, run.finished_at
    return asked is not None and finished is not None and finished - asked >= verdict.EVIDENCE_WAIT
