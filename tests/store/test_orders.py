"""What is kept of lists of tests and carried on is what would be counted anew."""

from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import Connection

from service.flaky.identity import RepositoryKey
from service.store import access, test_figures, test_orders
from service.store.test_cases import Place
from service.store.test_listings import Span
from service.store.test_parts import CutDays
from service.store.test_sets import OutcomeSets
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
    return Ran(at, {name: chance.choice(WORDS) for name in some}, is_trusted=chance.random() < 0.9)


def a_span(chance: Random) -> Span:
    """Two days, which end at about now."""
    until = NOW - chance.randint(-12, 24) * HOUR
    return Span(until - 48 * HOUR, until)


@pytest.mark.parametrize("seed", range(4))
def test_an_order_that_is_moved_is_the_one_that_is_counted(session, ledger, seed):
    chance = Random(seed)
    here = ledger.place.repository_id
    ledger.take_in(session, Ran(NOW, dict.fromkeys(NAMES, "p")))
    span = a_span(chance)
    order = test_orders.counted(session, here, span, test_orders.as_of(session, here, span))
    for _ in range(20):
        for _ in range(chance.randint(0, 2)):
            ledger.take_in(session, an_upload(chance))
        span = a_span(chance)
        as_of = test_orders.as_of(session, here, span)
        order = test_orders.moved(session, here, order, span, as_of)
        assert order == test_orders.counted(session, here, span, as_of)


@pytest.mark.parametrize("seed", range(4))
def test_rates_from_what_is_kept_of_cut_days_are_the_rates(session, ledger, seed):
    chance = Random(seed)
    here = ledger.place.repository_id
    ledger.take_in(session, Ran(NOW, dict.fromkeys(NAMES, "p")))
    kept = CutDays(OutcomeSets())
    for _ in range(15):
        for _ in range(chance.randint(0, 2)):
            ledger.take_in(session, an_upload(chance))
        now = NOW + chance.randint(-20, 200) * HOUR
        nos = chance.sample(range(1, len(NAMES) + 1), 5)
        anew = CutDays(OutcomeSets())
        found = test_figures.rates(session, kept, here, nos, now)
        assert found == test_figures.rates(session, anew, here, nos, now)
