"""The lists of tests: unhealthy, failing and quarantined ones; and one test with its figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache

from service.accounts.tenants import RepositoryRecord
from service.database import page_tokens, paging
from service.database.database import Tx
from service.database.paging import CountedPage, PageSelection
from service.errors import Invalid
from service.runtime import Runtime
from service.testhealth.detector import figures as days_and_rates
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.operations import records, settled_tests
from service.testhealth.operations.records import CommonFailures, Home, ShownTest
from service.testhealth.store import cases as test_cases
from service.testhealth.store import failing as failing_tests
from service.testhealth.store import figures, listings, quarantine
from service.testhealth.store.days import Span
from service.testhealth.store.failing import FailingTests
from service.testhealth.store.figures import Rates
from service.testhealth.store.listings import UnhealthyTests
from service.testhealth.store.quarantine import Since
from service.testhealth.store.quarantined import QuarantinedTests
from service.vocabulary import Health, Override

SPAN_MAX = timedelta(hours=7 * 24)

EVIDENCE_KEPT = timedelta(days=45)
"""Whole days of uploads are kept so long; older failures are not listed."""


async def unhealthy(
    runtime: Runtime, repository: RepositoryRecord, status: Health, wanted: PageSelection
) -> CountedPage[ShownTest]:
    """Return tests with this health now, those first that hit most pull requests.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = settled_tests.listing("flaky-tests/list-unhealthy-tests", repository, status.value)
    place = paging.place_of(runtime, listing, wanted)

    def find(session: Tx) -> CountedPage[ShownTest]:
        home = records.home_of(session, runtime, repository, place.now)
        page = settled_tests.cut(session, UnhealthyTests(repository.id, status), place)
        listed = listings.records(session, repository.id, page.rows)
        return page.with_rows(records.shown(session, home, listed))

    return await runtime.store.read(find)


@dataclass(frozen=True, slots=True)
class FailingRequest:
    """A page of the tests that failed in `[since, until)`."""

    since: datetime
    until: datetime
    page: PageSelection


class FailingTest(NamedTuple):
    """A test that failed, with its rates now, and the ways in which it failed in the range."""

    test: ShownTest
    rates: Rates
    failures: CommonFailures


async def failing(
    runtime: Runtime, repository: RepositoryRecord, wanted: FailingRequest
) -> CountedPage[FailingTest]:
    """Return tests that failed in the range, those first that failed most often.

    Raises Invalid(invalid_time_range), Malformed(invalid_page_token, page_token_expired).
    """
    span = Span(wanted.since, wanted.until)
    if span.until < span.since or span.until - span.since > SPAN_MAX:
        raise Invalid(
            "`end_time` must not lie before `start_time`, nor more than 7 days behind it.",
            code="invalid_time_range",
        )
    filters = (page_tokens.micros(span.since), page_tokens.micros(span.until))
    listing = settled_tests.listing("flaky-tests/list-failing-tests", repository, *filters)
    place = paging.place_of(runtime, listing, wanted.page)
    stored = _stored(span, place.now)

    def find(session: Tx) -> CountedPage[FailingTest]:
        home = records.home_of(session, runtime, repository, place.now)
        tests = _counted(session, runtime, repository.id, stored)
        page = settled_tests.cut(session, tests, place)
        return page.with_rows(measured(session, home, page.rows, stored))

    return await runtime.store.read(find)


def _stored(span: Span, now: datetime) -> Span:
    """Return the part of a span whose uploads are kept."""
    oldest = days_and_rates.beginning_of(days_and_rates.day_of(now - EVIDENCE_KEPT))
    return Span(max(span.since, oldest), max(span.until, oldest))


FAILING_COUNTS_MAX = 8
"""Counted spans kept: some 5 MB each of 100,000 failing tests."""

CountKey = tuple[int, Span, int]
"""A repository, a span, and the revision of the repository's tests."""


class FailingCounts:
    """The failing tests of spans that were counted last. Used from several threads."""

    def __init__(self) -> None:
        self._kept: LRUCache[CountKey, FailingTests] = LRUCache(FAILING_COUNTS_MAX)
        self._lock = Lock()

    def get(self, key: CountKey) -> FailingTests | None:
        """Return the failing tests kept under a key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: CountKey, counted: FailingTests) -> None:
        """Keep the failing tests of a span."""
        with self._lock:
            self._kept[key] = counted


def _counted(session: Tx, runtime: Runtime, repository_id: int, span: Span) -> FailingTests:
    """Count the failing tests of a span; further pages of it are read from memory."""
    shared = test_cases.shared_by(session, repository_id)
    key = (repository_id, span, shared.revision)
    cache = runtime.memory.of(FailingCounts)
    kept = cache.get(key)
    if kept is not None:
        return kept
    counted = failing_tests.counted(session, repository_id, span, shared.last_no)
    cache.put(key, counted)
    return counted


def measured(session: Tx, home: Home, nos: Sequence[int], span: Span) -> list[FailingTest]:
    """Return tests by number with their rates now, and the ways in which they failed."""
    here = home.repository.id
    rates = figures.rates(session, home.sets, here, nos, home.now)
    failures = failing_tests.common_failures(session, here, nos, span)
    listed = listings.records(session, here, nos)
    return [
        FailingTest(test, rates[test.case.no], failures.get(test.case.no, ()))
        for test in records.shown(session, home, listed)
    ]


def with_figures(session: Tx, home: Home, nos: Sequence[int], span: Span) -> list[ShownTest]:
    """Return the same as tests that show these figures themselves."""
    return [
        test._replace(rates=rates, failures=failures)
        for test, rates, failures in measured(session, home, nos, span)
    ]


class Quarantined(NamedTuple):
    """A quarantined test, by what, and since when."""

    test: ShownTest
    setting: QuarantineSetting
    since: datetime


async def quarantined(
    runtime: Runtime, repository: RepositoryRecord, wanted: PageSelection
) -> CountedPage[Quarantined]:
    """Return tests that are quarantined now, those first whose override or status is newest.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = settled_tests.listing("flaky-tests/list-quarantined-tests", repository)
    place = paging.place_of(runtime, listing, wanted)

    def find(session: Tx) -> CountedPage[Quarantined]:
        home = records.home_of(session, runtime, repository, place.now)
        if not home.settings.quarantine_enabled:
            return CountedPage(())
        page = settled_tests.cut(session, quarantined_tests(home), place)
        return page.with_rows(_quarantined(session, home, page.rows))

    return await runtime.store.read(find)


def quarantined_tests(home: Home) -> QuarantinedTests:
    """Return the quarantined tests of a repository in which quarantining is on."""
    settings = home.settings
    statuses = settings.auto_quarantine_statuses if settings.auto_quarantine_enabled else ()
    return QuarantinedTests(home.repository.id, statuses, home.now)


def _quarantined(session: Tx, home: Home, nos: Sequence[int]) -> list[Quarantined]:
    """Return the tests with the moment from which the rule held for them."""
    switched = quarantine.since_of(session, home.repository.id)
    listed = listings.records(session, home.repository.id, nos)
    rows = (_row(home, test, switched) for test in records.shown(session, home, listed))
    return [row for row in rows if row is not None]


def _row(home: Home, test: ShownTest, switched: Since) -> Quarantined | None:
    setting = records.setting_of(home, test.case)
    moments: tuple[datetime | None, ...]
    if setting is QuarantineSetting.ALWAYS_QUARANTINE:
        moments = (test.case.override_at, switched.quarantine_since)
    elif setting is QuarantineSetting.AUTO_QUARANTINE:
        moments = (test.case.since, switched.quarantine_since, switched.auto_since)
    else:
        return None
    since = max(moment for moment in moments if moment is not None)
    return Quarantined(test, setting, since)


class Details(NamedTuple):
    """A test with its figures; `failures` are those of the last 168 hours."""

    test: ShownTest
    override: Override
    expires_at: datetime | None
    first_seen_at: datetime
    last_run_at: datetime


async def details(runtime: Runtime, repository: RepositoryRecord, test_id: str) -> Details:
    """Return the test with this id, or with this other id. Raises NotFound(test_not_found)."""
    now = runtime.clock.now()

    def find(session: Tx) -> Details:
        home = records.home_of(session, runtime, repository, now)
        case = records.find_case(session, repository, test_id)
        span = Span(now - days_and_rates.WEEK, now)
        (test,) = with_figures(session, home, [case.no], span)
        last = records.last_run(session, home, case)
        override = records.override_of(home, test.case)
        expires_at = None if override is Override.UNSPECIFIED else test.case.expires_at
        return Details(test, override, expires_at, case.first_run_at, last)

    return await runtime.store.read(find)
