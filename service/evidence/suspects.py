"""Find the pull requests that a commit tests, in the order in which the queue suspects them."""

from service.accounts.tenants import RepositoryRecord
from service.evidence.store import queue_facts
from service.mergequeue.engine.explaining import explain
from service.mergequeue.operations import turn
from service.mergequeue.store import pull_requests
from service.runtime import Runtime
from service.vocabulary import Sha


async def suspected_pull_requests(
    runtime: Runtime, repository: RepositoryRecord, sha: Sha
) -> tuple[int, ...]:
    """Return the pull requests of the test run on a commit, else those whose head it is.

    Of a test run the most suspected come first (docs/explanation/belief.md), then those that were
    submitted first.
    """
    found = await runtime.store.read(queue_facts.live_run, repository.id, sha)
    if found is None:
        return await runtime.store.read(pull_requests.with_head, repository.id, sha)
    queue, run = found
    value = await turn.last_value(runtime, queue.id)
    live = [pr for pr in run.prs if pr in value.entries]
    explained = explain.explain_each(value, live, runtime.clock.now())
    percents = {pr: each.suspicion.percent for pr, each in explained.items() if each.suspicion}
    return tuple(sorted(run.prs, key=lambda pr: -percents.get(pr, 0)))
