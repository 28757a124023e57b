"""How long a queue waits for the test results of failed checks, learned from its failed runs.

See docs/design/evidence.md 1.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import timedelta

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

TIMED_MIN = 3
"""So many failures with results show how long results of a check need."""

MARGIN = timedelta(seconds=15)
"""Results are awaited so much longer than they have ever needed."""


def waits_of(session: Tx, queue_id: int) -> Mapping[str, timedelta]:
    """Return for each check how long its results are awaited, of those about which that is known.

    A check that never has results is not awaited. For the others it is the longest time that
    results needed after the queue asked, with a margin.
    """
    ids = queue_facts.runs_with_evidence_asked(session, queue_id, PAST_MAX)
    past = stored_runs.runs_of(session, queue_id, ids)
    waits = _learned(session, past)
    return waits | dict.fromkeys(_silent_in(past), timedelta(0))


def _learned(session: Tx, past: tuple[Run, ...]) -> dict[str, timedelta]:
    """Return the waits of checks by the times at which the last results of runs arrived.

    Results are those of any job of the run: they may belong to any of its failed checks.
    """
    arrived = queue_facts.results_arrived(session, [run.id for run in past])
    needed: defaultdict[str, list[timedelta]] = defaultdict(list)
    for run in past:
        if run.id in arrived and run.asked_evidence is not None:
            for name in _failed_names(run):
                needed[name].append(arrived[run.id] - run.asked_evidence)
    return {
        name: min(max(*times, timedelta(0)) + MARGIN, verdict.EVIDENCE_WAIT)
        for name, times in needed.items()
        if len(times) >= TIMED_MIN
    }


def _silent_in(past: tuple[Run, ...]) -> frozenset[str]:
    """Return the checks that had no results when they failed, in any of these runs.

    Only a run in which one check failed shows for which check its queue waited.
    """
    in_vain: Counter[str] = Counter()
    reported: set[str] = set()
    for run in past:
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
