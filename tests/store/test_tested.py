"""What is kept of tests: sets, counts, states, and how long all of it stays."""

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.testhealth.detector import figures
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.results import Outcome
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases, listings, quarantine, sets, states
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.bitmaps import packed_set
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import StoredOverride
from service.testhealth.store.sets import OutcomeSets
from service.vocabulary import ActorKind, Health, Override
from tests.harness.evidence import Ledger, Ran
from tests.store.conftest import NOW, a_repository

DAY = timedelta(days=1)
KEY = RepositoryKey("octo", "github.test/octo/widgets")
FORMER = RepositoryKey("octo", "github.test/octo/gadgets")
EVIDENCE = ("upload", "attempt", "outcome_set")


@pytest.fixture
def ledger(session: Connection) -> Ledger:
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    return Ledger(Place(org.id, repository.id), KEY, NOW)


def count(session: Connection, table: str) -> int:
    return session.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


def prune_all(session: Connection, days: float) -> None:
    """Remove what is too old so long after now, in as many steps as it takes."""
    while removed := retention.prune(session, NOW + days * DAY, RetentionLimits()):
        assert removed <= retention.BATCH


def case_of(session: Connection, ledger: Ledger, name: str):
    here = ledger.place.repository_id
    nos = cases.by_ids(session, here, [ledger.id_of(name)]).values()
    return next(iter(listings.listed_cases(session, here, list(nos))), None)


def test_equal_sets_are_stored_once_and_the_empty_set_not_at_all(session, ledger):
    place = ledger.place
    first = sets.put_set(session, place, packed_set([3, 1, 2]), NOW)
    assert first is not None
    again = packed_set((1, 2, 3))
    assert sets.put_set(session, place, again, NOW - DAY) == first
    assert sets.put_set(session, place, packed_set([]), NOW) is None
    assert count(session, "outcome_set") == 1
    kept = OutcomeSets()
    for _ in range(2):
        found = kept.members(session, place.repository_id, [first, "gone"], [0, 1, 3, 4])
        assert found == {first: (1, 3)}
    assert kept.members(session, place.repository_id + 1, [first], [1]) == {}


def test_numbers_are_given_out_once_and_without_gaps(session, ledger):
    cases.name_repository(session, ledger.place, KEY)
    here = ledger.place.repository_id
    assert [cases.take_numbers(session, here, many) for many in (3, 1, 2)] == [1, 4, 5]


def test_a_repository_remembers_every_name_in_its_place(session, ledger):
    for name in (KEY, FORMER, KEY):
        cases.name_repository(session, ledger.place, name)
    assert cases.shared_by(session, ledger.place.repository_id).names == (KEY, FORMER)


def test_the_clock_of_the_evidence_is_that_of_what_counts(session, ledger):
    here = ledger.place.repository_id
    cases.name_repository(session, ledger.place, KEY)
    for at in (NOW, NOW - DAY):
        cases.note_evidence(session, here, at)
    cases.note_change(session, here)
    shared = cases.shared_by(session, here)
    assert (shared.clock, shared.revision) == (NOW - DAY, 3)
    cases.note_evidence(session, here, None)
    assert cases.shared_by(session, here).clock is None


def test_the_newest_headline_of_a_group_is_shown_whatever_comes_first(session, ledger):
    for hours, headline in ((1, "b"), (3, "a"), (2, "c")):
        at = NOW - timedelta(hours=hours)
        seen = StoredAttempt("upload", 1, 1, at, Outcome.FAILED, "key", headline)
        test_attempts.note_failures(session, ledger.place, [seen])
    shown = session.exec_driver_sql("SELECT headline FROM failure_group").scalars().all()
    assert shown == ["b"]


def test_pull_requests_count_for_a_week_each_once(session, ledger):
    for days, prs in ((6.9, (1, 2)), (1, (2, 3)), (7.1, (4,))):
        ledger.take_in(session, Ran(NOW - days * DAY, {"a": "f"}, prs=prs))
    assert case_of(session, ledger, "a").impact == 3
    assert test_attempts.expire_impacts(session, NOW) == 0
    assert test_attempts.expire_impacts(session, NOW + 0.1 * DAY) == 1
    assert case_of(session, ledger, "a").impact == 2
    assert test_attempts.expire_impacts(session, NOW + 30 * DAY) == 2
    assert case_of(session, ledger, "a").impact == 0


def test_the_history_of_overrides_tells_what_stood_when(session, ledger):
    ledger.take_in(session, Ran(NOW, {"a": "f"}))
    here, said = ledger.place.repository_id, [Override.ALWAYS_QUARANTINE, Override.UNSPECIFIED]
    for override in said:
        word = StoredOverride(1, override, "x", NOW, ActorKind.PERSON, "ann", NOW + DAY)
        quarantine.put_override(session, ledger.place, word)
    assert quarantine.override_of(session, here, 1) is None
    history = quarantine.override_history(session, here, 1)
    assert [each.override for each in history] == said
    assert quarantine.expired(session, NOW + 2 * DAY) == ()


def test_evidence_goes_after_45_days_counts_and_tests_after_400(session, ledger):
    ledger.take_in(session, Ran(NOW, {"a": "fp", "b": "p"}, prs=(3,)))
    ledger.judge(session, "a", Health.FLAKY, NOW)
    ledger.count(session)
    prune_all(session, 7.9)
    assert count(session, "pr_impact") == 1
    prune_all(session, 8.1)
    assert count(session, "pr_impact") == 0
    # Uploads are forgotten by whole days, so that those left of a day are all of it.
    prune_all(session, 45.3)
    assert [count(session, table) for table in EVIDENCE] == [1, 2, 1]
    prune_all(session, 45.5)
    assert [count(session, table) for table in EVIDENCE] == [0, 0, 0]
    prune_all(session, 399.9)
    assert (count(session, "daily"), count(session, "test_case")) == (2, 2)
    prune_all(session, 401.1)
    kept = ("test_day", "daily", "failure_daily", "test_case", "test_state", "test_state_event")
    assert [count(session, table) for table in (*kept, "failure_group")] == [0] * 7


def test_uploads_of_a_day_that_is_not_counted_are_kept(session, ledger):
    for ago in (1, 0):
        ledger.take_in(session, Ran(NOW - ago * DAY, {"a": "f", "b": "p"}))
    ledger.count(session, figures.day_of(NOW - DAY))
    prune_all(session, 60)
    assert [count(session, table) for table in EVIDENCE] == [1, 1, 1]
    ledger.count(session)
    prune_all(session, 60)
    assert [count(session, table) for table in EVIDENCE] == [0, 0, 0]
    assert count(session, "daily") == 4


def test_a_test_stays_as_long_as_it_runs(session, ledger):
    ledger.take_in(session, Ran(NOW, {"a": "p", "b": "p"}))
    ledger.count(session)
    ledger.take_in(session, Ran(NOW + 300 * DAY, {"a": "p"}))
    for _ in range(2):
        prune_all(session, 401.1)
        assert case_of(session, ledger, "a") is not None
        assert count(session, "test_case") == 1
        ledger.count(session)
    assert count(session, "daily") == 1


def test_a_test_of_untrusted_uploads_alone_goes_too(session, ledger):
    ledger.take_in(session, Ran(NOW, {"stranger": "f"}, is_trusted=False))
    assert case_of(session, ledger, "stranger") is None
    assert count(session, "test_case") == 1
    prune_all(session, 401.1)
    assert count(session, "test_case") == 0


def test_a_state_is_copied_to_where_lists_are_ordered_by_it(session, ledger):
    ledger.take_in(session, Ran(NOW, {"a": "f"}))
    ledger.judge(session, "a", Health.BROKEN, NOW - DAY)
    case = case_of(session, ledger, "a")
    assert (case.status, case.since) == (Health.BROKEN, NOW - DAY)
    (change,) = states.history(session, ledger.place.repository_id, case.no)
    assert (change.previous, change.value) == (Health.HEALTHY, Health.BROKEN)
