"""The next step about a submission, with what only the database knows."""

from service.database.database import Tx
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import runs
from service.mergequeue.wording import failed_tests, next_steps
from service.mergequeue.wording.next_steps import DescribedStep, Owner
from service.mergequeue.wording.notices import Failures
from service.mergequeue.wording.situation import PullRequestText
from service.runtime import Runtime
from service.vocabulary import QueueRef


def described_step(
    session: Tx, runtime: Runtime, queue: QueueRef, text: PullRequestText
) -> DescribedStep:
    """Return the next step, with what failed and whose pull requests are in conflict with it."""
    owners = []
    for number in next_steps.conflicting(text):
        entry = text.queue.entries.get(number) or runs.newest_entry(session, queue.id, number)
        if entry is not None:
            is_merged = entry.state is EntryState.MERGED
            owners.append(Owner(number, entry.facts.author, is_merged))
    pr, head = text.entry.pr, text.entry.head
    tests = failed_tests.NONE
    if next_steps.fails_on_head(text) and text.queue.sends_results:
        tests = runtime.links.of(RunFailures).named_on(session, runtime, queue, pr, head)
    return next_steps.describe(text, queue.repo, owners, tests)


def failures_of_run(session: Tx, runtime: Runtime, queue: QueueRef, run_id: str) -> Failures | None:
    """Return what failed in a run for which a head is not tested again; None: it is forgotten."""
    run = runs.run(session, queue.id, run_id)
    if run is None:
        return None
    tests = runtime.links.of(RunFailures).named_in(session, runtime, queue, run)
    return Failures(f"It failed in test run {run.number}.", verdict.failed_of(run), tests)
