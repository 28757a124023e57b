"""Failed required statuses of a run that is not decided yet. Decides, changes nothing.

All that is shown says at once that a check failed and what the queue waits for: the run's status is
failed, and no time of landing is given. A newer attempt that runs or passes, and a failure that is
excused, make the run what it was.
"""

from dataclasses import dataclass
from datetime import timedelta

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Named, Run
from service.mergequeue.engine.states import RunStatus
from service.vocabulary import CheckOutcome, Explanation


@dataclass(frozen=True, slots=True)
class Failing:
    """Required statuses that failed, and how long the run waits at most before that counts.

    `for_results`: it waits for the test results of the failure, else for a newer attempt.
    """

    checks: tuple[Named, ...]
    wait: timedelta
    for_results: bool


def failing_of(run: Run) -> Failing | None:
    """Return what failed in a run under way (docs/design/testing.md 4); None: nothing did.

    A failure that is known to be quarantined is none.
    """
    if run.failed_at is None or run.status is not RunStatus.IN_PROGRESS:
        return None
    known = {} if run.evidence is None else run.evidence.explanations
    failed = tuple(
        one.named
        for one in verdict.standings_of(run)
        if one.outcome is CheckOutcome.FAILED
        and (one.is_revoked or known.get(one.required.name) is not Explanation.QUARANTINED)
    )
    if not failed:
        return None
    for_results = run.asked_evidence is not None
    return Failing(failed, verdict.EVIDENCE_WAIT if for_results else verdict.SETTLE, for_results)


def status_of(run: Run) -> RunStatus:
    """Return the status to show: a run has failed from its first failure on."""
    return RunStatus.FAILED if failing_of(run) is not None else run.status
