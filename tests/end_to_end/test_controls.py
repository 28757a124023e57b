"""Boxes in the status comment and buttons on the check run do what the commands do."""

import pytest

from bot.sandbox.acts import conversation
from bot.sandbox.records import Actor
from service.mergequeue.engine.states import QueueState
from tests.harness import gates
from tests.harness.world import REPO, World, WorldOptions

CANCEL, REQUEUE, SOONER = ("headgate:box=cancel", "headgate:box=requeue", "headgate:box=sooner")


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


async def waiting(world: World) -> int:
    """A pull request in a paused queue, its comment written; its number."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    return number


async def tick(world: World, number: int, box: str, by: str = "bob") -> None:
    """Tick a box of the status comment, and wait for what follows."""
    comments = world.repository.issues[number].comments
    (status,) = [one.id for one in comments if one.body == world.comment_on(number)]
    await world.sandbox.act("tick_checkbox", by, REPO, number=number, box=box, comment=status)
    await world.settle()


def replies_on(world: World, number: int) -> list[str]:
    """Every comment of ours but the status comment."""
    status = world.comment_on(number)
    bodies = [one.body for one in world.repository.issues[number].comments]
    return [body for body in bodies if body != status and not body.startswith("/merge")]


async def test_a_ticked_box_takes_it_out_and_another_queues_it_again(world: World) -> None:
    number = await waiting(world)
    await tick(world, number, CANCEL)
    entry = await world.entry(number)
    assert (entry.state.value, entry.canceller and entry.canceller.login) == ("CANCELLED", "bob")
    assert CANCEL not in world.comment_on(number)
    await tick(world, number, REQUEUE)
    again = await world.entry(number)
    assert again.state.value in ("PENDING", "NOT_READY")
    assert (again.id == entry.id, again.submitted_by.channel.value) == (False, "checkbox")
    assert replies_on(world, number) == []


async def test_a_person_without_the_right_gets_a_sentence_and_the_box_is_empty_again(
    world: World,
) -> None:
    number = await waiting(world)
    await tick(world, number, CANCEL, by="carol")
    assert await world.state(number) != "CANCELLED"
    (reply,) = replies_on(world, number)
    assert "you need triage access to `octo/widgets` for `/merge cancel`" in reply
    assert f"- [ ] Remove from the queue <!-- {CANCEL} -->" in world.comment_on(number)
    assert "[x]" not in world.comment_on(number)


async def test_what_people_write_into_our_comment_is_removed(world: World) -> None:
    number = await waiting(world)
    text = world.comment_on(number)
    (status,) = [one.id for one in world.repository.issues[number].comments if one.body == text]
    await world.act("edit", number=number, comment=status, body="Nothing to see here")
    await world.settle()
    shown = world.comment_on(number)
    assert shown.splitlines()[:2] == text.splitlines()[:2]
    assert await world.state(number) in ("PENDING", "NOT_READY")


async def test_a_box_gives_it_priority_high(world: World) -> None:
    number = await waiting(world)
    await tick(world, number, SOONER)
    assert (await world.entry(number)).priority == 10
    assert SOONER not in world.comment_on(number)


async def test_a_fork_has_no_box_that_admits_its_head(world: World) -> None:
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open(by="dave", fork=True)
    await world.settle()
    await world.comment("/merge", on=number, by="bob")
    await world.settle()
    assert CANCEL in world.comment_on(number)
    assert SOONER not in world.comment_on(number)
    await tick(world, number, CANCEL)
    assert await world.state(number) == "CANCELLED"
    assert REQUEUE not in world.comment_on(number)


async def test_the_button_of_the_completed_check_run_queues_it_again(world: World) -> None:
    number = await waiting(world)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    before = await world.entry(number)
    await world.act("press_button", number=number, button="requeue")
    await world.settle()
    entry = await world.entry(number)
    assert (entry.id == before.id, entry.submitted_by.channel.value) == (False, "button")
    assert entry.state.value in ("PENDING", "NOT_READY")


async def test_re_run_on_the_completed_check_run_queues_it_again(world: World) -> None:
    number = await waiting(world)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    await world.act("rerun_check", number=number, by="carol")
    await world.settle()
    assert await world.state(number) == "CANCELLED"
    await world.act("rerun_check", number=number)
    await world.settle()
    assert await world.state(number) in ("PENDING", "NOT_READY")


async def test_re_run_on_the_check_run_of_a_test_restarts_it(world: World) -> None:
    await world.make_queue()
    number = await world.open()
    await world.comment("/merge", on=number)
    await gates.under_test(world, number)
    await world.until(lambda: is_shown(world, number))
    before = (await world.entry(number)).run
    await world.act("rerun_check", number=number)
    await world.until(lambda: is_tested(world, number, but=before))


async def is_shown(world: World, number: int) -> bool:
    """Whether our check is on a pull request."""
    return world.check_on(number) != ""


async def is_tested(world: World, number: int, but: str | None = None) -> bool:
    """Whether a run tests a pull request, another than `but`."""
    entry = await world.entry(number)
    return entry.state.value == "TESTING" and entry.run != but


async def test_the_button_of_an_old_commit_queues_nothing(world: World) -> None:
    number = await waiting(world)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    before = await world.entry(number)
    app_runs = world.repository.check_runs(before.head)
    pressed = next(run for run in app_runs if run.name == "Headgate (main)")
    await world.act("push", number=number, files={"more.txt": "x\n"})
    await world.settle()
    bob = world.sandbox.world.account("bob")
    assert bob is not None
    conversation.press(world.repository, Actor(bob), pressed, "requeue")
    await world.settle()
    assert (await world.entry(number)).id == before.id
    assert "The head is" in replies_on(world, number)[-1]
