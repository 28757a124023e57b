"""The lists of tests: unhealthy ones, failing ones, quarantined ones (API.md 8.2, 8.3)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import NamedTuple

from service.errors import Invalid
from service.flaky.quarantine import QuarantineSetting
from service.operations import paging, test_pages, test_records
from service.operations.paging import Listing
from service.operations.test_pages import Cut, Key, Page, PageWish
from service.operations.test_records import Home, ShownTest
from service.runtime import Runtime
from service.store import test_figures, test_listings, test_quarantine
from service.store.database import Tx
from service.store.records import RepositoryRecord
from service.store.test_listings import Rank, Span, UnhealthyRows
from service.store.test_quarantined import Moment, QuarantinedRows
from service.store.test_sets import OutcomeSets
from service.vocabulary import Health

SPAN_MAX = timedelta(hours=7 * 24)

_place = itemgetter(slice(2))


async def unhealthy(
    runtime: Runtime, repository: RepositoryRecord, status: Health, wish: PageWish
) -> Page[ShownTest]:
    """Tests with this health now, those first that hit most pull requests.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing(
        "flaky-tests/list-unhealthy-tests", repository.org_id, repository.id, (status.value,)
    )
    now = runtime.clock.now()
    boundary = paging.boundary_of(runtime.keys, listing, wish.token, now, test_pages.FIELD)

    def read(session: Tx) -> tuple[Cut[test_listings.ListedCase], list[ShownTest]]:
        home = test_records.home_of(session, repository, now)
        found = test_pages.cut(session, UnhealthyRows(repository.id, status), boundary, wish.size)
        return found, test_records.shown(session, home, found.rows)

    found, rows = await runtime.store.read(read)
    return test_pages.page_of(runtime.keys, listing, found, rows, (wish.size, now))


@dataclass(frozen=True, slots=True)
class FailingWish:
    """Tests that failed in `[since, until)`, a page of them."""

    since: datetime
    until: datetime
    page: PageWish


async def failing(
    runtime: Runtime, repository: RepositoryRecord, asked: FailingWish
) -> Page[ShownTest]:
    """Tests that failed in the range, those first that failed most often.

    Raises Invalid(invalid_time_range), Malformed(invalid_page_token, page_token_expired).
    """
    span, wish = Span(asked.since, asked.until), asked.page
    if span.until < span.since or span.until - span.since > SPAN_MAX:
        raise Invalid(
            "`end_time` must not lie before `start_time`, nor more than 7 days behind it.",
            code="invalid_time_range",
        )
    filters = (paging.micros(span.since), paging.micros(span.until))
    listing = Listing("flaky-tests/list-failing-tests", repository.org_id, repository.id, filters)
    now = runtime.clock.now()
    boundary = paging.boundary_of(runtime.keys, listing, wish.token, now, test_pages.FIELD)

    def read(session: Tx) -> tuple[Cut[Rank], list[ShownTest]]:
        home = test_records.home_of(session, repository, now)
        ranks = test_listings.ranks(session, repository.id, span)
        found = test_pages.cut(session, FailingRows(ranks), boundary, wish.size)
        nos = [rank.no for rank in found.rows]
        return found, with_figures(session, runtime.store.outcome_sets, home, nos, span)

    found, rows = await runtime.store.read(read)
    return test_pages.page_of(runtime.keys, listing, found, rows, (wish.size, now))


def with_figures(
    session: Tx, sets: OutcomeSets, home: Home, nos: Sequence[int], span: Span
) -> list[ShownTest]:
    """Tests by number with their rates now, and the ways in which they failed in the span."""
    repository_id = home.repository.id
    rates = test_figures.rates(session, sets, repository_id, nos, home.now)
    failures = test_figures.common_failures(session, repository_id, nos, span)
    listed = test_listings.records(session, repository_id, nos)
    return [
        each._replace(rates=rates[each.case.no], failures=failures.get(each.case.no, ()))
        for each in test_records.shown(session, home, listed)
    ]


@dataclass(frozen=True, slots=True)
class FailingRows:
    """Failing tests in memory, sorted: they are counted over their span, not found in order."""

    ranks: Sequence[Rank]

    def count(self, _session: Tx) -> int:
        """How many there are."""
        return len(self.ranks)

    def after(self, _session: Tx, key: Key | None, limit: int) -> Sequence[Rank]:
        """Those behind the key, or the first ones."""
        first = 0 if key is None else bisect_right(self.ranks, key, key=_place)
        return self.ranks[first : first + limit]

    def before(self, _session: Tx, key: Key | None, limit: int) -> Sequence[Rank]:
        """Those before the key, or the last ones, in the list's order."""
        end = len(self.ranks) if key is None else bisect_left(self.ranks, key, key=_place)
        return self.ranks[max(0, end - limit) : end]

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
    now = runtime.clock.now()
    boundary = paging.boundary_of(runtime.keys, listing, wish.token, now, test_pages.FIELD)

    def read(session: Tx) -> tuple[Cut[Moment], list[Quarantined]]:
        home = test_records.home_of(session, repository, now)
        if not home.settings.quarantine_enabled:
            return Cut((), 0, 0), []
        found = test_pages.cut(session, _Newest(_rows_of(home)), boundary, wish.size)
        return found, _quarantined(session, home, [moment.no for moment in found.rows])

    found, rows = await runtime.store.read(read)
    return test_pages.page_of(runtime.keys, listing, found, rows, (wish.size, now))


def _rows_of(home: Home) -> QuarantinedRows:
    settings = home.settings
    statuses = settings.auto_quarantine_statuses if settings.auto_quarantine_enabled else ()
    return QuarantinedRows(home.repository.id, statuses, home.now)


def _quarantined(session: Tx, home: Home, nos: Sequence[int]) -> list[Quarantined]:
    """The tests with the moment from which the rule held for them."""
    switched = test_quarantine.since_of(session, home.repository.id)
    listed = test_listings.records(session, home.repository.id, nos)
    found = []
    for test in test_records.shown(session, home, listed):
        setting = test_records.setting_of(home, test.case)
        moments: tuple[datetime | None, ...]
        if setting is QuarantineSetting.ALWAYS_QUARANTINE:
            moments = (test.case.override_at, switched.quarantine_since)
        elif setting is QuarantineSetting.AUTO_QUARANTINE:
            moments = (test.case.since, switched.quarantine_since, switched.auto_since)
        else:
            continue
        since = max(moment for moment in moments if moment is not None)
        found.append(Quarantined(test, setting, since))
    return found


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
