"""A pull request in a queue as its page shows it."""

from dataclasses import dataclass

from service.accounts.tenants import RepositoryRecord
from service.database.paging import PageSelection
from service.mergequeue.operations import (
    explain,
    lists,
    page_of_queue,
    queue_access,
)
from service.mergequeue.operations.lists import RunRequest
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.operations.views import ExplainView
from service.mergequeue.store import landing_evidence, listings
from service.mergequeue.wording.situation import PullRequestText
from service.runtime import Runtime

RUNS_MAX = 20
"""Runs of a pull request on its page, the newest."""


@dataclass(frozen=True, slots=True)
class PageOfPullRequest:
    """Everything on the page of the newest submission; `runs_total` counts all of its runs.

    `has_evidence`: the commit that it landed as has signed evidence.
    """

    text: PullRequestText
    explained: ExplainView
    left: LeftEntry
    runs: tuple[listings.ListedRun, ...]
    runs_total: int
    has_evidence: bool


async def load_page(
    runtime: Runtime, repository: RepositoryRecord, branch: str, number: int
) -> PageOfPullRequest:
    """Return the page. Raises NotFound: queue_not_found, never_submitted."""
    queue = await queue_access.queue_in(runtime, repository, branch)
    explained = await explain.explain(runtime, queue, number)
    text = explained.text
    newest = RunRequest(number, None, PageSelection(RUNS_MAX))
    listed = await lists.list_runs(runtime, queue, newest)
    (left,) = await runtime.store.read(page_of_queue.with_landings, (text.entry,))
    sha = None if left.landing is None else left.landing.landed_sha
    signed = (
        ()
        if sha is None
        else await runtime.store.read(landing_evidence.of_commit, repository.id, sha)
    )
    return PageOfPullRequest(text, explained, left, listed.runs, listed.total, bool(signed))
