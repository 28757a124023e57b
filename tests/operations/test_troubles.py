"""Troubles of a process: what is said of them, and what ends them."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.github.troubles import HostTroubles
from service import troubles
from service.troubles import Part, Trouble, TroubleName, Troubles
from tests.harness.databases import SetClock

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
HOST = "github.com"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def known(clock: SetClock) -> Troubles:
    return Troubles(clock)


def limited(clock: SetClock, owner: str, seconds: float = 60) -> Trouble:
    """A secondary limit of an account."""
    until = clock.now() + timedelta(seconds=seconds)
    return Trouble(TroubleName.SECONDARY_RATE_LIMIT, clock.now(), until, HOST, owner)


def test_a_sentence_says_what_since_when_until_when_and_who_acts(clock: SetClock):
    found = limited(clock, "octo", 240)
    assert troubles.sentence(found, clock.now()) == (
        "github.com asks Headgate to wait (secondary rate limit), since 14:00 UTC, until 14:04 "
        "UTC. Headgate goes on by itself."
    )
    later = clock.now() + timedelta(minutes=5)
    assert "since 14:00 UTC; the wait was over at 14:04 UTC." in troubles.sentence(found, later)
    away = Trouble(TroubleName.PROVIDER_AWAY, clock.now(), host=HOST, note="it answers 503")
    assert "since 14:00 UTC (it answers 503). " in troubles.sentence(away, clock.now())


def test_the_page_lists_every_trouble_with_who_acts():
    row = r"^\| `([a-z_]+)` \|[^|]+\| (operator|nobody) \| ([^|]+) \|$"
    rows = re.findall(row, PAGE.read_text("utf-8"), re.MULTILINE)
    at = SetClock().now()
    found = [Trouble(name, at) for name in TroubleName]
    assert rows == [(one.name.value, one.who_must_act, troubles.remedy(one)) for one in found]


def test_a_trouble_that_lasts_keeps_its_beginning(known: Troubles, clock: SetClock):
    known.report(limited(clock, "octo"))
    first = clock.now()
    clock.present += timedelta(minutes=1)
    known.report(limited(clock, "octo"))
    (trouble,) = known.all()
    assert (trouble.since, trouble.until) == (first, clock.now() + timedelta(minutes=1))


def test_what_was_asked_before_the_report_proves_nothing(known: Troubles, clock: SetClock):
    asked_s = clock.monotonic_s()
    clock.present += timedelta(seconds=1)
    known.report(limited(clock, "octo"))
    known.end(Part.SECONDARY_LIMIT, HOST, "octo", asked_s=asked_s)
    assert known.all()
    known.end(Part.SECONDARY_LIMIT, HOST, "octo", asked_s=clock.monotonic_s())
    assert known.all() == ()


def test_time_alone_ends_no_trouble_but_a_success_ends_all_whose_time_is_over(
    known: Troubles, clock: SetClock
):
    known.report(limited(clock, ""))
    known.report(limited(clock, "acme", 600))
    clock.present += timedelta(minutes=2)
    assert len(known.all()) == 2
    known.end(Part.SECONDARY_LIMIT, HOST, "octo")
    assert [one.owner for one in known.all()] == ["acme"]


def test_a_limit_is_shown_to_its_account_and_named_to_no_other(known: Troubles, clock: SetClock):
    known.report(limited(clock, "acme"))
    assert known.of(HOST, "Acme") == known.all()
    assert known.of(HOST, "octo") == ()
    assert [one.owner for one in known.public()] == [""]


def test_limits_of_the_app_and_of_the_account_are_told_once(known: Troubles, clock: SetClock):
    known.report(limited(clock, ""))
    clock.present += timedelta(seconds=10)
    known.report(limited(clock, "acme"))
    for told in (known.of(HOST, "acme"), known.public()):
        (trouble,) = told
        assert trouble.since == clock.now() - timedelta(seconds=10)
        assert trouble.until == clock.now() + timedelta(seconds=60)


def test_a_time_limit_says_less_than_a_cause_that_is_known(known: Troubles, clock: SetClock):
    locked = Trouble(TroubleName.DATABASE_LOCKED, clock.now())
    known.report(locked, "writes")
    known.report(replace(locked, name=TroubleName.DATABASE_SILENT), "writes")
    assert [one.name for one in known.all()] == [TroubleName.DATABASE_LOCKED]


def test_the_sides_of_a_trouble_count_as_one_the_gravest_of_them(known: Troubles, clock: SetClock):
    known.report(Trouble(TroubleName.DATABASE_LOCKED, clock.now()), "writes")
    clock.present += timedelta(seconds=5)
    known.report(Trouble(TroubleName.DATABASE_SILENT, clock.now()), "reads")
    (trouble,) = known.all()
    assert trouble.name is TroubleName.DATABASE_SILENT
    assert trouble.since == clock.now() - timedelta(seconds=5)
    known.end(Part.DATABASE, side="reads")
    assert [one.name for one in known.all()] == [TroubleName.DATABASE_LOCKED]


def test_a_limit_is_its_accounts_in_whatever_case_it_is_named(known: Troubles, clock: SetClock):
    known.report(limited(clock, "Acme"))
    assert known.of(HOST, "acme") == known.of(HOST, "ACME") == known.all() != ()
    known.end(Part.SECONDARY_LIMIT, HOST, "aCme")
    assert known.all() == ()


@pytest.mark.parametrize("resource", ["core", "graphql"])
def test_a_spent_limit_is_told_to_its_account_until_its_next_success(
    known: Troubles, clock: SetClock, resource: str
):
    host = HostTroubles(HOST, clock, known)
    host.spent("Acme", resource, clock.now() + timedelta(hours=1))
    assert [one.name for one in known.of(HOST, "Acme")] == [TroubleName.RATE_LIMIT]
    host.spent("Acme", resource, None)
    assert known.all() == ()
