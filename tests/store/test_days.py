"""Figures of tests are exact whether days are open, counted, or counted in part.

Each is compared with what follows from the uploads themselves, gone through one by one.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pytest
from sqlalchemy import Connection, Table, select

from service.accounts.store import access
from service.testhealth.detector import figures as windows
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import bitmaps, cases, day_counts, days, failing, figures, uploads
from service.testhealth.store.cases import Place
from service.testhealth.store.day_counts import daily, failure_daily
from service.testhealth.store.days import OpenDay, Span
from service.testhealth.store.figures import Rates
from service.testhealth.store.numbered import ABOVE_ALL
from service.testhealth.store.sets import OutcomeSets
from tests.harness.evidence import HEADLINE, Ledger, Ran
from tests.store.conftest import NOW, a_repository

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
KEY = RepositoryKey("octo", "github.test/octo/widgets")
WORDS = ("p", "p", "p", "f", "fp", "ff", "s", "ss")
NAMES = "abcdefghij"
NOS = range(1, len(NAMES) + 1)


@dataclass
class Told:
    """A repository, and every trusted upload that it holds by its id."""

    session: Connection
    ledger: Ledger
    sent: dict[str, Ran] = field(default_factory=dict)

    @property
    def here(self) -> int:
        """The repository's number."""
        return self.ledger.place.repository_id

    def take_in(self, ran: Ran) -> None:
        """Take an upload in."""
        before = uploads.eligible(self.session, self.here, NOW - 400 * DAY)
        self.ledger.take_in(self.session, ran)
        for fresh in uploads.eligible(self.session, self.here, NOW - 400 * DAY) - before:
            self.sent[fresh] = ran

    def remove(self, upload_id: str) -> None:
        """Remove an upload, as far as counts go."""
        ran = self.sent.pop(upload_id)
        uploads.remove(self.session, upload_id)
        days.open_day(self.session, self.ledger.place, ran.at, NOW)

    def words(self, name: str, span: Span) -> list[tuple[datetime, str, str]]:
        """What a test did in the uploads of a span: when, its attempts, its headline."""
        return [
            (ran.at, ran.tests[name], ran.headlines.get(name, HEADLINE))
            for ran in self.sent.values()
            if name in ran.tests and span.since <= ran.at < span.until
        ]

    def rate(self, name: str, span: Span) -> float:
        """The share of its attempts that failed."""
        letters = "".join(word for _, word, _ in self.words(name, span))
        return windows.rate(letters.count("p"), letters.count("f"))


@pytest.fixture
def told(session: Connection) -> Told:
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    made = Told(session, Ledger(Place(org.id, repository.id), KEY, NOW))
    made.take_in(Ran(NOW - 100 * HOUR, dict.fromkeys(NAMES, "p")))
    return made


def an_upload(chance: Random) -> Ran:
    """Some tests at any hour of nine days, each with any end."""
    some = chance.sample(NAMES, chance.randint(1, len(NAMES)))
    return Ran(
        NOW - chance.randint(-24, 200) * HOUR,
        {name: chance.choice(WORDS) for name in some},
        is_trusted=chance.random() < 0.9,
        headlines={name: f"way {chance.randint(1, 3)}" for name in some},
    )


def changed(told: Told, chance: Random) -> None:
    """Let something happen: uploads come, one goes, days are counted, some of them in part."""
    for _ in range(chance.randint(0, 3)):
        told.take_in(an_upload(chance))
    if told.sent and chance.random() < 0.4:
        told.remove(chance.choice(sorted(told.sent)))
    found = [day.day for day in told.ledger.open_days(told.session)]
    for day in chance.sample(found, chance.randint(0, len(found))):
        told.ledger.count(told.session, day, parts=chance.choice((0, 1, 1000)))


def check_rates(told: Told, now: datetime) -> None:
    rates = figures.rates(told.session, OutcomeSets(), told.here, list(NOS), now)
    tick = timedelta(microseconds=1)
    for no, name in enumerate(told_names(told), 1):
        week, day = (
            told.rate(name, Span(now - length + tick, now + tick))
            for length in (windows.WEEK, windows.DAY)
        )
        assert rates[no] == Rates(week, day)


def told_names(told: Told) -> list[str]:
    """Names of tests by number."""
    table = cases.cases
    asked = select(table.c.name).where(table.c.repository_id == told.here).order_by(table.c.no)
    return list(told.session.execute(asked).scalars())


def check_failing(told: Told, span: Span) -> None:
    counts: Counter[int] = Counter()
    ways: dict[int, dict[str, tuple[int, datetime]]] = defaultdict(dict)
    for no, name in enumerate(told_names(told), 1):
        for at, word, headline in told.words(name, span):
            failed = word.count("f")
            counts[no] += failed
            if failed:
                before, last_at = ways[no].get(headline, (0, at))
                ways[no][headline] = before + failed, max(at, last_at)
    found = failing.counted(told.session, told.here, span, len(NAMES))
    wanted = sorted((-count, no) for no, count in counts.items() if count)
    assert found.top(told.session, 100) == [no for _, no in wanted]
    shown = failing.common_failures(told.session, told.here, list(NOS), span)
    assert {
        no: {each.headline: (each.count, each.last_at) for each in of_test}
        for no, of_test in shown.items()
    } == ways
    for of_test in shown.values():
        order = [(each.count, each.last_at) for each in of_test]
        assert order == sorted(order, reverse=True)


def check_runs(told: Told) -> None:
    results = figures.results(told.session, OutcomeSets(), told.here, list(NOS))
    runs = figures.last_runs(told.session, OutcomeSets(), told.here, list(NOS))
    ever = Span(NOW - 400 * DAY, NOW + 400 * DAY)
    for no, name in enumerate(told_names(told), 1):
        ran = told.words(name, ever)
        assert results[no] == sum(1 for _, word, _ in ran if set(word) & set("pf"))
        assert runs.get(no) == max((at for at, _, _ in ran), default=None)


@pytest.mark.parametrize("seed", range(4))
def test_figures_are_those_of_the_uploads_whatever_is_counted(told, monkeypatch, seed):
    monkeypatch.setattr(day_counts, "TESTS_AT_ONCE", 3)
    chance = Random(seed)
    for _ in range(12):
        changed(told, chance)
        check_rates(told, NOW + chance.randint(-20, 40) * HOUR)
        until = NOW - chance.randint(-24, 24) * HOUR
        check_failing(told, Span(until - chance.randint(1, 168) * HOUR, until))
        check_runs(told)


def counted_rows(session: Connection, here: int) -> list[list[tuple[object, ...]]]:
    """All counts of a repository, but for its number."""

    def rows(table: Table) -> list[tuple[object, ...]]:
        columns = [column for column in table.c if column.name not in ("org_id", "repository_id")]
        asked = select(*columns).where(table.c.repository_id == here)
        return sorted(tuple(row) for row in session.execute(asked))

    return [rows(daily), rows(failure_daily)]


def packed_counts(session: Connection, here: int) -> list[dict[int, int]]:
    """The failed attempts of each day on which a test failed."""
    of_days, _ = days.failed(session, here, Span(NOW - 30 * DAY, NOW + 30 * DAY))
    return [dict(bitmaps.counts_in(packed)) for packed in of_days if packed]


@pytest.mark.parametrize("seed", range(4))
def test_equal_uploads_in_any_order_end_in_equal_counts(session, told, monkeypatch, seed):
    monkeypatch.setattr(day_counts, "TESTS_AT_ONCE", 3)
    chance = Random(seed)
    for _ in range(10):
        changed(told, chance)
    told.ledger.count(session)
    org = access.ensure_organization(session, "github.test", "7", "octo")
    other = access.upsert_repository(session, org.id, a_repository("gears", "102"))
    again = Told(session, Ledger(Place(org.id, other.id), KEY, NOW))
    # Tests get their numbers in the order in which they are first seen.
    numbering = Ran(NOW, dict.fromkeys(told_names(told), "p"))
    again.take_in(numbering)
    again.remove(next(iter(again.sent)))
    shuffled = list(told.sent.values())
    chance.shuffle(shuffled)
    for ran in shuffled:
        again.take_in(ran)
        if chance.random() < 0.3:
            again.ledger.count(session)
    again.ledger.count(session)
    assert counted_rows(session, again.here) == counted_rows(session, told.here)
    assert packed_counts(session, told.here) == packed_counts(session, again.here)


def test_a_day_that_changes_while_it_is_counted_stays_open(session, told):
    (day, *_) = told.ledger.open_days(session)
    sums = day_counts.added_up(day_counts.read(session, OutcomeSets(), day))
    told.take_in(Ran(NOW - 100 * HOUR, {"a": "f"}))
    assert not any(day_counts.write(session, sums, part) for part in sums.parts())
    days.close(session, day, sums.failed)
    assert told.ledger.open_days(session) == [OpenDay(day.place, day.day, day.version + 1)]


def test_two_that_count_the_same_day_count_it_once(session, told):
    (day,) = told.ledger.open_days(session)
    sums = day_counts.added_up(day_counts.read(session, OutcomeSets(), day))
    told.ledger.count(session)
    assert not any(day_counts.write(session, sums, part) for part in sums.parts())
    assert figures.results(session, OutcomeSets(), told.here, list(NOS)) == dict.fromkeys(NOS, 1)


def test_a_day_is_due_an_hour_after_its_end_and_once_it_is_quiet(session, told):
    (day,) = told.ledger.open_days(session)
    end = day.span.until
    days.open_day(session, day.place, day.span.since, end)
    (day,) = told.ledger.open_days(session)
    assert days.due(session, end + HOUR - timedelta(seconds=1)) == ()
    assert days.due(session, end + HOUR) == (day,)
    days.open_day(session, day.place, day.span.since, end + 5 * HOUR)
    assert days.due(session, end + 5 * HOUR + timedelta(minutes=4)) == ()
    assert len(days.due(session, end + 5 * HOUR + timedelta(minutes=5))) == 1


def test_the_numbers_around_one_are_those_of_the_whole_list(session, told):
    chance = Random(7)
    for _ in range(8):
        told.take_in(an_upload(chance))
    found = failing.counted(session, told.here, Span(NOW - 200 * HOUR, NOW), len(NAMES))
    whole = found.after(session, 0, 100)
    assert whole == sorted(found.top(session, 100))
    assert len(whole) == found.count(session) > 3
    assert found.before(session, ABOVE_ALL, 3) == whole[-3:]
    assert found.among(session, range(len(NAMES) + 9)) == set(whole)
    for place, no in enumerate(whole):
        assert found.after(session, no, 3) == whole[place + 1 : place + 4]
        assert found.before(session, no, 3) == whole[max(0, place - 3) : place]
