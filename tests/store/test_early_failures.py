"""What is stored of failed tests that jobs report early, and how suspected tests are found."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.provenance import Proof
from service.testhealth.early_failures import CaseNames, EarlyFailure, EarlyStanding, is_namesake
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import early_failures, listings, quarantine, suspects
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import StoredOverride
from service.testhealth.suspects import CasePlace
from service.vocabulary import ActorKind, Health, Override
from tests.harness.evidence import Ledger, Ran, a_key
from tests.store.conftest import NOW, a_repository

FAILURE = EarlyFailure(
    *("k1", "a" * 40, "77", 1, "8", "unit", "total", "TestCart", "ui", "tests/ui/test_cart.py"),
    *(Proof.JOB, EarlyStanding.COUNTS, NOW),
)
LATER = timedelta(minutes=1)


@pytest.fixture
def ledger(session: Connection) -> Ledger:
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    return Ledger(Place(org.id, repository.id), RepositoryKey("octo", "github.test/x"), NOW)


@pytest.fixture
def other(session: Connection, ledger: Ledger) -> Ledger:
    """Another repository of the organization."""
    gadgets = access.upsert_repository(session, ledger.place.org_id, a_repository("gadgets", "2"))
    return replace(ledger, place=replace(ledger.place, repository_id=gadgets.id))


def of_job(session: Connection, ledger: Ledger, *, check_run: str = "8", attempt: int = 1):
    here = ledger.place.repository_id
    return early_failures.of_job(session, here, "77", attempt, check_run)


def names_of(session: Connection, ledger: Ledger, nos: list[int]) -> list[str]:
    listed = listings.listed_cases(session, ledger.place.repository_id, nos)
    return [case.name for case in listed]


def test_a_failure_is_stored_once_and_keeps_its_time(session, ledger):
    early_failures.put(session, ledger.place, FAILURE)
    again = replace(FAILURE, heard_at=NOW + LATER, standing=EarlyStanding.QUARANTINED)
    early_failures.put(session, ledger.place, again)
    assert of_job(session, ledger) == (replace(again, heard_at=NOW),)
    assert of_job(session, ledger, check_run="9") == of_job(session, ledger, attempt=2) == ()
    assert early_failures.count_of_run(session, ledger.place.repository_id, "77", 1) == 1


def test_failures_are_of_one_repository_ci_run_and_attempt(session, ledger, other):
    early_failures.put(session, ledger.place, FAILURE)
    for changed in ({"run_id": "78"}, {"run_attempt": 2}, {"check_run": "9"}):
        again = replace(FAILURE, key=f"k{changed}", **changed)
        early_failures.put(session, ledger.place, again)
    early_failures.put(session, other.place, FAILURE)
    assert of_job(session, ledger) == (FAILURE,)
    assert early_failures.count_of_run(session, ledger.place.repository_id, "77", 1) == 2
    early_failures.take_back(session, ledger.place.repository_id, [FAILURE.key], NOW + LATER)
    assert of_job(session, other) == (FAILURE,)


def test_a_failure_that_was_contradicted_says_since_when(session, ledger):
    early_failures.put(session, ledger.place, FAILURE)
    here = ledger.place.repository_id
    early_failures.take_back(session, here, [FAILURE.key, "another"], NOW + LATER)
    found = early_failures.by_key(session, here, FAILURE.key)
    assert found is not None
    assert found.taken_back_at == NOW + LATER


def test_failures_are_kept_as_long_as_results(session, ledger):
    early_failures.put(session, ledger.place, FAILURE)
    for days, kept in ((45, 1), (46, 0)):
        while retention.prune(session, NOW + timedelta(days=days), RetentionLimits()):
            pass
        assert len(of_job(session, ledger)) == kept


def test_namesakes_are_tests_whose_failure_may_be_excused(session, ledger):
    ledger.take_in(session, Ran(NOW, {"total": "f", "post": "f", "mail": "f"}))
    here = ledger.place.repository_id
    assert early_failures.namesakes(session, here, "total") == []
    ledger.judge(session, "total", Health.FLAKY, NOW)
    (found,) = early_failures.namesakes(session, here, "total")
    assert names_of(session, ledger, [found]) == ["total"]
    assert early_failures.namesakes(session, here, "tot") == []


def test_namesakes_are_tests_whose_override_stands_here(session, ledger, other):
    said = StoredOverride(1, Override.ALWAYS_QUARANTINE, "x", NOW, ActorKind.PERSON, "ann")
    for each in (ledger, other):
        each.take_in(session, Ran(NOW, {"total": "f"}))
    here, there = (each.place.repository_id for each in (ledger, other))
    quarantine.put_override(session, ledger.place, said)
    assert early_failures.namesakes(session, here, "total") == [1]
    assert early_failures.namesakes(session, there, "total") == []
    assert early_failures.namesakes(session, here, "mail") == []
    quarantine.put_override(session, ledger.place, replace(said, override=Override.UNSPECIFIED))
    assert early_failures.namesakes(session, here, "total") == []


@pytest.mark.parametrize(
    ("other", "may_be"),
    [
        (CaseNames("total"), True),
        (CaseNames("total", "TestCart"), True),
        (CaseNames("total", "TestMail"), False),
        (CaseNames("total", "TestMail", file="ui/test_cart.py"), True),
        (CaseNames("total", "TestCart", file="ui/test_mail.py"), False),
        (CaseNames("total", "TestCart", file="est_cart.py"), False),
        (CaseNames("totals", "TestCart"), False),
        (CaseNames("totals"), False),
    ],
)
def test_tests_of_one_name_are_told_apart_by_file_then_by_class(other, may_be):
    assert is_namesake(FAILURE.test, other) is may_be
    assert is_namesake(other, FAILURE.test) is may_be


def test_a_test_is_shown_by_its_file_else_by_its_class_else_by_what_it_is_in():
    known = CaseNames("total", "TestCart", "ui", "tests/ui/test_cart.py")
    shown = [known, replace(known, file=""), CaseNames("total", parent="ui"), CaseNames("total")]
    expected = ["tests/ui/test_cart.py::total", "TestCart::total", "ui::total", "total"]
    assert [each.shown for each in shown] == expected


def test_suspects_are_what_failed_for_a_pull_request_the_newest_first(session, ledger):
    ledger.take_in(session, Ran(NOW - 2 * LATER, {"total": "f"}, prs=(3,)))
    ledger.take_in(session, Ran(NOW - LATER, {"mail": "f"}, prs=(3, 4)))
    ledger.take_in(session, Ran(NOW, {"post": "f"}, prs=(5,)))
    here = ledger.place.repository_id
    assert names_of(session, ledger, suspects.failed_for(session, here, [3], 9)) == [
        "mail",
        "total",
    ]
    assert names_of(session, ledger, suspects.failed_for(session, here, [3, 5], 1)) == ["post"]


def test_suspects_of_a_place_are_its_healthy_tests(session, ledger):
    ledger.take_in(session, Ran(NOW, {"total": "f", "mail": "p", "post": "f"}))
    ledger.judge(session, "post", Health.FLAKY, NOW)
    here, key = ledger.place.repository_id, a_key("any")
    place = CasePlace(key.file, key.classname)
    assert suspects.places_of(session, here) == [place]
    found = suspects.healthy_at(session, here, [place, CasePlace("x", "")], 9)
    # `post` is flaky in its state; the copy that lists have decides.
    nos = [no for _, no in found]
    assert "total" in names_of(session, ledger, nos)[:2]
    assert suspects.healthy_at(session, here, [], 9) == []
