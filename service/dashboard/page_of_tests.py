"""The page that lists the tests of a repository by the harm that they do."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.errors import NotFound
from service.runtime import Runtime
from service.testhealth.operations import lists
from service.testhealth.operations.lists import Quarantined
from service.testhealth.operations.pages import Page, PageRequest
from service.testhealth.operations.records import RepositoryAddresses, ShownTest
from service.vocabulary import Health

TESTS_MAX = 50
"""Tests on one page."""

QUARANTINED = "quarantined"
FILTERS = (Health.FLAKY.value, Health.BROKEN.value, QUARANTINED)
"""What may be listed; the first is what a page without a filter lists."""


@dataclass(frozen=True, slots=True)
class TestsPage:
    """A page of one list; `totals` counts the tests of each list."""

    __test__ = False
    shown: str
    totals: Mapping[str, int]
    tests: tuple[ShownTest, ...]
    next_token: str
    prev_token: str

    @property
    def heading(self) -> str:
        """`14 flaky and 3 broken tests`."""
        flaky, broken = (self.totals[each] for each in FILTERS[:2])
        if not flaky and not broken:
            return "No test is flaky or broken"
        return f"{flaky:,} flaky and {broken:,} broken tests"


async def read(runtime: Runtime, where: RepositoryAddresses, query: Mapping[str, str]) -> TestsPage:
    """Return the page that a query asks for.

    Raises NotFound for a list that does not exist, Malformed for a page token of another list.
    """
    shown = query.get("show", FILTERS[0])
    if shown not in FILTERS:
        raise NotFound("There is no such page.")
    tests: tuple[ShownTest, ...] = ()
    tokens, totals = ("", ""), dict.fromkeys(FILTERS, 0)
    for name in FILTERS:
        is_shown = name == shown
        wanted = PageRequest(TESTS_MAX, query.get("token")) if is_shown else PageRequest(1)
        page = await _list(runtime, where, name, wanted)
        totals[name] = page.total_rows
        if is_shown:
            tests = tuple(_test_of(row) for row in page.rows)
            tokens = (page.next_token, page.prev_token)
    return TestsPage(shown, totals, tests, *tokens)


async def _list(
    runtime: Runtime, where: RepositoryAddresses, name: str, wanted: PageRequest
) -> Page[ShownTest] | Page[Quarantined]:
    if name == QUARANTINED:
        return await lists.quarantined(runtime, where.repository, wanted)
    return await lists.unhealthy(runtime, where.repository, Health(name), wanted)


def _test_of(row: ShownTest | Quarantined) -> ShownTest:
    return row.test if isinstance(row, Quarantined) else row
