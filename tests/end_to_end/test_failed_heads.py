"""A head that failed twice costs no third test run, unless something may have repaired it."""

import re
from typing import Any

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.states import RunKind
from service.vocabulary import Role
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


async def runs_of(world: World) -> int:
    """How many test runs the queue has begun so far."""
    return (await world.value()).next_run - 1


async def fails_twice(world: World, number: int) -> None:
    """Let the tests of a queued pull request fail, and its confirmation."""
    await gates.fails(world, number)
    await gates.ends(world, number, conclusion="failure", kind=RunKind.CONFIRMATION)
    await world.settle()
    assert await world.state(number) == "FAILED"


async def blamed(world: World, **files: Any) -> int:
    """A pull request whose head was blamed with confirmation; its number."""
    number = await world.open(**files)
    await world.settle()
    await world.comment("/merge", on=number)
    await fails_twice(world, number)
    return number


async def lands_another(world: World) -> None:
    """Let another pull request land, which may have repaired everything."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await gates.ends(world, number)
    await world.settle()
    assert await world.state(number) == "MERGED"


async def is_tested(world: World, number: int) -> bool:
    """Submit it again by a comment; return whether it enters."""
    before = await world.entry(number)
    await world.comment("/merge", on=number)
    await world.settle()
    return (await world.entry(number)).id != before.id


async def test_no_door_lets_it_in_again(world: World) -> None:
    ask = await asker(world)
    await world.make_queue()
    number = await blamed(world)
    head = (await world.entry(number)).head
    before = await runs_of(world)
    assert before == 2
    await world.comment("/merge", on=number)
    await world.act("label", number=number, label="headgate-submit")
    await world.settle()
    status, answer = await ask.post("submitPullRequest", number)
    assert (status, answer["code"], answer["run_number"]) == (409, "failed_before", 2)
    assert [each["name"] for each in answer["checks"]] == ["unit"]
    assert (answer["landings"], len(answer["commit"])) == (1, 40)
    await world.act("press_button", number=number, button="requeue")
    await world.act("close", number=number)
    await world.act("reopen", number=number)
    await world.settle()
    assert not await is_tested(world, number)
    entry = await world.entry(number)
    assert (entry.head, await runs_of(world)) == (head, before)
    bodies = [one.body for one in world.repository.issues[number].comments]
    refused = [body for body in bodies if "This head failed in test run 2" in body]
    # The comment, the label, the button, and the comment after it was reopened.
    assert len(refused) == 4
    assert "comment `/merge --again`" in refused[0]


async def test_a_new_head_is_tested(world: World) -> None:
    await world.make_queue()
    number = await blamed(world)
    await world.act("push", number=number, files={"fix.txt": "x\n"})
    await world.settle()
    assert await is_tested(world, number)


async def test_a_person_with_write_access_lets_it_in_once(world: World) -> None:
    await world.make_queue()
    number = await blamed(world)
    await world.comment("/merge --again", on=number)
    await fails_twice(world, number)
    assert not await is_tested(world, number)


async def test_a_token_needs_the_role_admin_for_that(world: World) -> None:
    ask, agent = await asker(world), await asker(world, Role.QUEUE)
    await world.make_queue()
    number = await blamed(world)
    status, answer = await agent.post("submitPullRequest", number, again=True)
    assert (status, answer["code"]) == (403, "missing_role")
    made = await ask.done("submitPullRequest", number, again=True)
    assert made["result"] == "created"


async def test_it_is_tested_as_soon_as_the_base_may_have_repaired_it(world: World) -> None:
    await world.make_queue()
    number = await blamed(world)
    await lands_another(world)
    assert await is_tested(world, number)
    await gates.ends(world, number)
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_each_further_blame_needs_twice_as_many_landings(world: World) -> None:
    await world.make_queue()
    number = await blamed(world)
    await lands_another(world)
    await world.comment("/merge", on=number)
    await fails_twice(world, number)
    assert not await is_tested(world, number)
    await lands_another(world)
    assert not await is_tested(world, number)
    bodies = [one.body for one in world.repository.issues[number].comments]
    assert ["after 2 landings" in body for body in bodies[-3:]].count(True) == 1
    await lands_another(world)
    assert await is_tested(world, number)


async def test_a_required_check_more_is_another_question(world: World) -> None:
    ask = await asker(world)
    await world.make_queue()
    number = await blamed(world)
    await ask.done("updateQueue", requiredStatuses=["unit", "lint"])
    assert await is_tested(world, number)


async def test_another_queue_is_another_base(world: World) -> None:
    await world.make_queue()
    number = await blamed(world)
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    await world.settle()
    await world.make_queue(branch="release", required_statuses=("unit",))
    await world.act("retarget", number=number, base="release")
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert number in (await world.value("release")).entries
    await world.comment("/merge cancel", on=number)
    await world.act("retarget", number=number, base="main")
    await world.settle()
    assert not await is_tested(world, number)


async def test_without_confirmation_a_second_failed_run_confirms_the_first(world: World) -> None:
    await world.make_queue(confirm_failures="OFF")
    number = await world.open()
    await world.settle()
    for _ in range(2):
        await world.comment("/merge", on=number)
        await gates.fails(world, number)
        await world.settle()
        assert await world.state(number) == "FAILED"
    assert not await is_tested(world, number)
    assert await runs_of(world) == 2


async def test_another_pull_request_with_the_head_is_refused_as_well(world: World) -> None:
    await world.make_queue()
    number = await blamed(world)
    await world.act("force_push", branch="copy", to=(await world.entry(number)).head)
    copy = (await world.act("open", head="copy", base="main", title="The same again"))["number"]
    await world.settle()
    await world.comment("/merge", on=copy)
    await world.settle()
    assert copy not in (await world.value()).entries
    assert "failed in test run 2" in world.repository.issues[copy].comments[-1].body


async def test_a_head_that_timed_out_twice_is_to_be_changed_or_gets_more_time(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(testing_timeout_minutes=5)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await gates.under_test(world, number)
    await world.rest(15 * 60)
    await world.settle()
    assert await world.state(number) == "FAILED"
    step = await ask.done("getNextStep", number)
    assert (step["kind"], step["code"]) == ("FIX", "run_timed_out")
    assert not await is_tested(world, number)
    await ask.done("updateQueue", testingTimeoutMinutes=10)
    assert await is_tested(world, number)
    await gates.ends(world, number)
    await world.settle()


async def test_a_failure_that_is_known_as_flaky_by_now_is_no_blame(world: World) -> None:
    ask = await asker(world)
    await world.make_queue()
    await ci.on_main(ask, {"total": "", "mail": ""}, "1")
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    failing = {"total": "AssertionError: 10.0 != 10.01", "mail": ""}
    await ci.ends(ask, number, failing)
    await ci.ends(ask, number, failing, kind=RunKind.CONFIRMATION)
    await world.settle()
    assert await world.state(number) == "FAILED"
    assert not await is_tested(world, number)
    (refused,) = [
        one.body for one in world.repository.issues[number].comments if "run 2" in one.body
    ]
    assert re.search("with the failed tests `[^`]*total[^`]*`", refused)
    await ci.on_main(ask, failing, "2")
    await ci.on_main(ask, {"total": "", "mail": ""}, "3")
    await world.settle()
    assert await is_tested(world, number)


async def test_a_landing_that_meets_nothing_of_it_repairs_nothing(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(mode=Mode.PARALLEL)

    async def submitted(target: str) -> int:
        number = await world.open()
        await world.settle()
        await ask.done("setImpactedTargets", number, impactedTargets=[target])
        await world.comment("/merge", on=number)
        return number

    number = await submitted("//api")
    await fails_twice(world, number)
    other = await submitted("//web")
    await gates.ends(world, other)
    await world.settle()
    assert await world.state(other) == "MERGED"
    assert not await is_tested(world, number)
    same = await submitted("//api")
    await gates.ends(world, same)
    await world.settle()
    assert await is_tested(world, number)
