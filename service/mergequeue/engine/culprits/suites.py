"""Find the jobs of its check suite because of which, or after which, a check did not pass.

On GitHub Actions a suite is one run of a workflow. Facts only: which job needs which is not read.
"""

from collections.abc import Iterator

from service import check_reports
from service.check_reports import NOT_RUN
from service.mergequeue.engine.reported import JOBS_MAX, FailedBefore
from service.vocabulary import Check, CheckKind, CheckOutcome


def cause_of(skipped: Check, counting: tuple[Check, ...]) -> Check | None:
    """Return the first job of the suite with the outcome that a skipped check took over."""
    if skipped.raw not in NOT_RUN:
        return None
    same = (one for one in _beside(skipped, counting) if one.outcome is skipped.outcome)
    return min(same, key=check_reports.order, default=None)


def failed_before(
    failed: Check, counting: tuple[Check, ...], old: frozenset[str] = frozenset()
) -> FailedBefore | None:
    """Return the jobs of the suite that had failed when a failed check began; None without any.

    A job that collects the results of others, as many repositories require one, fails after them.
    `old` are the ids of reports of an earlier attempt.
    """
    began = failed.started_at
    if failed.outcome is not CheckOutcome.FAILED or failed.raw in NOT_RUN or began is None:
        return None
    found = [
        (one.completed_at, check_reports.order(one), one)
        for one in _beside(failed, counting)
        if one.outcome is CheckOutcome.FAILED and one.id not in {failed.id, *old}
        if one.completed_at is not None and one.completed_at <= began
    ]
    jobs = tuple((one.name, one.url) for *_, one in sorted(found, key=lambda each: each[:2]))
    return FailedBefore(jobs[:JOBS_MAX], len(jobs[JOBS_MAX:])) if jobs else None


def _beside(check: Check, counting: tuple[Check, ...]) -> Iterator[Check]:
    """Yield the check runs of its suite that ran; none beside a commit status."""
    suite = (CheckKind.SUITE_RUN, check.source_id, check.group)
    for one in counting if check.kind is CheckKind.SUITE_RUN else ():
        if (one.kind, one.source_id, one.group) == suite and one.raw not in NOT_RUN:
            yield one
