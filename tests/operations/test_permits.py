"""The last look before a landing: the world changes between the queue's decision and the permit.

Each case breaks one condition of the permit alone; everything else is as the queue decided.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.database.database import Store, Tx
from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Hold, KeptMove, LandMode, MergeQueue, Tip
from service.mergequeue.engine.outputs import Land, Step
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import landing, permits
from service.mergequeue.reasons.record import HoldScope
from service.mergequeue.store import queues as stored_queues
from service.runtime import Runtime
from service.vocabulary import SYSTEM, CheckOutcome, MergeMethod
from tests.mergequeue import trees
from tests.mergequeue.stage import START, a_check
from tests.mergequeue.stage import Stage as Engine
from tests.operations.landing_stage import a_unit, runtime_of
from tests.provider.stage import Stage

pytestmark = pytest.mark.each_database

Change = Callable[[MergeQueue], MergeQueue]
NUMBER = 1
FREEZE = (EntryRule("freeze", wait_for="the release"),)


@pytest.fixture(scope="module", name="decided")
def _decided() -> tuple[MergeQueue, Land]:
    """A queue that has just decided to land a pull request, and what it asked for."""
    engine = Engine(QueueConfig(), manual_land=True)
    engine.tell(engine.submit(NUMBER))
    (run,) = engine.queue.runs.values()
    checks = (a_check("unit", CheckOutcome.PASSED),)
    engine.tell(inputs.ChecksReported(run.id, run.sha or trees.sha(), checks, True))
    return engine.queue, engine.lands[run.id]


def entry(**fields: Any) -> Change:
    """The pull request changes."""
    return lambda queue: replace(queue, entries={NUMBER: replace(queue.entries[NUMBER], **fields)})


def run(**fields: Any) -> Change:
    """The run changes."""
    return lambda queue: replace(
        queue, runs={key: replace(each, **fields) for key, each in queue.runs.items()}
    )


def queue_with(**fields: Any) -> Change:
    """The queue itself changes."""
    return lambda queue: replace(queue, **fields)


def hold(scope: HoldScope) -> Change:
    """Somebody holds the queue."""
    placed = Hold("h1", HoldReason.FREEZE, scope, SYSTEM, "wait", START)
    return queue_with(holds=(placed,))


def both(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def changed(queue: MergeQueue) -> MergeQueue:
        for change in changes:
            queue = change(queue)
        return queue

    return changed


OTHER_TIP = Tip(trees.sha("someone"), trees.sha("else"))
KEPT = KeptMove(OTHER_TIP, (), rewritten=False)
FAILED = (a_check("unit", CheckOutcome.FAILED),)
ASKS_NO_MORE = "The queue does not ask for this landing any more."
ON_HOLD = "The queue is on hold."
MOVED = "The target branch has moved."
NOT_GREEN = "The run is not green."
UNKNOWN = "It is not known what must pass."
OTHER_BASE = "What it was tested on is not what it would land on."
NOT_PASSED = "A required status has not passed."
OTHER_HEAD = "Pull request 1 has another head."
MUST_NOT = "Pull request 1 must not land now."


def required_of_nobody(queue: MergeQueue) -> MergeQueue:
    """What must pass has no source."""
    assert queue.required is not None
    return replace(queue, required=replace(queue.required, source=None))


def next_landing(queue: MergeQueue) -> MergeQueue:
    """The queue asks for the landing after this one."""
    assert queue.landing is not None
    return replace(queue, landing=replace(queue.landing, number=queue.landing.number + 1))


def revoke(queue: MergeQueue) -> MergeQueue:
    """Let every passed check count as failed."""
    ids = tuple(check.id for each in queue.runs.values() for check in each.checks)
    return run(revoked=ids)(queue)


AGAINST: dict[str, tuple[Change, str]] = {
    "a passed check is revoked": (revoke, NOT_PASSED),
    "the queue asks for no landing": (queue_with(landing=None), ASKS_NO_MORE),
    "the queue asks for another landing": (next_landing, ASKS_NO_MORE),
    "the queue is in shadow": (
        lambda queue: replace(queue, config=replace(queue.config, shadow=True)),
        "The queue is in shadow: it lands nothing.",
    ),
    "the rules have changed since it was judged": (
        lambda queue: replace(queue, config=replace(queue.config, rules=FREEZE)),
        "The rules of the queue have changed.",
    ),
    "the queue is paused": (queue_with(state=QueueState.PAUSED), "The queue is paused."),
    "the queue holds landings": (hold(HoldScope.LAND), ON_HOLD),
    "the queue holds everything": (hold(HoldScope.BOTH), ON_HOLD),
    "the target branch has another tip": (queue_with(tip=OTHER_TIP), MOVED),
    "the target branch is not known": (queue_with(tip=None), MOVED),
    "a move of the target branch waits": (queue_with(kept_move=KEPT), MOVED),
    "the run is gone": (queue_with(runs={}), NOT_GREEN),
    "the run has failed": (run(status=RunStatus.FAILED), NOT_GREEN),
    "what must pass is not known": (queue_with(required=None), UNKNOWN),
    "what must pass has no source": (required_of_nobody, UNKNOWN),
    "the run was built on another base": (run(base_tip=OTHER_TIP), OTHER_BASE),
    "a required check has failed since": (run(checks=FAILED), NOT_PASSED),
    "a required check is missing": (run(checks=()), NOT_PASSED),
    "the pull request has left": (queue_with(entries={}), OTHER_HEAD),
    "the pull request is another submission": (entry(id="e-other"), OTHER_HEAD),
    "the pull request has another head": (entry(head=trees.sha("pushed")), OTHER_HEAD),
    "the pull request is not tested": (entry(state=EntryState.TESTING), MUST_NOT),
    "the pull request is being cancelled": (entry(cancel=Reason.AHEAD_CANCELLED), MUST_NOT),
    "the pull request is not ready": (
        entry(unmet=(Reason.DRAFT,)),
        "Pull request 1 is not ready: draft.",
    ),
}
NOT_AGAINST: dict[str, Change] = {
    "nothing has changed": queue_with(),
    "the queue drains": queue_with(state=QueueState.DRAINING),
    "the queue switches its mode": queue_with(state=QueueState.SWITCHING_MODES),
    "only starts are held": hold(HoldScope.START),
    "a direct merge needs no run of its own": run(kind=RunKind.DIRECT),
}


@pytest.mark.parametrize("name", AGAINST)
def test_a_landing_is_not_permitted_if(decided: tuple[MergeQueue, Land], name: str) -> None:
    queue, action = decided
    change, sentence = AGAINST[name]
    assert permits.against(change(queue), action, START, ()) == sentence


@pytest.mark.parametrize("name", NOT_AGAINST)
def test_a_landing_is_permitted_though(decided: tuple[MergeQueue, Land], name: str) -> None:
    queue, action = decided
    assert permits.against(NOT_AGAINST[name](queue), action, START, ()) is None


@pytest.fixture
def runtime(stage: Stage, store: Store) -> Runtime:
    return runtime_of(stage, store)


def write(session: Tx, before: MergeQueue, after: MergeQueue) -> None:
    """Another process changes the queue."""
    stored_queues.save(session, before, Step(after, (), (), None, None))


@pytest.mark.parametrize(
    "change",
    [
        queue_with(state=QueueState.PAUSED),
        hold(HoldScope.LAND),
    ],
    ids=["paused", "held"],
)
async def test_what_another_process_wrote_meanwhile_keeps_a_landing_from_its_permit(
    stage: Stage, runtime: Runtime, change: Change
) -> None:
    pull = await stage.open({"a.txt": "a\n"})
    assert pull[0] == NUMBER
    unit = await a_unit(runtime, stage, [pull], merge_method=MergeMethod.MERGE_COMMIT)
    action = await unit.land([1], LandMode.CAS)
    decided = await unit.value()
    await runtime.store.run(write, decided, change(decided))
    before = stage.tip()
    await landing.land(runtime, unit.queue, action)
    (record,) = await unit.records()
    assert stage.tip() == before
    assert record.permit_until is None
    assert record.state in (LandingState.REFUSED, LandingState.VOID)


def test_a_permit_is_judged_by_the_time_it_is_given(decided: tuple[MergeQueue, Land]) -> None:
    queue, action = decided
    assert permits.against(queue, action, START + timedelta(days=1), ()) is None


def test_the_atomic_update_lands_no_member_of_a_stack(decided: tuple[MergeQueue, Land]) -> None:
    queue, action = decided
    facts = replace(queue.entries[NUMBER].facts, in_stack=True)
    joined = entry(facts=facts)(queue)
    atomic = replace(action, mode=LandMode.CAS)
    assert permits.against(joined, atomic, START, ()) == "Pull request 1 has joined a stack."
    assert permits.against(joined, replace(action, mode=LandMode.CALL), START, ()) is None
