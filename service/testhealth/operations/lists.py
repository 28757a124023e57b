"""The lists of tests: unhealthy ones, failing ones, quarantined ones (API.md 8.2, 8.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from service.database import paging
from service.database.database import Tx
from service.database.paging import Listing
from service.database.records import RepositoryRecord
from service.errors import Invalid
from service.runtime import Runtime
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.operations import pages, records, shelf
from service.testhealth.operations.pages import Key, Page, PageWish
from service.testhealth.operations.records import CommonFailures, Home, ShownTest
from service.testhealth.operations.shelf import Found, Question
from service.testhealth.store import (
    cases as test_cases,
)
from service.testhealth.store import (
    figures,
    listings,
    orders,
    quarantine,
)
from service.testhealth.store import (
    ways as test_ways,
)
from service.testhealth.store.figures import Rates
from service.testhealth.store.listings import Span, UnhealthyRows
from service.testhealth.store.orders import AsOf, Order, Rank
from service.testhealth.store.quarantine import Since
from service.testhealth.store.quarantined import Moment, QuarantinedRows
from service.vocabulary import Health

SPAN_MAX = timedelta(hours=7 * 24)

EVIDENCE_KEPT = timedelta(days=44)
"""Attempts are there for certain so long: they are deleted a day later (FLAKY.md 4)."""


async def unhealthy(
    runtime: Runtime, repository: RepositoryRecord, status: Health, wish: PageWish
) -> Page[ShownTest]:
    """Tests with this health now, those first that hit most pull requests.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing(
        "flaky-tests/list-unhealthy-tests", repository.org_id, repository.id, (status.value,)
    )
    asked = pages.asked(runtime, listing, wish)

    def find(session: Tx, _: int, before: Found[ShownTest] | None) -> Found[ShownTest]:
        home = records.home_of(session, runtime, repository, asked.now)
        cut, cases = pages.cut(session, UnhealthyRows(repository.id, status), asked)
        known = {row.case.no: row for row in shelf.rows_by(home.settings, before)}
        rows = records.shown(session, home, cases, known)
        return Found(cut, tuple(rows), records.next_expiry(home, rows), home.settings)

    key = (listing, repository, asked.boundary, asked.size)
    question = Question(key, _revision_of(repository), find)
    found = await shelf.found(runtime, question, asked.now)
    return pages.page_of(runtime.keys, listing, asked, found.cut, found.rows)


@dataclass(frozen=True, slots=True)
class FailingWish:
    """Tests that failed in `[since, until)`, a page of them."""

    since: datetime
    until: datetime
    page: PageWish


class FailingTest(NamedTuple):
    """A test that failed, with its rates now, and the ways in which it failed in the range."""

    test: ShownTest
    rates: Rates
    failures: CommonFailures


_TEST = attrgetter("test")


async def failing(
    runtime: Runtime, repository: RepositoryRecord, wish: FailingWish
) -> Page[FailingTest]:
    """Tests that failed in the range, those first that failed most often.

    Raises Invalid(invalid_time_range), Malformed(invalid_page_token, page_token_expired).
    """
    span = Span(wish.since, wish.until)
    if span.until < span.since or span.until - span.since > SPAN_MAX:
        raise Invalid(
            "`end_time` must not lie before `start_time`, nor more than 7 days behind it.",
            code="invalid_time_range",
        )
    filters = (paging.micros(span.since), paging.micros(span.until))
    listing = Listing("flaky-tests/list-failing-tests", repository.org_id, repository.id, filters)
    asked = pages.asked(runtime, listing, wish.page)
    # Whoever polls moves the range with the time; most often the same attempts lie in it.
    length = span.until - span.since

    def stamp(session: Tx) -> AsOf:
        return orders.as_of(session, repository.id, span)

    def find(session: Tx, as_of: AsOf, before: Found[FailingTest] | None) -> Found[FailingTest]:
        order = _order(runtime, session, span, repository.id, (as_of, asked.now))
        home = records.home_of(session, runtime, repository, asked.now)
        cut, ranks = pages.cut(session, FailingRows(order), asked)
        nos = [rank.no for rank in ranks]
        known = {row.test.case.no: row for row in shelf.rows_by(home.settings, before)}
        failures = order.common_failures(session, nos)
        rows = measured(session, home, (nos, failures), known)
        return Found(cut, tuple(rows), _until(session, home, rows), home.settings)

    key = (listing.endpoint, length, repository, asked.boundary, asked.size)
    found = await shelf.found(runtime, Question(key, stamp, find), asked.now)
    return pages.page_of(runtime.keys, listing, asked, found.cut, found.rows)


def _order(
    runtime: Runtime, session: Tx, span: Span, repository_id: int, now: tuple[AsOf, datetime]
) -> Order:
    """The order of the whole list, which all of its pages share.

    Whoever polls asks for spans of one length; each order is made from the one before.
    """
    as_of, present = now
    key = (repository_id, span.until - span.since)
    kept = runtime.memory.test_orders.get(key)
    if isinstance(kept, Order) and (kept.span, kept.revision) == (span, as_of.revision):
        return kept
    if isinstance(kept, Order) and _can_move(kept, span, as_of, present):
        order = orders.moved(session, kept, span, as_of)
    else:
        order = orders.counted(session, repository_id, span, as_of)
    runtime.memory.test_orders.put(key, order)
    return order


def _can_move(order: Order, span: Span, as_of: AsOf, now: datetime) -> bool:
    """Whether all that lies between is still there, and less than what would be counted anew."""
    first, last = sorted((order.span, span), key=attrgetter("since"))
    return (
        as_of.removal <= order.revision <= as_of.revision
        and first.since > now - EVIDENCE_KEPT
        and last.since < first.until
    )


def _until(session: Tx, home: Home, rows: Sequence[FailingTest]) -> datetime | None:
    """When time alone changes rates or which of them is quarantined."""
    moments = (
        figures.next_change(session, home.repository.id, home.now),
        records.next_expiry(home, map(_TEST, rows)),
    )
    return min((at for at in moments if at is not None), default=None)


def measured(
    session: Tx,
    home: Home,
    asked: tuple[Sequence[int], Mapping[int, CommonFailures]],
    before: Mapping[int, FailingTest] = MappingProxyType({}),
) -> list[FailingTest]:
    """Tests by number with their rates now, and the ways in which they failed.

    `before` are rows that were shown before, as `test_records.shown` has tests.
    """
    repository_id, (nos, failures) = home.repository.id, asked
    rates = figures.rates(session, home.measures, repository_id, nos, home.now)
    listed = listings.records(session, repository_id, nos)
    shown_before = {no: row.test for no, row in before.items()}
    found = []
    for test in records.shown(session, home, listed, shown_before):
        no = test.case.no
        row = FailingTest(test, rates[no], failures.get(no, ()))
        known = before.get(no)
        found.append(known if known is not None and _is_same(known, row) else row)
    return found


def _is_same(known: FailingTest, row: FailingTest) -> bool:
    return known.test is row.test and known.failures is row.failures and known.rates == row.rates


def with_figures(session: Tx, home: Home, nos: Sequence[int], span: Span) -> list[ShownTest]:
    """The same as tests that show these figures themselves, with the span's failures."""
    ways = test_ways.common_failures(session, home.repository.id, nos, span)
    return [
        test._replace(rates=rates, failures=failures)
        for test, rates, failures in measured(session, home, (nos, ways))
    ]


@dataclass(frozen=True, slots=True)
class FailingRows:
    """Failing tests in memory: they are counted over their span, not found in order."""

    order: Order

    def count(self, _session: Tx) -> int:
        """How many there are."""
        return self.order.length

    def after(self, session: Tx, key: Key | None, limit: int) -> Sequence[Rank]:
        """Those behind the key, or the first ones."""
        return self.order.after(session, key, limit)

    def before(self, session: Tx, key: Key | None, limit: int) -> Sequence[Rank]:
        """Those before the key, or the last ones, in the list's order."""
        return self.order.before(session, key, limit)

    def key(self, row: Rank) -> Key:
        """A row's place in the order."""
        return row.minus, row.id


class Quarantined(NamedTuple):
    """A quarantined test, by what, and since when."""

    test: ShownTest
    setting: QuarantineSetting
    since: datetime


async def quarantined(
    runtime: Runtime, repository: RepositoryRecord, wish: PageWish
) -> Page[Quarantined]:
    """Tests that are quarantined now, those first whose override or status is newest.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing("flaky-tests/list-quarantined-tests", repository.org_id, repository.id)
    asked = pages.asked(runtime, listing, wish)

    def find(session: Tx, _: int, before: Found[Quarantined] | None) -> Found[Quarantined]:
        home = records.home_of(session, runtime, repository, asked.now)
        if not home.settings.quarantine_enabled:
            return Found(pages.Cut(0, 0), (), None)
        cut, moments = pages.cut(session, _Newest(rows_of(home)), asked)
        switched = quarantine.since_of(session, repository.id)
        rules = (home.settings, switched)
        known = {row.test.case.no: row for row in shelf.rows_by(rules, before)}
        rows = _quarantined(session, home, [moment.no for moment in moments], switched, known)
        until = quarantine.next_expiry(session, repository.id, asked.now)
        return Found(cut, tuple(rows), until, rules)

    key = (listing, repository, asked.boundary, asked.size)
    question = Question(key, _revision_of(repository), find)
    found = await shelf.found(runtime, question, asked.now)
    return pages.page_of(runtime.keys, listing, asked, found.cut, found.rows)


def rows_of(home: Home) -> QuarantinedRows:
    """The quarantined tests of a repository in which quarantining is on."""
    settings = home.settings
    statuses = settings.auto_quarantine_statuses if settings.auto_quarantine_enabled else ()
    return QuarantinedRows(home.repository.id, statuses, home.now)


def _quarantined(
    session: Tx,
    home: Home,
    nos: Sequence[int],
    switched: Since,
    before: Mapping[int, Quarantined],
) -> list[Quarantined]:
    """The tests with the moment from which the rule held for them."""
    listed = listings.records(session, home.repository.id, nos)
    shown_before = {no: row.test for no, row in before.items()}
    found = []
    for test in records.shown(session, home, listed, shown_before):
        known = before.get(test.case.no)
        row = known if known is not None and known.test is test else _row(home, test, switched)
        if row is not None:
            found.append(row)
    return found


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


@dataclass(frozen=True, slots=True)
class _Newest:
    """Quarantined tests with keys that a page token can hold."""

    rows: QuarantinedRows

    def count(self, session: Tx) -> int:
        return self.rows.count(session)

    def after(self, session: Tx, key: Key | None, limit: int) -> Sequence[Moment]:
        return self.rows.after(session, _moment(key), limit)

    def before(self, session: Tx, key: Key | None, limit: int) -> Sequence[Moment]:
        return self.rows.before(session, _moment(key), limit)

    def key(self, row: Moment) -> Key:
        return paging.micros(row.at), row.no


def _moment(key: Key | None) -> Moment | None:
    return None if key is None else Moment(paging.instant(int(key[0])), int(key[1]))


def _revision_of(repository: RepositoryRecord) -> Callable[[Tx], int]:
    return lambda session: test_cases.revision_of(session, repository.id)
