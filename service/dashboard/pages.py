"""Every page: its path, its template, and how its content is read."""

from collections.abc import Mapping

from service.accounts import page_addresses
from service.dashboard import (
    page_of_costs,
    page_of_doctor,
    page_of_health,
    page_of_lists,
    page_of_pull_request,
    page_of_quality,
    page_of_queue,
    page_of_queues,
    page_of_run,
    page_of_settings,
    page_of_tests,
    queue_actions,
)
from service.dashboard.page_of_costs import CostsPage, SlowPage
from service.dashboard.page_of_health import HealthPage
from service.dashboard.page_of_lists import PullsPage, RunsPage
from service.dashboard.page_of_pull_request import PullRequestPage
from service.dashboard.page_of_queue import QueuePage
from service.dashboard.page_of_queues import QueuesPage
from service.dashboard.page_of_run import RunPage
from service.dashboard.page_of_tests import TestsPage, UploadsPage
from service.dashboard.requests import PageKind, PageRequest, Version
from service.dashboard.visitors import Rights
from service.mergequeue.operations import overview
from service.mergequeue.operations import page_of_pull_request as pull_request_pages
from service.mergequeue.operations import page_of_queue as queue_pages
from service.mergequeue.operations import page_of_run as run_pages
from service.mergequeue.operations.overview import Scope
from service.runtime import Runtime
from service.testhealth.operations import all_tests, page_of_test, page_of_upload
from service.testhealth.operations.page_of_test import PageOfTest
from service.testhealth.operations.page_of_upload import PageOfUpload


async def queues(runtime: Runtime, rights: Rights, query: Mapping[str, str]) -> QueuesPage:
    """Return the first page, or the one that a token names. Raises Malformed for a wrong token."""
    found = await overview.load_overview(runtime, rights.scope, query.get("cursor"))
    repositories = sorted({each.ref.repository_id for each in found.queues})
    worst = await all_tests.worst(runtime, repositories, page_of_queues.TESTS_MAX)
    return page_of_queues.made_of(runtime, rights, found, worst)


async def version_of_queues(runtime: Runtime, scope: Scope) -> Version:
    """Return the version of the first page."""
    of_queues = await overview.changes(runtime, scope)
    of_tests = await all_tests.changes(runtime, scope.org_id, scope.within)
    return Version(f"{of_queues}-{of_tests}")


async def queue(runtime: Runtime, request: PageRequest) -> QueuePage:
    """Return the page of a queue."""
    after = page_of_queue.after_of(request.query)
    branch = page_addresses.branch_of(request.names["branch"])
    found = await queue_pages.load_page(runtime, request.where.repository, branch)
    return page_of_queue.made_of(found, after, request.now)


async def pull_request(runtime: Runtime, request: PageRequest) -> PullRequestPage:
    """Return the page of a pull request."""
    branch = page_addresses.branch_of(request.names["branch"])
    repository, number = request.where.repository, request.number
    found = await pull_request_pages.load_page(runtime, repository, branch, number)
    return page_of_pull_request.made_of(found, request.now)


async def _version_of_queue(runtime: Runtime, request: PageRequest) -> Version:
    """Return the version of the queue whose branch the path names."""
    branch = page_addresses.branch_of(request.names["branch"])
    return Version(*await queue_pages.version(runtime, request.where.repository, branch))


async def _version_of_run(runtime: Runtime, request: PageRequest) -> Version:
    """Return the version of the queue of the run that the path names."""
    return Version(*await run_pages.version(runtime, request.where.repository, request.names["id"]))


async def run(runtime: Runtime, request: PageRequest) -> RunPage:
    """Return the page of a test run."""
    found = await run_pages.load_page(runtime, request.where.repository, request.names["id"])
    return page_of_run.made_of(found, request.now)


async def health(runtime: Runtime, request: PageRequest) -> HealthPage:
    """Return the page of a queue's statistics."""
    repository = request.where.repository
    return await page_of_health.read(runtime, repository, request.names["branch"], request.query)


async def pulls(runtime: Runtime, request: PageRequest) -> PullsPage:
    """Return the page that lists the submissions of a queue."""
    repository = request.where.repository
    return await page_of_lists.read_pulls(
        runtime, repository, request.names["branch"], request.query
    )


async def runs(runtime: Runtime, request: PageRequest) -> RunsPage:
    """Return the page that lists the test runs of a queue."""
    repository = request.where.repository
    return await page_of_lists.read_runs(
        runtime, repository, request.names["branch"], request.query
    )


async def test(runtime: Runtime, request: PageRequest) -> PageOfTest:
    """Return the page of a test."""
    return await page_of_test.read(runtime, request.where, request.id)


async def tests(runtime: Runtime, request: PageRequest) -> TestsPage:
    """Return the page that lists tests."""
    return await page_of_tests.read(runtime, request.where, request.query)


async def slowest(runtime: Runtime, request: PageRequest) -> SlowPage:
    """Return the page of the slowest tests."""
    return await page_of_costs.slowest(runtime, request.where, request.query)


async def costs(runtime: Runtime, request: PageRequest) -> CostsPage:
    """Return the page of what flaky tests cost."""
    return await page_of_costs.costs(runtime, request.where)


async def _version_of_tests(runtime: Runtime, request: PageRequest) -> Version:
    """Return the version of everything that lists of the repository's tests show."""
    within = frozenset({request.where.repository.id})
    return Version(await all_tests.changes(runtime, within=within))


async def _version_of_uploads(runtime: Runtime, request: PageRequest) -> Version:
    """Return the version of the list of uploads."""
    return Version(await page_of_upload.changes(runtime, request.where.repository))


async def uploads(runtime: Runtime, request: PageRequest) -> UploadsPage:
    """Return the page that lists uploads."""
    return await page_of_tests.read_uploads(runtime, request.where)


async def upload(runtime: Runtime, request: PageRequest) -> PageOfUpload:
    """Return the page of an upload."""
    return await page_of_upload.read(runtime, request.where, request.id)


PAGES: tuple[PageKind[PageRequest], ...] = (
    PageKind("tests", "tests.html", tests, _version_of_tests),
    PageKind("tests/slowest", "slowest.html", slowest),
    PageKind("tests/costs", "costs.html", costs),
    PageKind(
        "tests/quality", "quality.html", page_of_quality.read, actions=page_of_quality.ACTIONS
    ),
    PageKind("tests/{id}", "test.html", test, actions=queue_actions.OF_TEST),
    PageKind("uploads", "uploads.html", uploads, _version_of_uploads),
    PageKind("uploads/{id}", "upload.html", upload),
    PageKind("runs/{id}", "run.html", run, _version_of_run),
    PageKind(
        "{branch:[^/]+}/pull/{number}",
        "pull_request.html",
        pull_request,
        _version_of_queue,
        queue_actions.OF_PULL_REQUEST,
    ),
    PageKind("{branch:[^/]+}/pulls", "pulls.html", pulls),
    PageKind("{branch:[^/]+}/runs", "runs.html", runs),
    PageKind("{branch:[^/]+}/health", "health.html", health),
    PageKind(
        "{branch:[^/]+}/doctor",
        "doctor.html",
        page_of_doctor.read,
        page_of_doctor.version,
        actions=page_of_doctor.ACTIONS,
    ),
    PageKind(
        "{branch:[^/]+}/settings",
        "queue_settings.html",
        page_of_settings.read,
        actions=page_of_settings.ACTIONS,
    ),
    PageKind("{branch:[^/]+}", "queue.html", queue, _version_of_queue, queue_actions.OF_QUEUE),
)
"""Every page of a repository; a path with names of ours comes before one without."""
