"""Spans of a turn in the traces of submissions (docs/how-to/operate.md)."""

from collections.abc import Iterator, Sequence

from service import tracing
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.states import EntryState, RunStatus
from service.runtime import Runtime
from service.vocabulary import QueueRef


def record(runtime: Runtime, queue: QueueRef, before: MergeQueue, steps: Sequence[Step]) -> None:
    """Note which submissions the turn changed; record the test runs and stays that it ended."""
    tracing.about(*_changed(before, steps))
    for step in steps:
        for run in step.finished_runs:
            _record_run(runtime, run)
        for entry in step.finished_entries:
            _record_stay(runtime, queue, entry)


def _changed(before: MergeQueue, steps: Sequence[Step]) -> Iterator[str]:
    after = steps[-1].queue
    for entry in after.entries.values():
        if before.entries.get(entry.pr) is not entry:
            yield entry.id
    for run in after.runs.values():
        if before.runs.get(run.id) is not run:
            yield from (member.entry for member in run.entries)
    for step in steps:
        yield from (entry.id for entry in step.finished_entries)


def _record_run(runtime: Runtime, run: Run) -> None:
    times = (run.created_at, run.finished_at or runtime.clock.now())
    fields = {
        "headgate.run.id": run.id,
        "headgate.run.kind": run.kind.value,
        "headgate.run.status": run.status.value,
        "headgate.run.pull_requests": ", ".join(f"#{number}" for number in run.prs),
        "vcs.ref.head.revision": run.sha or "",
    }
    if run.status is RunStatus.FAILED:
        fields["error"] = "failed" if run.cause is None else str(run.cause)
    for member in run.entries:
        runtime.traces.part(member.entry, run.id, "test run", times, **fields)


def _record_stay(runtime: Runtime, queue: QueueRef, entry: Entry) -> None:
    fields: dict[str, tracing.Value] = {
        "headgate.pull_request": entry.pr,
        "headgate.repository": queue.repo.slug,
        "headgate.queue.branch": queue.branch,
        "headgate.state": entry.state.value,
        "headgate.reason": entry.reason.value,
        "vcs.ref.head.revision": entry.head,
        "headgate.landed": entry.landed_sha or "",
    }
    if entry.state is EntryState.FAILED:
        fields["error"] = entry.reason.value
    times = (entry.submitted_at, entry.state_since)
    runtime.traces.submission(entry.id, "submission", times, **fields)
