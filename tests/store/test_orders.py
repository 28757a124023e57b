"""What is kept of lists of tests and carried on is what would be counted anew."""

from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.database.stamps import Renewal
from service.testhealth.detector import figures
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import figures as test_figures
from service.testhealth.store import orders, uncounted, uploads_rows, ways
from service.testhealth.store.cases import Place
from service.testhealth.store.figures import Measures
from service.testhealth.store.listings import Span
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.uncounted import Part
from service.testhealth.store.uploads_rows import Day
from tests.harness.evidence import Ledger, Ran
from tests.store.conftest import NOW, a_repository

HOUR = timedelta(hours=1)
KEY = RepositoryKey("octo", "github.test/octo/widgets")
WORDS = ("p", "f", "fp", "ff", "s")
NAMES = "abcdefghij"


@pytest.fixture
def ledger(session: Connection) -> Ledger:
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    return Ledger(Place(org.id, repository.id), KEY, NOW)


def an_upload(chance: Random) -> Ran:
    """Some tests at any hour of four days, each of them with any end."""
    some = chance.sample(NAMES, chance.randint(1, len(NAMES)))
    at = NOW - chance.randint(-24, 72) * HOUR
    return Ran(
        at,
        {name: chance.choice(WORDS) for name in some},
        is_trusted=chance.random() < 0.9,
        headlines={name: f"way {chance.randint(1, 3)}" for name in some},
    )


def a_span(chance: Random) -> Span:
    """Two days, which end at about now."""
    until = NOW - chance.randint(-12, 24) * HOUR
    return Span(until - 48 * HOUR, until)


@pytest.mark.parametrize("seed", range(4))
def test_an_order_that_is_moved_is_the_one_that_is_counted(session, ledger, monkeypatch, seed):
    # Of a few tests, too, some move and the others stay, or all are written down again at times.
    monkeypatch.setattr(orders, "MOVED_APART", seed % 2)
    monkeypatch.setattr(orders, "RUNS_MAX", 1 + seed // 2)
    monkeypatch.setattr(ways, "KEPT_MAX", (5, 1000)[seed // 2])
    chance = Random(seed)
    here = ledger.place.repository_id
    ledger.take_in(session, Ran(NOW - HOUR, dict.fromkeys(NAMES, "f")))
    span = Span(NOW - 48 * HOUR, NOW)
    order = orders.counted(session, here, span, orders.as_of(session, here, span))
    for _ in range(20):
        for _ in range(chance.randint(0, 2)):
            ledger.take_in(session, an_upload(chance))
        span = a_span(chance)
        as_of = orders.as_of(session, here, span)
        order = orders.moved(session, order, span, as_of)
        counted = orders.counted(session, here, span, as_of)
        assert (order.span, order.revision, order.length) == (span, as_of.revision, counted.length)
        nos = [rank.no for rank in counted.after(session, None, chance.randint(0, 5))]
        assert order.common_failures(session, nos) == counted.common_failures(session, nos)
        # Pages that are not asked for meanwhile are put in order later.
        if chance.random() < 0.7:
            assert order.after(session, None, 3) == counted.after(session, None, 3)
            continue
        ranks = counted.after(session, None, 100)
        assert len(ranks) == order.length
        assert order.after(session, None, 100) == order.before(session, None, 100) == ranks
        for place, (minus, test_id, _) in enumerate(ranks):
            key = minus, test_id
            assert order.after(session, key, 3) == ranks[place + 1 : place + 4]
            assert order.before(session, key, 3) == ranks[max(0, place - 3) : place]


@pytest.mark.parametrize("seed", range(4))
def test_rates_from_what_is_kept_of_cut_days_are_the_rates(session, ledger, seed):
    chance = Random(seed)
    here = ledger.place.repository_id
    ledger.take_in(session, Ran(NOW, dict.fromkeys(NAMES, "p")))
    kept = Measures(OutcomeSets())
    for _ in range(15):
        for _ in range(chance.randint(0, 2)):
            ledger.take_in(session, an_upload(chance))
        now = NOW + chance.randint(-20, 200) * HOUR
        nos = chance.sample(range(1, len(NAMES) + 1), 5)
        anew = Measures(OutcomeSets())
        found = test_figures.rates(session, kept, here, nos, now)
        assert found == test_figures.rates(session, anew, here, nos, now)


def test_what_comes_late_or_is_counted_late_of_a_day_before_today_shows_in_rates(session, ledger):
    place, kept, at = ledger.place, Measures(OutcomeSets()), NOW - 48 * HOUR

    def rate() -> float:
        return test_figures.rates(session, kept, place.repository_id, [1], NOW)[1].week

    ledger.take_in(session, Ran(at, {"a": "f"}))
    assert rate() == 1.0
    ledger.take_in(session, Ran(at, {"a": "p"}))
    assert rate() == 0.5
    uncounted.put(session, place, "late", [Part(1, "[]", "[]")])
    ledger.take_in(session, Ran(at, {"a": "p"}))
    assert rate() == 0.333333
    uncounted.take(session, "late")
    uploads_rows.add_days(session, place, [Day(1, figures.day_of(at), results=1, passed=1)])
    assert rate() == 0.25


async def test_what_stands_under_a_stamp_is_found_anew_only_under_another(store):
    def found(_: Connection, stamp: int) -> list[int]:
        return [stamp]

    known = await store.renewed(Renewal(None, lambda _: 1, found))
    assert known == (1, [1])
    assert await store.renewed(Renewal(known, lambda _: 1, found)) is known
    assert await store.renewed(Renewal(known, lambda _: 2, found)) == (2, [2])
