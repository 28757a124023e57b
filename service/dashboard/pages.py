"""Every page: its path, its template, and how its content is read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from service.accounts import page_addresses
from service.dashboard import (
    page_of_pull_request,
    page_of_queue,
    page_of_queues,
    page_of_run,
    page_of_tests,
)
from service.dashboard.page_of_pull_request import PullRequestPage
from service.dashboard.page_of_queue import QueuePage
from service.dashboard.page_of_queues import QueuesPage
from service.dashboard.page_of_run import RunPage
from service.dashboard.page_of_tests import TestsPage
from service.dashboard.visitors import Visitor
from service.errors import NotFound
from service.mergequeue.operations import overview
from service.mergequeue.operations import page_of_pull_request as pull_request_pages
from service.mergequeue.operations import page_of_queue as queue_pages
from service.mergequeue.operations import page_of_run as run_pages
from service.mergequeue.operations.overview import Scope
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.testhealth.operations import page_of_test, page_of_upload
from service.testhealth.operations.page_of_test import PageOfTest
from service.testhealth.operations.page_of_upload import PageOfUpload
from service.testhealth.operations.records import RepositoryAddresses


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page of a repository, at a time: the names in its path, and its query.

    `form` has the fields of a form that was sent, the `action` left out; without one it is empty.
    """

    where: RepositoryAddresses
    visitor: Visitor
    names: Mapping[str, str]
    query: Mapping[str, str]
    now: datetime
    form: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a field of the form without blanks around it, empty if it was not sent."""
        return self.form.get(name, "").strip()


@dataclass(frozen=True, slots=True)
class Action:
    """A change that a form of a page asks for, as the field `action` names it.

    `needs` is the access that it takes. `question` and `button` are for a page that asks first;
    without a question it is done at once. `act` returns the path of the next page, None for the
    page of the form; what it raises is shown on that page.
    """

    needs: AccessLevel
    act: Callable[[Runtime, PageRequest], Awaitable[str | None]]
    question: str = ""
    button: str = ""


@dataclass(frozen=True, slots=True)
class PageKind:
    """A page of a repository.

    `read` raises NotFound for a thing that does not exist, and so does `version`, which costs less
    and changes whenever the page does. None: the page does not follow changes by itself.
    """

    path: str
    template: str
    read: Callable[[Runtime, PageRequest], Awaitable[object]]
    version: Callable[[Runtime, PageRequest], Awaitable[int]] | None = None
    actions: Mapping[str, Action] = field(default_factory=dict)


async def queues(runtime: Runtime, scope: Scope, query: Mapping[str, str]) -> QueuesPage:
    """Return the first page. Raises NotFound for a page that begins nowhere."""
    number, _, branch = query.get("after", "0/").partition("/")
    if not number.isdecimal() or len(number) > ID_DIGITS_MAX:
        raise NotFound("There is no such page.")
    found = await overview.read(runtime, scope, (int(number), branch))
    return page_of_queues.made_of(found, runtime.options, runtime.clock.now())


async def queue(runtime: Runtime, request: PageRequest) -> QueuePage:
    """Return the page of a queue."""
    after = page_of_queue.after_of(request.query)
    branch = page_addresses.branch_of(request.names["branch"])
    found = await queue_pages.read(runtime, request.where.repository, branch)
    return page_of_queue.made_of(found, after, request.now)


async def pull_request(runtime: Runtime, request: PageRequest) -> PullRequestPage:
    """Return the page of a pull request."""
    branch = page_addresses.branch_of(request.names["branch"])
    text = request.names["number"]
    if not text.isdecimal() or len(text) > ID_DIGITS_MAX:
        raise NotFound("There is no such page.")
    found = await pull_request_pages.read(runtime, request.where.repository, branch, int(text))
    return page_of_pull_request.made_of(found, request.now)


async def version_of_queue(runtime: Runtime, request: PageRequest) -> int:
    """Return the version of the queue whose branch the path names."""
    branch = page_addresses.branch_of(request.names["branch"])
    return await queue_pages.version(runtime, request.where.repository, branch)


async def version_of_run(runtime: Runtime, request: PageRequest) -> int:
    """Return the version of the queue of the run that the path names."""
    return await run_pages.version(runtime, request.where.repository, request.names["id"])


async def run(runtime: Runtime, request: PageRequest) -> RunPage:
    """Return the page of a test run."""
    found = await run_pages.read(runtime, request.where.repository, request.names["id"])
    return page_of_run.made_of(found, request.now)


async def test(runtime: Runtime, request: PageRequest) -> PageOfTest:
    """Return the page of a test."""
    return await page_of_test.read(runtime, request.where, _id_of(request))


async def tests(runtime: Runtime, request: PageRequest) -> TestsPage:
    """Return the page that lists tests."""
    return await page_of_tests.read(runtime, request.where, request.query)


async def upload(runtime: Runtime, request: PageRequest) -> PageOfUpload:
    """Return the page of an upload."""
    return await page_of_upload.read(runtime, request.where, _id_of(request))


ID_DIGITS_MAX = 15

LIVE_S, OVERVIEW_LIVE_S = 3, 15
"""Seconds between two questions of an open page whether it has changed."""

PAGES = (
    PageKind("tests", "tests.html", tests),
    PageKind("tests/{id}", "test.html", test),
    PageKind("uploads/{id}", "upload.html", upload),
    PageKind("runs/{id}", "run.html", run, version_of_run),
    PageKind("{branch:[^/]+}/pull/{number}", "pull_request.html", pull_request, version_of_queue),
    PageKind("{branch:[^/]+}", "queue.html", queue, version_of_queue),
)
"""Every page of a repository; a path with names of ours comes before one without."""


def _id_of(request: PageRequest) -> str:
    """Return the id as it is stored. Raises NotFound for a text that is no id."""
    try:
        return str(UUID(request.names["id"]))
    except ValueError:
        raise NotFound("There is no such page.") from None
