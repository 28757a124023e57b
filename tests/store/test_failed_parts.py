"""Failed parts of CI as stored: one for each required check, and how that ended."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.mergequeue import early_rules
from service.mergequeue.early_rules import Ending, PartKind, Rule
from service.mergequeue.store import failed_parts as store
from service.mergequeue.store.failed_parts import SeenPart
from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.provider.ci import FailedPart
from service.vocabulary import QueueRef, RepoRef, Sha
from tests.store.conftest import NOW

QUEUE = QueueRef(9, 1, 7, RepoRef("github.test", "octo", "widgets"), "main")
RULE = Rule("ci.yml", "v1", "gate", "unit", PartKind.STEP, "T")
PART = FailedPart("12", "unit (1)", step="T", url="https://ci/12")
SEEN = SeenPart(RULE, "r1", 1, Sha("1" * 40), PART, "3", NOW)


def test_a_part_is_read_as_it_was_stored(session: Connection) -> None:
    store.note(session, QUEUE, [SEEN, replace(SEEN, run="r2", early_s=60)])
    assert store.open_of_run(session, 9, "r1", 1) == (SEEN,)
    assert store.open_of_run(session, 9, "r1", 2) == ()
    assert store.open_of_run(session, 10, "r1", 1) == ()


def test_the_same_part_is_stored_once_and_stays_foreseen(session: Connection) -> None:
    later = NOW + timedelta(minutes=1)
    store.note(session, QUEUE, [replace(SEEN, is_foreseen=True)])
    store.note(session, QUEUE, [replace(SEEN, at=later, ending=Ending.HELD, early_s=9)])
    [only] = store.newest(session, 9)
    assert (only.ending, only.is_foreseen, only.early_s) == (Ending.HELD, True, 9)


@pytest.mark.parametrize("ending", [None, Ending.HELD])
def test_what_refutes_a_rule_is_not_replaced_by_the_next_failure_of_its_job(
    session: Connection, ending: Ending | None
) -> None:
    test = replace(SEEN, rule=replace(RULE, kind=PartKind.TEST, step=""))
    first, second = (replace(test, part=replace(PART, test=name)) for name in ("cart", "mail"))
    store.note(session, QUEUE, [replace(first, ending=Ending.REFUTED)])
    store.note(session, QUEUE, [replace(second, ending=ending)])
    assert [each.ending for each in store.newest(session, 9)] == [Ending.REFUTED]


def test_the_end_of_a_check_closes_all_of_its_open_parts(session: Connection) -> None:
    other = replace(SEEN, rule=replace(RULE, required="other"))
    leg = replace(SEEN, part=replace(PART, check="13", job="unit (2)"))
    known = replace(SEEN, part=replace(PART, check="14", job="unit (3)"), ending=Ending.HELD)
    store.note(session, QUEUE, [SEEN, leg, known, other])
    store.close(session, 9, store.ended(SEEN, Ending.REFUTED, NOW))
    assert store.open_of_run(session, 9, "r1", 1) == (other,)
    endings = [(each.rule.required, each.ending) for each in store.newest(session, 9)]
    assert sorted(endings, key=str) == [
        ("gate", Ending.HELD),
        ("gate", Ending.REFUTED),
        ("gate", Ending.REFUTED),
        ("other", None),
    ]


def test_the_end_of_a_check_closes_no_part_of_another_queue_run_or_attempt(
    session: Connection,
) -> None:
    other, again, later = replace(QUEUE, id=10), replace(SEEN, attempt=2), replace(SEEN, run="r2")
    store.note(session, QUEUE, [SEEN, again, later])
    store.note(session, other, [SEEN])
    store.close(session, 9, store.ended(SEEN, Ending.REFUTED, NOW))
    places = [(9, "r1", 2), (9, "r2", 1), (10, "r1", 1)]
    assert [store.open_of_run(session, *each) for each in places] == [(again,), (later,), (SEEN,)]
    assert len(store.newest(session, 10)) == 1


def test_parts_that_were_left_open_are_listed_for_a_while(session: Connection) -> None:
    ages = {"r1": 1, "r2": 10, "r3": 20, "r4": 60 * 24, "r5": 60 * 30}
    store.note(
        session,
        QUEUE,
        [replace(SEEN, run=run, at=NOW - timedelta(minutes=age)) for run, age in ages.items()],
    )
    window = (NOW - timedelta(days=1), NOW - timedelta(minutes=10), 20)
    assert [(queue, each.run) for queue, each in store.left_open(session, *window)] == [(9, "r3")]


def test_the_newest_parts_come_first_and_old_ones_are_forgotten(session: Connection) -> None:
    old = NOW - early_rules.KEPT - timedelta(hours=1)
    store.note(session, QUEUE, [replace(SEEN, run="old", at=old), SEEN])
    assert [each.run for each in store.newest(session, 9)] == ["r1", "old"]
    while retention.prune(session, NOW, RetentionLimits()):
        pass
    assert [each.run for each in store.newest(session, 9)] == ["r1"]
