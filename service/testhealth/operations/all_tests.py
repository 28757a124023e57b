"""All tests of a repository, filtered; the history of one; and what unhealthy tests cost."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from service.accounts.tenants import RepositoryRecord
from service.database import paging
from service.database.database import Tx
from service.database.paging import CountedPage, PageSelection
from service.runtime import Runtime
from service.testhealth.filters import TestFilter
from service.testhealth.operations import bad_machines, records, settled_tests
from service.testhealth.operations.bad_machines import FoundMachine
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.reports.results import Outcome
from service.testhealth.store import all_tests, figures, history
from service.testhealth.store import runs as test_runs
from service.testhealth.store.all_tests import AllTests, CostOfTests, QuarantineRule
from service.testhealth.store.history import CaseDay
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.runs import CaseRun
from service.testhealth.store.sets import OutcomeSets
from service.vocabulary import RepoRef

TestAmongOthers: TypeAlias = ListedCase

RUNS_MAX = 60
"""Runs in a strip and in a history."""


async def listed(
    runtime: Runtime, repository: RepositoryRecord, wanted: TestFilter, selection: PageSelection
) -> CountedPage[ListedCase]:
    """Return the tests that pass a filter with their rates, those first that hit most.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    find = _listing(runtime, repository, wanted, selection)

    def read(session: Tx) -> CountedPage[ListedCase]:
        return find(session, records.context_of(session, runtime, repository, runtime.clock.now()))

    return await runtime.store.read(read)


@dataclass(frozen=True, slots=True)
class TestsInDetail:
    """A page of tests, the newest runs of each by number as letters, and what all tests cost.

    `owners` are those of unhealthy tests; `machines` fail tests that pass elsewhere.
    """

    __test__ = False

    page: CountedPage[ListedCase]
    runs: Mapping[int, str]
    costs: CostOfTests
    owners: Sequence[str]
    machines: Sequence[FoundMachine]


async def in_detail(
    runtime: Runtime, repository: RepositoryRecord, wanted: TestFilter, selection: PageSelection
) -> TestsInDetail:
    """Return the same list for people. Raises what `listed` raises."""
    find = _listing(runtime, repository, wanted, selection)

    def read(session: Tx) -> TestsInDetail:
        here = repository.id
        context = records.context_of(session, runtime, repository, runtime.clock.now())
        found = find(session, context)
        nos = [test.no for test in found.rows]
        runs = test_runs.newest(session, context.sets, here, nos, RUNS_MAX)
        return TestsInDetail(
            found,
            {no: letters_of(case_runs) for no, case_runs in runs.items()},
            all_tests.cost_of_tests(session, here, context.now),
            all_tests.owners(session, here),
            bad_machines.read(session, runtime, repository),
        )

    return await runtime.store.read(read)


class WorstTest(NamedTuple):
    """A test of a repository, by our id, and its newest runs as letters."""

    repository_id: int
    case: ListedCase
    runs: str


async def worst(
    runtime: Runtime, repository_ids: Sequence[int], at_most: int
) -> tuple[WorstTest, ...]:
    """Return unhealthy tests of these repositories, those first that hit most in a week."""
    sets = runtime.store.caches.of(OutcomeSets)

    def find(session: Tx) -> tuple[WorstTest, ...]:
        found = all_tests.worst(session, repository_ids, at_most)
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for here, case in found:
            numbers[here].append(case.no)
        runs = {
            here: test_runs.newest(session, sets, here, nos, RUNS_MAX)
            for here, nos in numbers.items()
        }
        return tuple(WorstTest(at, case, letters_of(runs[at][case.no])) for at, case in found)

    return await runtime.store.read(find)


async def named(
    runtime: Runtime,
    scope: tuple[int | None, frozenset[int] | None],
    text: str,
    at_most: int,
) -> list[tuple[RepoRef, ListedCase]]:
    """Return tests whose name contains a text, those first that hit most pull requests.

    `scope`: of one organization or all, in some repositories or all.
    """
    return await runtime.store.read(all_tests.named, scope, text, at_most)


async def places_of(
    runtime: Runtime, org_ids: Collection[int], test_ids: Collection[str]
) -> dict[tuple[int | None, str], tuple[RepoRef, str]]:
    """Return repository and name of tests, by organization and id.

    A test that is unknown, or known in several repositories of its organization, is left out.
    """
    if not test_ids:
        return {}
    return await runtime.store.read(all_tests.places_of, org_ids, test_ids)


async def changes(
    runtime: Runtime, org_id: int | None = None, within: frozenset[int] | None = None
) -> int:
    """Return a number that changes with all that lists of tests show, there or everywhere."""
    return await runtime.store.read(all_tests.changes, org_id, within)


def _listing(
    runtime: Runtime, repository: RepositoryRecord, wanted: TestFilter, selection: PageSelection
) -> Callable[[Tx, RepositoryContext], CountedPage[ListedCase]]:
    listing = settled_tests.listing("flaky-tests/list-tests", repository, *wanted.words())
    place = paging.place_of(runtime, listing, selection)

    def find(session: Tx, context: RepositoryContext) -> CountedPage[ListedCase]:
        tests = AllTests(repository.id, wanted, _rule(context), place.now).narrowed(session)
        page = settled_tests.cut(session, tests, place)
        rates = figures.rates(session, context.sets, repository.id, page.rows, place.now)
        tests_of_page = records.described(session, context, page.rows)
        return page.with_rows([test._replace(rates=rates[test.no]) for test in tests_of_page])

    return find


def _rule(context: RepositoryContext) -> QuarantineRule:
    settings = context.settings
    statuses = settings.auto_quarantine_statuses if settings.auto_quarantine_enabled else ()
    return QuarantineRule(settings.quarantine_enabled, tuple(statuses))


class History(NamedTuple):
    """The last 30 days of a test, oldest first, and its newest runs, newest first."""

    test_id: str
    days: tuple[CaseDay, ...]
    runs: tuple[CaseRun, ...]


async def history_of(runtime: Runtime, repository: RepositoryRecord, test_id: str) -> History:
    """Return the history of a test. Raises NotFound(test_not_found)."""
    now = runtime.clock.now()

    def find(session: Tx) -> History:
        context = records.context_of(session, runtime, repository, now)
        case = records.find_case(session, repository, test_id)
        here = repository.id
        runs = test_runs.newest(session, context.sets, here, [case.no], RUNS_MAX)
        days = history.days_of(session, context.sets, here, case.no, now)
        return History(case.id, days, tuple(runs[case.no]))

    return await runtime.store.read(find)


def letters_of(runs: Sequence[CaseRun]) -> str:
    """Return a letter for each run.

    `.` passed, `r` passed on a retry, `X` failed, `x` failed and excused, `-` skipped.
    """
    return "".join(map(_letter, runs))


def _letter(run: CaseRun) -> str:
    if run.outcome is Outcome.FAILED:
        return "x" if run.is_quarantined else "X"
    if run.outcome is Outcome.PASSED:
        return "r" if run.attempts > 1 else "."
    return "-"
