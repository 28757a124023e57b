"""The pages that list the tests of a repository, by the harm that they do, and its last uploads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

from service.accounts.tenants import RepositoryRecord
from service.database.paging import PageSelection
from service.errors import Malformed
from service.runtime import Options, Runtime
from service.testhealth.filters import TestFilter, TestOrder
from service.testhealth.operations import all_tests, bad_machines, page_of_upload
from service.testhealth.operations.all_tests import TestAmongOthers, TestsInDetail
from service.testhealth.operations.records import RepositoryAddresses
from service.vocabulary import UNHEALTHY, Health

TESTS_MAX = 50
"""Tests on one page."""

TEXT_MAX = 1000
"""Characters of a filter, as of a name (docs/design/limits.md 5)."""

YES, NO, ANY = "yes", "no", ""

STATUSES: Mapping[str, tuple[Health, ...]] = {
    "": UNHEALTHY,
    Health.FLAKY.value: (Health.FLAKY,),
    Health.BROKEN.value: (Health.BROKEN,),
    Health.HEALTHY.value: (Health.HEALTHY,),
    "all": (),
}
"""The statuses that the filter keeps; the first is what a page without it lists."""

FLAGS: Mapping[str, bool | None] = {ANY: None, YES: True, NO: False}
ORDERS: Mapping[str, TestOrder] = {"": TestOrder.PULL_REQUESTS, "ci": TestOrder.CI_TIME}
"""The orders of the list; the first is the order of a page without it."""

CHOICES = {"status": STATUSES, "quarantined": FLAGS, "ticket": FLAGS, "sort": ORDERS}
FILTERS = ("q", "status", "owner", "variant", "quarantined", "ticket", "sort")


@dataclass(frozen=True, slots=True)
class _UploadRow:
    """One upload; `problem` is why none of it counts, or empty."""

    id: str
    received_at: datetime
    sha: str
    branch: str
    prs: tuple[int, ...]
    job: str
    variant: str
    tests: int
    failed: int
    skipped: int
    warnings: int
    problem: str


class CiStep(NamedTuple):
    """The data of a CI step that uploads reports: our address, the organization, the repository."""

    url: str
    org: str
    slug: str


@dataclass(frozen=True, slots=True)
class UploadsPage:
    """The last 100 uploads, the newest first."""

    rows: tuple[_UploadRow, ...]
    ci: CiStep

    @property
    def heading(self) -> str:
        """`The last 100 uploads`."""
        count = len(self.rows)
        if not count:
            return "There are no uploads yet"
        return "One upload" if count == 1 else f"The last {count} uploads"


@dataclass(frozen=True, slots=True)
class TestsPage:
    """A page of tests; `given` is the filter as the query has it."""

    __test__ = False

    given: Mapping[str, str]
    detail: TestsInDetail
    ci: CiStep

    @property
    def tests(self) -> Sequence[TestAmongOthers]:
        """The tests of the page."""
        return self.detail.page.rows

    def runs_of(self, test: TestAmongOthers) -> str:
        """Return the newest runs of a test as letters, newest first."""
        return self.detail.runs[test.no]

    @property
    def machines_advice(self) -> str:
        """Return who acts on bad machines."""
        return bad_machines.ADVICE

    @property
    def is_by_cost(self) -> bool:
        """Return whether the tests come first that lost most CI time."""
        return ORDERS[self.given.get("sort", "")] is TestOrder.CI_TIME

    def sorted_by(self, order: str) -> str:
        """Return the query of the same list in another order."""
        return urlencode({**{k: v for k, v in self.given.items() if k != "sort"}, "sort": order})

    @property
    def heading(self) -> str:
        """`14 flaky and 3 broken tests hit 9 pull requests this week`."""
        costs = self.detail.costs
        if not costs.flaky and not costs.broken:
            return "No test is flaky or broken" if costs.tests else "There are no tests yet"
        many = "pull request" if costs.pull_requests == 1 else "pull requests"
        return (
            f"{costs.flaky:,} flaky and {costs.broken:,} broken tests hit "
            f"{costs.pull_requests:,} {many} this week"
        )

    @property
    def place(self) -> str:
        """`51 to 100 of 312`."""
        page = self.detail.page
        first = page.index * TESTS_MAX + 1
        if page.total_rows <= TESTS_MAX or not page.rows:
            return f"{page.total_rows:,}"
        return f"{first:,} to {first + len(page.rows) - 1:,} of {page.total_rows:,}"

    def query(self, token: str) -> str:
        """Return the query of another page of the same list."""
        return urlencode({**self.given, "token": token})


async def read(runtime: Runtime, where: RepositoryAddresses, query: Mapping[str, str]) -> TestsPage:
    """Return the page that a query asks for.

    Raises Malformed for an unknown filter and for a page token of another list.
    """
    given = {name: query[name].strip() for name in FILTERS if query.get(name, "").strip()}
    for name, choices in CHOICES.items():
        if given.get(name, "") not in choices:
            words = ", ".join(f'"{word}"' for word in choices if word)
            raise Malformed(f"The filter `{name}` takes {words}, or nothing.")
    for name, text in given.items():
        if len(text) > TEXT_MAX:
            raise Malformed(f"The filter `{name}` takes at most {TEXT_MAX:,} characters.")
    wanted = TestFilter(
        statuses=STATUSES[given.get("status", "")],
        search=given.get("q", ""),
        owner=given.get("owner", ""),
        variant=given.get("variant", ""),
        quarantined=FLAGS[given.get("quarantined", "")],
        has_ticket=FLAGS[given.get("ticket", "")],
        order=ORDERS[given.get("sort", "")],
    )
    page = PageSelection(TESTS_MAX, query.get("token"), "token")
    detail = await all_tests.in_detail(runtime, where.repository, wanted, page)
    return TestsPage(given, detail, _ci_step(runtime.options, where.repository))


def _ci_step(options: Options, repository: RepositoryRecord) -> CiStep:
    """Return what the CI of a repository needs to upload reports."""
    ref = repository.ref
    return CiStep(options.public_url or "https://YOUR-HOST", ref.owner, ref.slug)


async def read_uploads(runtime: Runtime, where: RepositoryAddresses) -> UploadsPage:
    """Return the page."""
    found = await page_of_upload.newest(runtime, where.repository)
    rows = tuple(
        _UploadRow(
            id=each.id,
            received_at=each.received_at,
            sha=each.sha,
            branch=each.branch or "",
            prs=each.prs,
            job=each.job,
            variant=each.variant,
            tests=each.counts.get("tests", 0),
            failed=each.failures,
            skipped=each.counts.get("skipped", 0),
            warnings=len(each.warnings),
            problem=each.refusal or "",
        )
        for each in found
    )
    return UploadsPage(rows, _ci_step(runtime.options, where.repository))
