"""The lists of tests: unhealthy, failing and quarantined ones; and one test with its figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

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
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.store import cases as test_cases
from service.testhealth.store import failing as failing_tests
from service.testhealth.store import figures, quarantine
from service.testhealth.store.days import Span
from service.testhealth.store.failing import FailingTests
from service.testhealth.store.listings import ListedCase, UnhealthyTests
from service.testhealth.store.quarantine import Since
from service.testhealth.store.quarantined import QuarantinedTests
from service.vocabulary import Health, Override

SPAN_MAX = timedelta(hours=7 * 24)

EVIDENCE_KEPT = timedelta(days=45)
"""Whole days of uploads are kept so long; older failures are not listed."""


async def unhealthy(
    runtime: Runtime, repository: RepositoryRecord, status: Health, wanted: PageSelection
) -> CountedPage[ListedCase]:
    """Return tests with this health now, those first that hit most pull requests.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = settled_tests.listing("flaky-tests/list-unhealthy-tests", repository, status.value)
    place = paging.place_of(runtime, listing, wanted)

    def find(session: Tx) -> CountedPage[ListedCase]:
        context = records.context_of(session, runtime, repository, place.now)
        page = settled_tests.cut(session, UnhealthyTests(repository.id, status), place)
        return page.with_rows(records.described(session, context, page.rows))

    return await runtime.store.read(find)


@dataclass(frozen=True, slots=True)
class FailingRequest:
    """A page of the tests that failed in `[since, until)`."""

    since: datetime
    until: datetime
    page: PageSelection


async def failing(
    runtime: Runtime, repository: RepositoryRecord, wanted: FailingRequest
) -> CountedPage[ListedCase]:
    """Return tests that failed in the range, those first that failed most often.

    They have their rates now, and the ways in which they failed in the range. Raises
    Invalid(invalid_time_range), Malformed(invalid_page_token, page_token_expired).
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

    def find(session: Tx) -> CountedPage[ListedCase]:
        context = records.context_of(session, runtime, repository, place.now)
        tests = _counted(session, runtime, repository.id, stored)
        page = settled_tests.cut(session, tests, place)
        return page.with_rows(with_figures(session, context, page.rows, stored))

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


def with_figures(
    session: Tx, context: RepositoryContext, nos: Sequence[int], span: Span
) -> list[ListedCase]:
    """Return tests by number with their rates now, and the ways in which they failed in a span."""
    here = context.repository.id
    rates = figures.rates(session, context.sets, here, nos, context.now)
    failures = failing_tests.common_failures(session, here, nos, span)
    return [
        test._replace(rates=rates[test.no], failures=failures.get(test.no, ()))
        for test in records.described(session, context, nos)
    ]


async def quarantined(
    runtime: Runtime, repository: RepositoryRecord, wanted: PageSelection
) -> CountedPage[ListedCase]:
    """Return tests that are quarantined now, those first whose override or status is newest.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = settled_tests.listing("flaky-tests/list-quarantined-tests", repository)
    place = paging.place_of(runtime, listing, wanted)

    def find(session: Tx) -> CountedPage[ListedCase]:
        context = records.context_of(session, runtime, repository, place.now)
        if not context.settings.quarantine_enabled:
            return CountedPage(())
        page = settled_tests.cut(session, quarantined_tests(context), place)
        return page.with_rows(_quarantined(session, context, page.rows))

    return await runtime.store.read(find)


def quarantined_tests(context: RepositoryContext) -> QuarantinedTests:
    """Return the quarantined tests of a repository in which quarantining is on."""
    settings = context.settings
    statuses = settings.auto_quarantine_statuses if settings.auto_quarantine_enabled else ()
    return QuarantinedTests(context.repository.id, statuses, context.now)


def _quarantined(session: Tx, context: RepositoryContext, nos: Sequence[int]) -> list[ListedCase]:
    """Return the tests with the moment from which the rule held for them."""
    switched = quarantine.since_of(session, context.repository.id)
    return [
        test._replace(quarantined_since=_since(test, switched))
        for test in records.described(session, context, nos)
        if test.quarantined
    ]


def _since(test: ListedCase, switched: Since) -> datetime:
    moments: tuple[datetime | None, ...]
    if test.setting is QuarantineSetting.ALWAYS_QUARANTINE:
        moments = (test.override_at, switched.quarantine_since)
    else:
        moments = (test.since, switched.quarantine_since, switched.auto_since)
    return max(moment for moment in moments if moment is not None)


async def details(
    runtime: Runtime, repository: RepositoryRecord, test_id: str
) -> tuple[ListedCase, datetime]:
    """Return the test with this id, or with this other id, and when it last ran.

    It has the figures of the last 168 hours, and no override that has expired. Raises
    NotFound(test_not_found).
    """
    now = runtime.clock.now()

    def find(session: Tx) -> tuple[ListedCase, datetime]:
        context = records.context_of(session, runtime, repository, now)
        case = records.find_case(session, repository, test_id)
        span = Span(now - days_and_rates.WEEK, now)
        (test,) = with_figures(session, context, [case.no], span)
        override = records.override_of(context, test)
        if override is Override.UNSPECIFIED:
            test = test._replace(override=override, expires_at=None)
        return test, records.last_run(session, context, case)

    return await runtime.store.read(find)
