"""Read from the provider what CI reports of test runs."""

from collections import defaultdict
from collections.abc import Sequence

from service.mergequeue.engine.inputs import ChecksReported, Input
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind
from service.runtime import Runtime
from service.vocabulary import QueueRef, Sha


async def checks_of(runtime: Runtime, queue: QueueRef, run: Run) -> ChecksReported:
    """Return the whole present set of reports on a built run's commit, read afresh."""
    if run.sha is None:
        raise ValueError(f"run {run.id} has no commit yet")
    provider = runtime.providers[queue.repo.host]
    checks = await provider.checks(
        queue.repo, run.sha, skipped_pass=run.config.skipped_statuses_pass
    )
    return ChecksReported(run.id, run.sha, checks.items, checks.complete)


async def checks_of_many(runtime: Runtime, queue: QueueRef, due: Sequence[Run]) -> list[Input]:
    """Return what is reported of several runs, read at once. Raises the provider's errors."""
    by_setting: defaultdict[bool, dict[Sha, list[str]]] = defaultdict(dict)
    for run in due:
        if run.sha is not None:
            by_setting[run.config.skipped_statuses_pass].setdefault(run.sha, []).append(run.id)
    provider = runtime.providers[queue.repo.host]
    inputs: list[Input] = []
    for skipped_pass, runs_of in by_setting.items():
        read = await provider.checks_of_many(queue.repo, list(runs_of), skipped_pass=skipped_pass)
        inputs += [
            ChecksReported(run_id, sha, read[sha].items, read[sha].complete)
            for sha, run_ids in runs_of.items()
            for run_id in run_ids
        ]
    return inputs


def is_reported_on(run: Run) -> bool:
    """Return whether reports on the run's commit can still matter."""
    return run.sha is not None and run.kind is not RunKind.DIRECT and run.published
