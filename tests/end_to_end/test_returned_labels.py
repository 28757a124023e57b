"""A label that a person puts back while Headgate removes it stays, and is a command."""

from typing import Any

import pytest

from service.mergequeue.engine.states import QueueState
from tests.harness import gates
from tests.harness.world import REPO, World, WorldOptions

LABEL = "headgate-submit"
PERIOD_S = 20
SLOW_S = 10
REMOVAL = {"method": "DELETE", "path": "*/labels/*", "times": 1}
STATUS_COMMENT = {"method": "PATCH", "path": "*/issues/comments/*", "times": 1}


@pytest.fixture
def world_options() -> WorldOptions:
    """A sweep of labels comes soon, and only where a test waits for it."""
    return WorldOptions(ci=gates.CI, settings={"period_comments_s": PERIOD_S})


async def labelled(world: World, by: str = "bob") -> int:
    """A pull request that its label has submitted to a paused queue."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open()
    await world.settle()
    await world.act("label", by=by, number=number, label=LABEL)
    await world.settle()
    return number


async def meanwhile(world: World, match: dict[str, Any], *acts: str, number: int) -> None:
    """Let bob add and remove the label just before a call of Headgate."""
    for act in acts:
        person = {"act": act, "as": "bob", "repo": REPO, "number": number, "label": LABEL}
        await world.fault(match, "before", act=person)


async def is_queued(world: World, number: int) -> bool:
    return number in (await world.value()).entries


def has_label(world: World, number: int) -> bool:
    return LABEL in world.repository.issues[number].labels


async def test_a_label_put_back_before_the_status_comment_is_written_is_that_of_the_next(
    world: World,
) -> None:
    """The notices of the ended submission take long; meanwhile the label submits again."""
    number = await labelled(world)
    await world.fault(STATUS_COMMENT, "hang", s=SLOW_S)
    await world.act("unlabel", by="bob", number=number, label=LABEL)
    await world.until(lambda: _hangs(world))
    await world.act("label", by="bob", number=number, label=LABEL)
    await world.settle()
    assert await is_queued(world, number)
    assert has_label(world, number)


async def _hangs(world: World) -> bool:
    return bool(world.sandbox.world.faults.listed[-1].struck)


async def test_a_label_put_back_before_it_is_removed_submits_again(world: World) -> None:
    number = await labelled(world)
    await meanwhile(world, REMOVAL, "unlabel", "label", number=number)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert await is_queued(world, number)
    assert has_label(world, number)


async def test_the_submission_of_a_label_put_back_meanwhile_is_that_of_its_author(
    world: World,
) -> None:
    number = await labelled(world, by="alice")
    await meanwhile(world, REMOVAL, "unlabel", "label", number=number)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert (await world.entry(number)).submitted_by.login == "bob"


async def test_a_refused_label_that_a_person_with_the_right_adds_again_submits(
    world: World,
) -> None:
    await world.act("role", by="alice", login="carol", role="triage")
    await meanwhile(world, REMOVAL, "unlabel", "label", number=1)
    number = await labelled(world, by="carol")
    assert (await world.entry(number)).submitted_by.login == "bob"
    assert has_label(world, number)


async def test_a_label_put_back_without_the_right_is_removed(world: World) -> None:
    """It is put back, as it was not the removed one, and then it is refused."""
    await world.act("role", by="alice", login="bob", role="triage")
    number = await labelled(world, by="alice")
    await meanwhile(world, REMOVAL, "unlabel", "label", number=number)
    await world.comment("/merge cancel", on=number, by="alice")
    await world.settle()
    assert not await is_queued(world, number)
    assert not has_label(world, number)


@pytest.mark.fault(
    "a label is put back while it is removed, and the event is lost",
    holds="it submits again",
    within="4 sweeps",
)
async def test_a_label_put_back_whose_events_are_lost_is_found(world: World) -> None:
    number = await labelled(world)
    await meanwhile(world, REMOVAL, "unlabel", "label", number=number)
    await world.fault({"event": "pull_request", "action": "labeled"}, "drop")
    await world.comment("/merge cancel", on=number)
    await world.rest(4 * PERIOD_S)
    await world.settle()
    assert await is_queued(world, number)
    assert has_label(world, number)


@pytest.mark.fault(
    "the removal of a label gets no answer while a person puts it back",
    holds="the label stays and submits",
    within="-",
)
@pytest.mark.parametrize("kind", ["reset_before", "reset_after"])
async def test_a_removal_without_an_answer_takes_no_label_that_was_put_back(
    world: World, kind: str
) -> None:
    number = await labelled(world)
    await meanwhile(world, REMOVAL, "unlabel", "label", number=number)
    await world.fault(REMOVAL, kind)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert await is_queued(world, number)
    assert has_label(world, number)
