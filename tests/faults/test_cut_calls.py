"""GitHub carries out a call after its connection was cut: the newest text is the one that stays.

`tests/whole_service/test_restarts.py` lets the process die meanwhile.
"""

from pathlib import Path

import pytest

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues
from service.vocabulary import SYSTEM
from tests.harness.world import World, WorldOptions, living

LATE_S = 20
"""So many seconds after the cut the call is carried out."""
TEXTS = ("*/comments/*", "*/check-runs/*")
WHY = "the release goes first"


def shown(world: World, number: int) -> tuple[str, str, str]:
    """What our comment and our check say of a pull request."""
    return world.comment_on(number), world.check_on(number), world.check_summary(number)


@pytest.mark.fault(
    "an older text is carried out after a newer one",
    holds="the newer one is shown in the end",
    within="20 min",
)
async def test_an_older_text_that_is_carried_out_late_is_not_the_one_that_stays(
    tmp_path: Path,
) -> None:
    async with living(tmp_path, WorldOptions()) as world:
        number = await world.open()
        await world.settle()
        await world.make_queue()
        for path in TEXTS:
            await world.fault({"method": "PATCH", "path": path, "nth": 1}, "late", s=LATE_S)
        await world.comment("/merge", on=number)
        await world.settle()
        await world.rest(2 * LATE_S)
        assert [one.struck for one in world.sandbox.world.faults.listed] == [1, 1]
        assert "Merged" in world.comment_on(number)
        assert world.check_on(number).endswith("(success)")


@pytest.mark.fault(
    "a temporary branch is made again after it was used",
    holds="it is deleted",
    within="2 sweeps",
)
async def test_a_branch_that_is_made_late_is_deleted_by_the_sweep(tmp_path: Path) -> None:
    async with living(tmp_path, WorldOptions()) as world:
        number = await world.open()
        await world.settle()
        await world.make_queue()
        await world.fault({"method": "POST", "path": "*/git/refs", "nth": 1}, "late", s=LATE_S)
        (late,) = world.sandbox.world.faults.listed
        await world.comment("/merge", on=number)

        async def is_cut() -> bool:
            return bool(late.struck)

        async def is_made() -> bool:
            return any(name.startswith("headgate/temp/") for name in world.branches())

        async def is_deleted() -> bool:
            return not await is_made()

        await world.until(is_cut)
        await world.rest(LATE_S)
        await world.until(is_made)
        await world.settle()
        assert await world.merged() == [number]
        await world.until(is_deleted, within_s=1300)


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.fault(
    "the answer of a text is lost, and what it is about turns back meanwhile",
    holds="the text of the present state is shown in the end",
    within="10 min",
)
async def test_a_text_whose_answer_is_lost_does_not_stay_when_its_state_turns_back(
    path: str, tmp_path: Path
) -> None:
    async with living(tmp_path, WorldOptions()) as world:
        number = await world.open()
        await world.settle()
        await world.make_queue(state=QueueState.PAUSED)
        await world.comment("/merge", on=number)
        await world.settle()
        await world.fault({"method": "PATCH", "path": path, "nth": 1}, "reset_after")
        (lost,) = world.sandbox.world.faults.listed
        queue, freeze = await world.queue(), queues.HoldRequest(WHY)
        hold = await queues.add_hold(world.runtime, queue, freeze, SYSTEM)

        async def is_lost() -> bool:
            return bool(lost.struck)

        await world.until(is_lost)
        assert WHY in "".join(shown(world, number))
        await queues.release_hold(world.runtime, queue, hold.id, "it has gone", SYSTEM)
        await world.settle()
        assert WHY not in "".join(shown(world, number))


@pytest.mark.parametrize("kind", ["reset_after", "late"])
@pytest.mark.fault(
    "the answer to a new label is lost, and the state it is about ends meanwhile",
    holds="the label is removed",
    within="10 min",
)
async def test_a_label_whose_answer_is_lost_does_not_stay_when_its_state_ends(
    kind: str, tmp_path: Path
) -> None:
    async with living(tmp_path, WorldOptions()) as world:
        number = await world.open()
        await world.settle()
        await world.make_queue(state=QueueState.PAUSED, state_labels_enabled=True)
        more = {"s": LATE_S} if kind == "late" else {}
        await world.fault({"method": "POST", "path": "*/labels", "nth": 1}, kind, **more)
        (lost,) = world.sandbox.world.faults.listed
        await world.comment("/merge", on=number)

        async def is_lost() -> bool:
            return bool(lost.struck)

        await world.until(is_lost)
        await world.act("comment", number=number, body="/merge cancel")
        await world.settle()
        await world.rest(2 * LATE_S)
        assert await world.state(number) == "CANCELLED"
        assert world.repository.issues[number].labels == []
