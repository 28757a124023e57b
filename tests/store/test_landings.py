"""Landings: one at a time in a queue, and never the same head twice."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from service.mergequeue.engine.model import LandMode, Proof, Tip
from service.mergequeue.engine.outputs import Land, LandStep
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.mergequeue.store import landings
from service.mergequeue.store.landings import LandingOutcome
from service.vocabulary import MergeMethod, Sha
from tests.store.builders import a_sha
from tests.store.conftest import NOW, a_stored_queue

TIP = Tip(Sha("a" * 40), Sha("b" * 40))
UNTIL = NOW + timedelta(seconds=30)
LANDED = LandingOutcome(LandingState.LANDED, Sha("1" * 40), Sha("2" * 40))


@pytest.fixture
def queue_id(session: Connection) -> int:
    return a_stored_queue(session).id


def step(position: int, pr: int) -> LandStep:
    return LandStep(
        position=position,
        pr=pr,
        entry=f"e{pr}",
        head=a_sha(pr),
        parent_tree=TIP.tree,
        tree=Sha(f"{pr}" * 40),
        commit=Sha(f"{pr + 4}" * 40),
        tested_tree=Sha("9" * 40),
    )


def a_land(number: int = 1, run: str = "r1", prs: tuple[int, ...] = (3,)) -> Land:
    return Land(
        number=number,
        run=run,
        mode=LandMode.CALL,
        method=MergeMethod.SQUASH,
        expected_tip=TIP,
        steps=tuple(step(place, pr) for place, pr in enumerate(prs, 1)),
        proof=Proof.EXACT_TREE,
    )


def intended(session: Connection, queue_id: int, land: Land) -> tuple[LandingRecord, ...]:
    landings.intend(session, queue_id, land)
    return tuple(
        row for row in landings.landings_of_run(session, land.run) if row.number == land.number
    )


def test_each_position_is_written_down_with_what_is_expected(session: Connection, queue_id: int):
    first, second = intended(session, queue_id, a_land(prs=(3, 4)))
    assert first == LandingRecord(
        id=first.id,
        queue_id=queue_id,
        run="r1",
        number=1,
        position=1,
        pr=3,
        entry="e3",
        head=a_sha(3),
        mode="CALL",
        expected_parent=TIP.sha,
        expected_tree=Sha("3" * 40),
        tested_tree=Sha("9" * 40),
        state=LandingState.INTENDED,
        permit_until=None,
        landed_sha=None,
        landed_tree=None,
        evidence=None,
    )
    assert (second.position, second.expected_parent) == (2, Sha("7" * 40))


def test_all_positions_of_one_landing_share_a_permit(session: Connection, queue_id: int):
    rows = intended(session, queue_id, a_land(prs=(3, 4)))
    assert [landings.permit(session, row.id, UNTIL) for row in rows] == [True, True]
    opened = landings.open_permits(session, queue_id)
    assert opened == tuple(
        replace(row, state=LandingState.PERMITTED, permit_until=UNTIL) for row in rows
    )


@pytest.mark.parametrize("state", [LandingState.PERMITTED, LandingState.UNKNOWN])
def test_a_second_landing_waits_for_the_first(
    session: Connection, queue_id: int, state: LandingState
):
    (first,) = intended(session, queue_id, a_land())
    (second,) = intended(session, queue_id, a_land(number=2, run="r2", prs=(4,)))
    (elsewhere,) = intended(session, a_stored_queue(session, "release").id, a_land(run="r3"))
    assert landings.permit(session, first.id, UNTIL)
    landings.settle(session, first.id, LandingOutcome(state))
    assert not landings.permit(session, second.id, UNTIL)
    assert landings.permit(session, elsewhere.id, UNTIL)
    landings.settle(session, first.id, LandingOutcome(LandingState.REFUSED))
    assert landings.permit(session, second.id, UNTIL)
    assert [row.id for row in landings.open_permits(session, queue_id)] == [second.id]


def test_a_retry_takes_a_new_permit(session: Connection, queue_id: int):
    (row,) = intended(session, queue_id, a_land())
    assert landings.permit(session, row.id, NOW)
    landings.settle(session, row.id, LandingOutcome(LandingState.UNKNOWN))
    assert landings.permit(session, row.id, UNTIL)
    assert landings.landings_of_run(session, "r1")[0].permit_until == UNTIL


@pytest.mark.parametrize(
    "state",
    [LandingState.LANDED, LandingState.REFUSED, LandingState.VOID, LandingState.MISMATCH],
)
def test_what_has_ended_is_never_permitted_again(
    session: Connection, queue_id: int, state: LandingState
):
    (row,) = intended(session, queue_id, a_land())
    landings.settle(session, row.id, LandingOutcome(state))
    assert not landings.permit(session, row.id, UNTIL)
    assert landings.open_permits(session, queue_id) == ()


def test_what_landed_keeps_its_commit_tree_and_evidence(session: Connection, queue_id: int):
    (row,) = intended(session, queue_id, a_land())
    landings.settle(session, row.id, replace(LANDED, evidence="tree compared"))
    (found,) = landings.landings_of_run(session, row.run)
    assert found == replace(
        row,
        state=LandingState.LANDED,
        landed_sha=Sha("1" * 40),
        landed_tree=Sha("2" * 40),
        evidence="tree compared",
    )


def test_the_same_head_never_lands_twice(session: Connection, queue_id: int):
    (first,) = intended(session, queue_id, a_land())
    (second,) = intended(session, queue_id, a_land(number=2, run="r2"))
    landings.settle(session, first.id, LANDED)
    with pytest.raises(IntegrityError), session.begin_nested():
        landings.settle(session, second.id, LANDED)
