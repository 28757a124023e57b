"""Effects: in order, one at a time where it matters, and never lost."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection, select, update

from service.accounts.store import access
from service.database import outbox
from service.database.outbox import ClaimedEffect, Lane, OutboxItem, OutboxState
from service.errors import InvariantBroken
from service.mergequeue.engine.model import LandMode, Proof, Tip
from service.mergequeue.engine.outputs import (
    AskEvidence,
    BuildTestBranch,
    HeadToMerge,
    Land,
    LandStep,
    RerunChecks,
    RetireRun,
    Tell,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.breaks import FollowGreen, MindBreak
from service.mergequeue.operations.chains import ChangeBase
from service.mergequeue.operations.file_checks import CheckRepositoryFile
from service.mergequeue.operations.head_branches import DeleteHeadBranch
from service.mergequeue.operations.restored import MendStatus
from service.process import effects
from service.provider.labels import LabelRemoval
from service.provider.values import (
    Emoji,
    Reaction,
    Reply,
)
from service.testhealth.detector.ticketing import KeepTicket
from service.testhealth.reports.collecting import CollectReports
from service.vocabulary import MergeMethod, Sha
from tests.store.builders import a_sha
from tests.store.conftest import ME, NOW, a_repository, a_stored_queue

# Imported so that every kind of effect is known.
assert all((effects,))

SECOND = timedelta(seconds=1)
TIP = Tip(Sha("a" * 40), Sha("b" * 40))


@pytest.fixture
def queue_id(session: Connection) -> int:
    return a_stored_queue(session).id


def build(run: str) -> OutboxItem:
    return OutboxItem(
        Lane.CONTROL, f"{run}/build", "build", RetireRun(run, stop_ci=True), NOW, run=run
    )


def land(run: str, number: int = 1) -> OutboxItem:
    return replace(build(run), key=f"{run}/land/{number}", kind=outbox.LAND)


def retire(run: str) -> OutboxItem:
    return replace(build(run), key=f"{run}/retire", kind="retire")


def tell(number: int, key: str) -> OutboxItem:
    effect = Tell(number, f"e{number}", EntryState.PENDING, Reason.NOW_READY)
    return OutboxItem(Lane.NOTICE, key, "tell", effect, NOW, supersede_key=f"tell/{number}")


def put(session: Connection, queue_id: int | None, *items: OutboxItem) -> None:
    outbox.append(session, 1, queue_id, 1, items)


def due(session: Connection, seconds: int = 0, limit: int = 50) -> list[str]:
    return [row.key for row in outbox.claim(session, NOW + seconds * SECOND, limit)]


def take(session: Connection, key: str) -> ClaimedEffect:
    """Mark the due effect of this key sent; its row."""
    (row,) = (row for row in outbox.claim(session, NOW, 50) if row.key == key)
    assert outbox.mark_sent(session, ME, [row.id], NOW)
    return row


EFFECTS: tuple[object, ...] = (
    BuildTestBranch(
        "r1", 3, "main", TIP, (HeadToMerge(3, a_sha(3), tested=True),), (Sha("c" * 40),), False
    ),
    RerunChecks("r1", ("unit", "lint"), 2),
    Land(
        number=1,
        run="r1",
        mode=LandMode.CAS,
        method=MergeMethod.MERGE_COMMIT,
        expected_tip=TIP,
        steps=(LandStep(1, 3, "e3", a_sha(3), TIP.tree, Sha("d" * 40), Sha("e" * 40)),),
        proof=Proof.EXACT_TREE,
    ),
    RetireRun("r1", stop_ci=False),
    AskEvidence("r1", 2, ("unit",)),
    Tell(3, "e3", EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED),
    Reply(3, "action-1", "Not allowed ☹"),
    Reaction(3, "77", Emoji.REFUSED),
    LabelRemoval(3, "headgate-submit"),
    CollectReports("16000000001", 2),
    CheckRepositoryFile(3, a_sha(3), "main"),
    KeepTicket(7),
    DeleteHeadBranch(3, a_sha(3)),
    MindBreak("b"),
    FollowGreen(1),
    ChangeBase(3),
    MendStatus(3, "77"),
)


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda each: type(each).__name__)
def test_every_effect_comes_back_as_it_was(session: Connection, queue_id: int, effect: object):
    put(session, queue_id, OutboxItem(Lane.CONTROL, "k", "kind", effect, NOW, run="r1"))
    (row,) = outbox.claim(session, NOW, 1)
    assert row.effect == effect
    assert (row.repository_id, row.queue_id, row.kind, row.key) == (1, queue_id, "kind", "k")
    assert (row.lane, row.run, row.attempts) == (Lane.CONTROL, "r1", 0)
    assert row.state is OutboxState.READY


def test_every_kind_of_effect_is_tried():
    assert {type(each).__name__ for each in EFFECTS} == outbox.EFFECT.names


def test_an_answer_needs_no_queue(session: Connection, queue_id: int):
    put(session, None, OutboxItem(Lane.NOTICE, "k", "reply", EFFECTS[6], NOW))
    (row,) = outbox.claim(session, NOW, 1)
    assert row.queue_id is None


def test_a_refresh_yields_to_a_notice_that_waits(session: Connection, queue_id: int):
    refresh = replace(tell(1, "refresh"), yields=True)
    put(session, queue_id, tell(1, "state"))
    put(session, queue_id, refresh)
    assert due(session) == ["state"]


def test_a_refresh_yields_to_a_notice_of_the_same_turn(session: Connection, queue_id: int):
    put(session, queue_id, tell(1, "state"), replace(tell(1, "refresh"), yields=True))
    assert due(session) == ["state"]


def test_a_refresh_is_stored_while_the_notice_before_it_is_sent(session: Connection, queue_id: int):
    put(session, queue_id, tell(1, "state"))
    sent = take(session, "state")
    put(session, queue_id, replace(tell(1, "refresh"), yields=True))
    outbox.settle(session, [sent.id], OutboxState.DONE)
    assert due(session) == ["refresh"]


def test_a_notice_replaces_a_refresh_that_waits(session: Connection, queue_id: int):
    put(session, queue_id, replace(tell(1, "refresh"), yields=True))
    put(session, queue_id, tell(1, "state"))
    assert due(session) == ["state"]


def collect(run: str) -> OutboxItem:
    return OutboxItem(Lane.COLLECT, f"collect/{run}", "collect", CollectReports(run, 1), NOW)


def test_what_is_to_be_collected_is_claimed_apart(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    put(session, None, collect("7"), replace(collect("8"), next_at=NOW - SECOND))
    assert due(session) == ["r1/build"]
    lanes = (Lane.COLLECT,)
    assert [row.key for row in outbox.claim(session, NOW, 9, lanes)] == ["collect/8", "collect/7"]
    assert outbox.next_due(session) == NOW
    assert outbox.next_due(session, lanes) == NOW - SECOND


def test_what_was_to_be_collected_before_is_not_again(session: Connection, queue_id: int):
    put(session, None, collect("7"))
    outbox.settle(session, [outbox.claim(session, NOW, 1, (Lane.COLLECT,))[0].id], OutboxState.DONE)
    put(session, None, collect("7"))
    assert outbox.claim(session, NOW, 1, (Lane.COLLECT,)) == ()


def test_effects_of_a_run_go_one_after_another(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"), retire("r1"), build("r2"))
    assert due(session) == ["r1/build", "r2/build"]
    first = take(session, "r1/build")
    assert due(session) == ["r2/build"]
    outbox.settle(session, [first.id], OutboxState.DONE)
    assert due(session) == ["r1/retire", "r2/build"]


def test_an_effect_that_waits_for_its_next_try_holds_its_run(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"), retire("r1"))
    outbox.retry(session, take(session, "r1/build"), NOW + 5 * SECOND, "502")
    assert due(session, seconds=4) == []
    assert due(session, seconds=5) == ["r1/build"]


def test_a_queue_lands_one_at_a_time_and_not_behind_builds(session: Connection, queue_id: int):
    other = a_second_queue(session)
    put(session, queue_id, build("r9"), land("r1"), land("r2"))
    put(session, other, land("r5"))
    outbox.retry(session, take(session, "r9/build"), NOW + 60 * SECOND, "502")
    assert due(session) == ["r1/land/1", "r5/land/1"]
    first = take(session, "r1/land/1")
    assert due(session) == ["r5/land/1"]
    outbox.mark_unknown(session, first, NOW + SECOND, "timeout")
    assert due(session) == ["r5/land/1"]
    assert due(session, seconds=1) == ["r1/land/1", "r5/land/1"]
    outbox.settle(session, [first.id], OutboxState.FAILED, "refused")
    assert due(session) == ["r2/land/1", "r5/land/1"]


def a_second_queue(session: Connection) -> int:
    return a_stored_queue(session, "release").id


def test_a_newer_notice_replaces_an_older_one_of_its_key(session: Connection, queue_id: int):
    put(session, queue_id, tell(3, "a"), tell(4, "b"))
    put(session, queue_id, tell(3, "c"), tell(3, "d"))
    assert due(session) == ["b", "d"]


def test_a_notice_on_its_way_is_not_overtaken(session: Connection, queue_id: int):
    put(session, queue_id, tell(3, "a"))
    first = take(session, "a")
    put(session, queue_id, tell(3, "b"))
    assert due(session) == []
    outbox.settle(session, [first.id], OutboxState.DONE)
    assert due(session) == ["b"]


def test_control_comes_first_and_notices_fill_what_is_left(session: Connection, queue_id: int):
    put(session, queue_id, tell(3, "a"), replace(tell(4, "b"), next_at=NOW - SECOND), build("r1"))
    assert due(session, limit=2) == ["r1/build", "b"]
    assert due(session, limit=1) == ["r1/build"]


def test_what_is_not_due_is_not_given(session: Connection, queue_id: int):
    put(session, queue_id, replace(tell(3, "a"), next_at=NOW + 2 * SECOND))
    assert due(session, seconds=1) == []
    assert due(session, seconds=2) == ["a"]


def test_a_control_key_is_used_once(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    with pytest.raises(InvariantBroken, match="r1/build"), session.begin_nested():
        put(session, queue_id, build("r1"))


def test_a_notice_asked_for_twice_stays_as_it_is(session: Connection, queue_id: int):
    reply = OutboxItem(Lane.NOTICE, "reply/9", "reply", EFFECTS[6], NOW)
    put(session, queue_id, reply)
    outbox.settle(session, [take(session, "reply/9").id], OutboxState.DONE)
    put(session, queue_id, reply, tell(3, "a"))
    assert due(session) == ["a"]


def test_only_who_marks_it_first_has_it(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    (row,) = outbox.claim(session, NOW, 1)
    assert outbox.mark_sent(session, ME, [row.id], NOW)
    assert not outbox.mark_sent(session, ME, [row.id], NOW)


def test_what_somebody_sent_who_is_gone_is_unknown(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"), build("r2"))
    take(session, "r1/build")
    assert outbox.reopen_sent(session, ["another", ME], NOW) == 0
    assert outbox.reopen_sent(session, ["another"], NOW) == 1
    first, second = outbox.claim(session, NOW, 5)
    assert (first.state, first.attempts) == (OutboxState.UNKNOWN, 1)
    assert (second.state, second.attempts) == (OutboxState.READY, 0)
    assert outbox.mark_sent(session, ME, [first.id], NOW)


def test_a_text_that_somebody_sent_who_is_gone_waits_until_its_call_is_over(
    session: Connection, queue_id: int
):
    put(session, queue_id, tell(3, "a"), build("r1"))
    take(session, "a")
    take(session, "r1/build")
    outbox.reopen_sent(session, [], NOW)
    assert due(session) == ["r1/build"]
    assert due(session, seconds=62) == ["r1/build"]
    assert due(session, seconds=63) == ["r1/build", "a"]


def test_what_has_ended_stays_ended(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    row = take(session, "r1/build")
    outbox.settle(session, [row.id], OutboxState.DONE)
    outbox.retry(session, row, NOW, "late")
    outbox.mark_unknown(session, row, NOW, "late")
    assert not outbox.mark_sent(session, ME, [row.id], NOW)
    assert due(session) == []
    assert outbox.next_due(session) is None


@pytest.mark.fault(
    "the answer to a settlement is lost, and it is repeated",
    holds="what a later claim sent stays sent",
    within="-",
)
def test_a_settlement_that_is_repeated_leaves_what_a_later_claim_sent(
    session: Connection, queue_id: int
):
    put(session, queue_id, build("r1"))
    first = take(session, "r1/build")
    outbox.mark_unknown(session, first, NOW, "timeout")
    second = take(session, "r1/build")
    outbox.mark_unknown(session, first, NOW, "timeout")
    outbox.retry(session, first, NOW, "502")
    assert due(session) == []
    outbox.retry(session, second, NOW, "502")
    assert due(session) == ["r1/build"]


def test_only_what_a_process_sent_and_no_task_of_it_owns_becomes_unknown(
    session: Connection, queue_id: int
):
    put(session, queue_id, build("r1"), build("r2"))
    put(session, None, collect("7"))
    owned, lost = take(session, "r1/build"), take(session, "r2/build")
    (collected,) = outbox.claim(session, NOW, 1, (Lane.COLLECT,))
    outbox.mark_sent(session, ME, [collected.id], NOW)
    assert outbox.reopen_unowned(session, "another", outbox.ACTING, [], NOW) == 0
    assert outbox.reopen_unowned(session, ME, outbox.ACTING, [owned.id, lost.id], NOW) == 0
    assert outbox.reopen_unowned(session, ME, outbox.ACTING, [owned.id], NOW) == 1
    (found,) = outbox.claim(session, NOW, 5)
    assert (found.key, found.state) == ("r2/build", OutboxState.UNKNOWN)


def test_the_next_due_effect_is_one_that_may_go(session: Connection, queue_id: int):
    later = replace(build("r1"), next_at=NOW + 9 * SECOND)
    put(session, queue_id, later, retire("r1"), replace(tell(3, "a"), next_at=NOW + SECOND))
    assert outbox.next_due(session) == NOW + SECOND
    outbox.settle(session, [outbox.claim(session, NOW + SECOND, 1)[0].id], OutboxState.DONE)
    assert outbox.next_due(session) == NOW + 9 * SECOND
    (row,) = outbox.claim(session, NOW + 9 * SECOND, 5)
    outbox.mark_sent(session, ME, [row.id], NOW)
    assert outbox.next_due(session) is None


def state_of(session: Connection, key: str) -> str:
    table = outbox.outbox
    found = select(table.c.state).where(table.c.idem_key == key)
    state: str = session.execute(found).scalar_one()
    return state


def test_what_has_ended_keeps_its_end(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    row = take(session, "r1/build")
    outbox.settle(session, [row.id], OutboxState.DONE)
    outbox.settle(session, [row.id], OutboxState.FAILED, "late")
    assert state_of(session, "r1/build") == OutboxState.DONE


@pytest.mark.fault(
    "a settlement arrives late", holds="an unknown effect is read back first", within="-"
)
def test_what_may_have_happened_is_not_made_ready_by_a_late_settlement(
    session: Connection, queue_id: int
):
    put(session, queue_id, build("r1"))
    row = take(session, "r1/build")
    outbox.mark_unknown(session, row, NOW, "timeout")
    outbox.retry(session, row, NOW, "late")
    assert state_of(session, "r1/build") == OutboxState.UNKNOWN


def test_a_settlement_changes_one_effect(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"), build("r2"))
    first, _ = take(session, "r1/build"), take(session, "r2/build")
    outbox.retry(session, first, NOW, "502")
    assert state_of(session, "r2/build") == OutboxState.SENT
    take(session, "r1/build")
    outbox.settle(session, [first.id], OutboxState.DONE)
    assert state_of(session, "r2/build") == OutboxState.SENT


def test_what_is_ready_again_is_not_read_back(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    outbox.retry(session, take(session, "r1/build"), NOW, "502")
    assert outbox.reopen_unowned(session, ME, outbox.ACTING, [], NOW) == 0
    assert outbox.reopen_sent(session, [], NOW) == 0
    assert state_of(session, "r1/build") == OutboxState.READY


def test_what_was_sent_by_nobody_who_is_named_is_unknown(session: Connection, queue_id: int):
    put(session, queue_id, build("r1"))
    take(session, "r1/build")
    session.execute(update(outbox.outbox).values(claimed_by=None))
    assert outbox.reopen_sent(session, [ME], NOW) == 1


def test_a_notice_and_the_effects_of_its_run_do_not_wait_for_each_other(
    session: Connection, queue_id: int
):
    put(session, queue_id, replace(tell(1, "before"), run="r1"))
    put(session, queue_id, build("r1"))
    put(session, queue_id, replace(tell(2, "after"), run="r1"))
    assert due(session) == ["r1/build", "before", "after"]


def test_a_build_does_not_wait_for_a_landing_of_its_queue(session: Connection, queue_id: int):
    put(session, queue_id, land("r1"), build("r9"))
    assert due(session) == ["r1/land/1", "r9/build"]


def test_an_effect_is_of_the_organization_of_its_repository(session: Connection, queue_id: int):
    other = access.ensure_organization(session, "github.test", "8", "acme")
    repository = access.upsert_repository(session, other.id, a_repository("gears", "102", "acme"))
    outbox.append(session, repository.id, None, 1, [collect("7")])
    put(session, None, collect("8"))
    found = session.execute(select(outbox.outbox.c.org_id).order_by(outbox.outbox.c.id))
    assert found.scalars().all() == [other.id, 1]


def test_effects_that_wait_for_the_end_of_others_are_noticed(session: Connection, queue_id: int):
    lanes = (Lane.CONTROL,)
    assert not outbox.is_behind(session, lanes)
    put(session, queue_id, build("r1"), build("r2"))
    assert not outbox.is_behind(session, lanes)
    take(session, "r2/build")
    assert not outbox.is_behind(session, lanes)
    put(session, queue_id, retire("r1"))
    assert outbox.is_behind(session, lanes)
    assert not outbox.is_behind(session, (Lane.NOTICE, Lane.LANDING))


def test_of_the_keys_that_are_asked_for_the_stored_ones_are_known(
    session: Connection, queue_id: int
):
    put(session, queue_id, build("r1"), build("r2"))
    asked = ["r1/build", *(f"r{number}/build" for number in range(3, 2500))]
    assert outbox.stored_keys(session, asked) == {"r1/build"}
    assert outbox.stored_keys(session, []) == frozenset()


def test_landings_and_other_control_effects_tell_of_their_ends_together():
    assert outbox.ENDS[Lane.LANDING] == outbox.ENDS[Lane.CONTROL]
    assert len(set(outbox.ENDS.values())) == len(Lane) - 1
