"""Read from the provider what CI reports of test runs."""

from collections import defaultdict
from collections.abc import Sequence

from service import check_reports
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import ChecksReported, Input
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind
from service.provider.values import Checks
from service.runtime import Runtime
from service.vocabulary import Check, CheckKind, CheckOutcome, QueueRef, Sha

_FINE = frozenset({CheckOutcome.PASSED, CheckOutcome.SKIPPED})


async def checks_of(runtime: Runtime, queue: QueueRef, run: Run) -> ChecksReported:
    """Return the whole present set of reports on a built run's commit, read afresh."""
    if run.sha is None:
        raise ValueError(f"run {run.id} has no commit yet")
    provider = runtime.providers[queue.repo.host]
    checks = await provider.checks(
        queue.repo, run.sha, skipped_pass=run.config.skipped_statuses_pass
    )
    own = await _own(runtime, queue, [run], checks)
    return ChecksReported(run.id, run.sha, own, checks.complete)


async def checks_of_many(runtime: Runtime, queue: QueueRef, due: Sequence[Run]) -> list[Input]:
    """Return what is reported of several runs, read at once. Raises the provider's errors."""
    by_setting: defaultdict[bool, dict[Sha, list[Run]]] = defaultdict(dict)
    for run in due:
        if run.sha is not None:
            by_setting[run.config.skipped_statuses_pass].setdefault(run.sha, []).append(run)
    provider = runtime.providers[queue.repo.host]
    inputs: list[Input] = []
    for skipped_pass, runs_of in by_setting.items():
        read = await provider.checks_of_many(queue.repo, list(runs_of), skipped_pass=skipped_pass)
        for sha, runs in runs_of.items():
            own = await _own(runtime, queue, runs, read[sha])
            inputs += [ChecksReported(run.id, sha, own, read[sha].complete) for run in runs]
    return inputs


async def _own(
    runtime: Runtime, queue: QueueRef, runs: Sequence[Run], checks: Checks
) -> tuple[Check, ...]:
    """Return the reports on the commit of a test branch without those that CI made of another head.

    Anybody may open a pull request from a fork whose head is this commit. CI then reports on the
    commit for that pull request too, after testing a merge with another base. The suites are read
    only if such a report could fail, delay or pass a run.
    """
    would_pass = any(_would_pass(run, checks.items) for run in runs)
    if not would_pass and not _may_be_foreign(checks.items):
        return checks.items
    return await without_foreign(runtime, queue, checks)


async def without_foreign(runtime: Runtime, queue: QueueRef, checks: Checks) -> tuple[Check, ...]:
    """Return the reports on a commit of the queue without those that CI made for others."""
    provider = runtime.providers[queue.repo.host]
    foreign = await provider.foreign_suites(queue.repo, checks.sha, queue.branch)
    return tuple(one for one in checks.items if one.group not in foreign)


def _would_pass(run: Run, reports: tuple[Check, ...]) -> bool:
    """Return whether all required checks have ended well, one of them as a check run."""
    counting = check_reports.counting(reports)
    found = [verdict.standing(one, counting) for one in run.required]
    runs = [one for one in found if one.check and one.check.kind is CheckKind.SUITE_RUN]
    return bool(runs) and all(one.outcome in _FINE for one in found)


def _may_be_foreign(reports: Sequence[Check]) -> bool:
    """Return whether a check run failed or was stopped, or runs beside one that has passed."""
    runs = [one for one in reports if one.kind is CheckKind.SUITE_RUN]
    passed = {one.name for one in runs if one.outcome in _FINE}
    left = [one for one in runs if one.outcome not in _FINE]
    return any(one.outcome is not CheckOutcome.RUNNING or one.name in passed for one in left)


def is_reported_on(run: Run) -> bool:
    """Return whether reports on the run's commit can still matter."""
    return run.sha is not None and run.kind is not RunKind.DIRECT and run.published
