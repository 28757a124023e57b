"""Compare what a queue in shadow decided with what others did (docs/design/shadow.md 3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from service.database.database import Tx
from service.mergequeue.engine import checked
from service.mergequeue.engine.explaining.estimates import percentile
from service.mergequeue.engine.model import ShadowTime
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import turn
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import runs, shadow
from service.mergequeue.store.shadow import RunCounts, Submission
from service.runtime import Runtime
from service.vocabulary import QueueRef, Sha

SUBMISSIONS_MAX = 5_000
"""Newest submissions that are compared: a week of a busy queue."""

ROWS_MAX = 200
"""Rows of one report; its sums count all submissions."""

FEW = 20
"""Fewer compared pull requests than this say little."""

MEDIAN, HIGH = 0.5, 0.95
_NOT_COMPARED = frozenset(
    {
        Reason.HEAD_CHANGED,
        Reason.BASE_CHANGED,
        Reason.CONVERTED_TO_DRAFT,
        Reason.MERGED_INTO_OTHER_BRANCH,
        Reason.MERGED_BY_HAND,
    }
)
"""Ends after which others could not merge what was tested.

Others may have merged another head: that of a submission is merged only if its merge was seen.
"""


class Verdict(StrEnum):
    """The decisions of Headgate: the first one about a head counts."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Compared:
    """One pull request at one head: our verdict, and what others did.

    `merged_at` is the provider's time. `is_red`: a required check failed on the commit of the
    merge; None: not all of them are known. `failed_checks` and `failed_tests` are those of our
    verdict. `is_compared`: both sides have decided.
    """

    number: int
    entry: str
    head: Sha
    submitted_at: datetime
    verdict: Verdict
    decided_at: datetime | None
    reason: Reason
    is_merged: bool
    is_compared: bool
    merged_at: datetime | None = None
    sha: Sha | None = None
    is_red: bool | None = None
    failed_checks: tuple[str, ...] = ()
    failed_tests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds that half of the pull requests took at most, and 95 % of them."""

    p50_s: float
    p95_s: float


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """The report of a queue's last time in shadow; `until` None: it is in shadow.

    `since` None: it has never been, and there is nothing to count.
    `merged_undecided`: others merged them before Headgate had decided. `to_verdict`, `to_merge` and
    `saved_p50_s` are of pull requests that passed here and were merged by others, so they leave
    those out; None without any. `rows` are the newest first, at most ROWS_MAX.
    """

    since: datetime | None
    until: datetime | None
    submitted: int
    passed: int
    failed: int
    merged: int
    merged_undecided: int
    compared: int
    same: int
    passed_not_merged: int
    failed_but_merged: int
    to_verdict: Spread | None
    to_merge: Spread | None
    saved_p50_s: float | None
    runs: int
    flaky_runs: int
    rows: tuple[Compared, ...]

    @property
    def runs_per_merge(self) -> float | None:
        """Finished test runs for each merge by others, None without a merge."""
        return self.runs / self.merged if self.merged else None

    @property
    def is_small(self) -> bool:
        """Return whether too few pull requests were compared to say much."""
        return self.compared < FEW


async def load_report(runtime: Runtime, queue: QueueRef) -> ShadowReport:
    """Return the report of the queue's last time in shadow."""
    time = (await turn.value(runtime, queue.id)).shadow_time
    if time is None:
        return _summed(None, (), RunCounts(0, 0), ())
    return await runtime.store.read(_load, runtime, queue, time)


def _load(session: Tx, runtime: Runtime, queue: QueueRef, time: ShadowTime) -> ShadowReport:
    until = time.until or runtime.clock.now()
    known = shadow.submissions(session, queue.id, SUBMISSIONS_MAX)
    compared = [_compared(one) for one in shadow.counted(known, time.since, until)]
    counts = shadow.run_counts(session, queue.id, time.since, until)
    rows = [_with_failures(session, runtime, queue, one) for one in compared[:ROWS_MAX]]
    return _summed(time, compared, counts, tuple(rows))


def _compared(one: Submission) -> Compared:
    is_merged = one.is_merge_seen
    verdict, decided_at = Verdict.UNDECIDED, None
    if one.would_land_at is not None:
        verdict, decided_at = Verdict.PASSED, one.would_land_at
    elif one.state is EntryState.FAILED:
        verdict, decided_at = Verdict.FAILED, one.state_since
    has_ended = is_merged or verdict is Verdict.FAILED or not one.is_live
    is_theirs = is_merged or one.reason not in _NOT_COMPARED
    return Compared(
        number=one.pr,
        entry=one.entry,
        head=one.head,
        submitted_at=one.submitted_at,
        verdict=verdict,
        decided_at=decided_at,
        reason=one.reason,
        is_merged=is_merged,
        is_compared=verdict is not Verdict.UNDECIDED and has_ended and is_theirs,
        merged_at=one.merged_at,
        sha=one.sha,
        is_red=one.is_red,
    )


def _with_failures(session: Tx, runtime: Runtime, queue: QueueRef, row: Compared) -> Compared:
    """Return the row with what failed, where the verdict is a failure."""
    entry = runs.entry(session, queue.id, row.entry) if row.verdict is Verdict.FAILED else None
    if entry is None:
        return row
    run = runs.run(session, queue.id, checked.judging_run_of(entry) or "")
    tests: tuple[str, ...] = ()
    if run is not None:
        failed = runtime.links.of(RunFailures).listed_in(session, queue, run)
        tests = tuple(one.name for one in failed if not one.excused)
    return replace(
        row, failed_checks=tuple(one.name for one in entry.detail.checks), failed_tests=tests
    )


def _summed(
    time: ShadowTime | None,
    compared: Sequence[Compared],
    counts: RunCounts,
    rows: tuple[Compared, ...],
) -> ShadowReport:
    both = [one for one in compared if one.is_compared]
    passed = [one for one in both if one.verdict is Verdict.PASSED]
    failed = [one for one in both if one.verdict is Verdict.FAILED]
    passed_not_merged = sum(not one.is_merged for one in passed)
    failed_but_merged = sum(one.is_merged for one in failed)
    times = [
        ((one.decided_at - one.submitted_at), (one.merged_at - one.submitted_at))
        for one in passed
        if one.decided_at is not None and one.merged_at is not None
    ]
    ours = sorted(mine.total_seconds() for mine, _ in times)
    theirs = sorted(other.total_seconds() for _, other in times)
    saved = sorted((other - mine).total_seconds() for mine, other in times)
    return ShadowReport(
        since=None if time is None else time.since,
        until=None if time is None else time.until,
        submitted=len(compared),
        passed=sum(one.verdict is Verdict.PASSED for one in compared),
        failed=sum(one.verdict is Verdict.FAILED for one in compared),
        merged=sum(one.is_merged for one in compared),
        merged_undecided=sum(
            one.is_merged and one.verdict is Verdict.UNDECIDED for one in compared
        ),
        compared=len(both),
        same=len(both) - passed_not_merged - failed_but_merged,
        passed_not_merged=passed_not_merged,
        failed_but_merged=failed_but_merged,
        to_verdict=_spread(ours),
        to_merge=_spread(theirs),
        saved_p50_s=percentile(saved, MEDIAN) if saved else None,
        runs=counts.runs,
        flaky_runs=counts.flaky,
        rows=rows,
    )


def _spread(seconds: Sequence[float]) -> Spread | None:
    if not seconds:
        return None
    return Spread(percentile(seconds, MEDIAN), percentile(seconds, HIGH))
