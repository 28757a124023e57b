"""Sets that wait to be counted: whoever reads sees them counted already."""

from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import Connection, select

from service.accounts.store import access
from service.testhealth.detector import figures, tallying
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import (
    cases,
    tallies,
    today,
    uploads,
    uploads_rows,
)
from service.testhealth.store import (
    figures as test_figures,
)
from service.testhealth.store.cases import Place
from service.testhealth.store.figures import Measures
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tallies import Due
from service.testhealth.store.uploads_rows import Day
from tests.harness.evidence import Ledger, Ran
from tests.store.conftest import NOW, a_repository

HOUR = timedelta(hours=1)
TODAY = figures.day_of(NOW)
KEY = RepositoryKey("octo", "github.test/octo/widgets")
NAMES = [f"test_{number}" for number in range(7)]
NOS = range(1, len(NAMES) + 1)
CASES = uploads_rows.cases


@pytest.fixture
def ledger(session: Connection) -> Ledger:
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    return Ledger(Place(org.id, repository.id), KEY, NOW)


def drawn(chance: Random) -> Ran:
    """An upload of today or the day before, of some of the tests."""
    words = ("p", "p", "p", "s", "f", "fp", "ffp")
    tests = {name: chance.choice(words) for name in chance.sample(NAMES, 4)}
    return Ran(NOW - chance.randint(0, 30) * HOUR, tests)


def told(session: Connection, ledger: Ledger, measures: Measures) -> dict[int, object]:
    """What is told of each test: results, rates, and when it ran last."""
    here, sets = ledger.place.repository_id, measures.sets
    results = test_figures.results(session, sets, here, NOS)
    rates = test_figures.rates(session, measures, here, NOS, NOW)
    known = dict(session.execute(select(CASES.c.no, CASES.c.last_run_at)).all())
    return {
        no: (results[no], rates[no], tallies.last_run(session, sets, here, no, known[no]))
        for no in NOS
    }


@pytest.mark.parametrize("seed", range(4))
def test_adding_sets_up_changes_nothing_of_what_is_told(session, ledger, monkeypatch, seed):
    monkeypatch.setattr(today, "CARRIED_MAX", (3, 500)[seed % 2])
    chance = Random(seed)
    kept = Measures(OutcomeSets())
    ledger.take_in(session, Ran(NOW - 40 * HOUR, dict.fromkeys(NAMES, "fp")))
    for _ in range(12):
        for _ in range(chance.randint(0, 3)):
            ledger.take_in(session, drawn(chance))
            if chance.random() < 0.2:
                ledger.add_up(session, kept.sets, TODAY, chance.randint(1, 5))
        before = told(session, ledger, Measures(OutcomeSets()))
        assert told(session, ledger, kept) == before
        day = TODAY - chance.randint(0, 1)
        ledger.add_up(session, kept.sets, day, chance.randint(1, 5))
        assert told(session, ledger, kept) == before
        assert told(session, ledger, Measures(OutcomeSets())) == before


@pytest.mark.parametrize("pieces", [0, 1, 1000])
def test_what_is_taken_back_counts_no_more_wherever_its_count_is(session, ledger, pieces):
    sets = OutcomeSets()
    for _ in range(2):
        ledger.take_in(session, Ran(NOW, dict.fromkeys(NAMES, "p")))
    row = session.execute(select(tallies.tallies.c.upload).limit(1)).scalar_one()
    found = uploads.by_id(session, row)
    assert found is not None
    upload = found.upload
    ledger.add_up(session, sets, TODAY, pieces)
    while tallies.begun(session, sets, upload.id):
        ledger.add_up(session, sets, TODAY, 1)
    tallies.take_back(session, ledger.place, upload)
    here = ledger.place.repository_id
    for _ in range(2):
        assert test_figures.results(session, sets, here, NOS) == dict.fromkeys(NOS, 1)
        ledger.add_up(session, sets, TODAY)


def test_what_is_taken_back_of_today_shows_in_rates(session, ledger):
    here, kept = ledger.place.repository_id, Measures(OutcomeSets())
    ledger.take_in(session, Ran(NOW, {"a": "f"}))
    ledger.take_in(session, Ran(NOW, {"a": "p"}))
    assert test_figures.rates(session, kept, here, [1], NOW)[1].day == 0.5
    cases.note_removal(session, here)
    uploads_rows.add_days(session, ledger.place, [Day(1, TODAY, results=-1, failed=-1)])
    assert test_figures.rates(session, kept, here, [1], NOW)[1].day == 0.0


def test_two_who_add_the_same_rows_up_add_them_once(session, ledger):
    sets, day = OutcomeSets(), Due(ledger.place, TODAY)
    ledger.take_in(session, Ran(NOW, dict.fromkeys(NAMES, "p")))
    slow = tallies.batch(session, sets, day)
    ledger.add_up(session, sets, TODAY)
    assert slow is not None
    assert not tallies.add(session, slow, 0, tallying.piece(slow.tallied, 0, 100))
    found = test_figures.results(session, sets, ledger.place.repository_id, NOS)
    assert found == dict.fromkeys(NOS, 1)


def test_days_are_due_when_they_are_over_or_have_many_rows(session, ledger, monkeypatch):
    monkeypatch.setattr(tallies, "SUMMED_MAX", 3)
    ledger.take_in(session, Ran(NOW, {"a": "p"}))
    assert tallies.due(session, TODAY) == ()
    assert tallies.due(session, TODAY + 1) == (Due(ledger.place, TODAY),)
    for _ in range(2):
        ledger.take_in(session, Ran(NOW, {"a": "s"}))
    assert tallies.due(session, TODAY) == (Due(ledger.place, TODAY),)
