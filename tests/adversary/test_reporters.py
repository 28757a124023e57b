"""Reports of a required name by others than its own CI: a name alone proves nothing."""

from typing import Any

import pytest

from bot.sandbox import reports
from bot.sandbox.acts import seeds
from bot.sandbox.records import Actor
from bot.sandbox.reports import NewStatus
from service.mergequeue.operations import reconcile
from service.vocabulary import BY_SETTING, CheckKind
from tests.adversary.judge import landed_on
from tests.adversary.test_untested import opened
from tests.harness import gates
from tests.harness.world import World, WorldOptions

TARGET = "triggers: {push: [main], pull_request: true}\nchecks:\n"
HEADS = "triggers: {pull_request: true}\nchecks:\n"
UNIT = "  - {name: unit, seconds: 3}\n"
BAD = "{exists: [bad.txt], branch: 'headgate/**', conclusion: failure}"
RED = f"  - {{name: unit, seconds: 3, rules: [{BAD}]}}\n"
OTHER = "  - {name: other, seconds: 3}\n"
BY_STATUS = "  - {name: unit, kind: status, seconds: 1}\n"


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    found: WorldOptions = getattr(request, "param", WorldOptions(ci=gates.CI))
    return found


def of(ci: str) -> pytest.MarkDecorator:
    """Give a test a world with this CI, in which `unit` is required of no App."""
    return pytest.mark.parametrize("world_options", [WorldOptions(ci=ci)], indirect=True)


def head_of(world: World, number: int) -> str:
    """The head of a pull request."""
    pull = world.repository.issues[number].pull
    assert pull is not None
    return pull.head_sha


def post(world: World, sha: str, by: str = "bob", name: str = "unit") -> None:
    """Somebody with write access sets a green commit status."""
    account = world.sandbox.world.account(by)
    assert account is not None
    reports.add_status(world.repository, sha, account, NewStatus(name, "success"))


async def commit_under_test(world: World) -> str:
    """The commit of the newest test branch, once there is one."""
    found: list[str] = []

    async def is_there() -> bool:
        found[:] = [run.sha for run in (await world.value()).runs.values() if run.sha]
        return bool(found)

    await world.until(is_there)
    return found[-1]


async def to_main(world: World, ci: str) -> None:
    """An admin pushes another CI to the target branch."""
    files = {".sandbox/ci.yml": ci}
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()


async def required(world: World) -> Any:
    """The first required name as the queue has it."""
    known = (await world.value()).required
    assert known is not None
    return known.names[0]


@of(TARGET + RED)
async def test_a_status_does_not_stand_for_a_red_check_run(world: World) -> None:
    """Hurts everybody who builds main: bob posts `unit` before CI reports, and CI is red."""
    await world.make_queue()
    number = await opened(world, "bad.txt")
    await world.comment("/merge", on=number)
    post(world, await commit_under_test(world))
    await world.rest(120)
    assert await landed_on(world) == []


@of(TARGET + UNIT)
async def test_a_status_does_not_stand_for_a_job_that_the_change_removed(world: World) -> None:
    """Hurts everybody who builds main: the change has no job `unit`, and bob posts its name."""
    await to_main(world, TARGET + UNIT + OTHER)
    await world.make_queue()
    number = await world.open(files={".sandbox/ci.yml": TARGET + OTHER}, fresh=True)
    await world.settle()
    post(world, head_of(world, number))
    await world.comment("/merge", on=number)
    post(world, await commit_under_test(world))
    await world.rest(60)
    assert await world.merged() == []
    text = world.check_summary(number)
    assert (
        "was reported by a commit status of bob; it comes from the check run of `Sandbox-ci`"
        in text
    )


@of(TARGET + UNIT)
async def test_the_control_of_both_lands(world: World) -> None:
    """Hurts the author: what CI has passed must land."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]


@of(HEADS + OTHER)
async def test_a_status_that_was_never_seen_before_is_not_believed(world: World) -> None:
    """Hurts everybody who builds main: nothing ever reported `unit`, and bob posts it."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    post(world, head_of(world, number))
    await world.comment("/merge", on=number)
    post(world, await commit_under_test(world))
    await world.rest(120)
    assert await landed_on(world) == []


@of(HEADS + BY_STATUS)
async def test_statuses_of_a_bot_on_heads_are_learned(world: World) -> None:
    """Hurts the author: CI reports by commit statuses, and nothing lands."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    assert (await required(world)).kind is CheckKind.STATUS


@of(HEADS + BY_STATUS.replace("seconds: 1", "seconds: 30"))
async def test_a_status_of_another_account_does_not_stand_for_the_bots(world: World) -> None:
    """Hurts everybody who builds main: bob is faster than the bot that reports `unit`."""
    await world.make_queue()
    first = await opened(world, "a.txt")
    await world.comment("/merge", on=first)
    await world.settle()
    second = await opened(world, "b.txt")
    await world.comment("/merge", on=second)
    post(world, await commit_under_test(world))
    await world.rest(15)
    assert await world.merged() == [first]


@of(HEADS + BY_STATUS)
async def test_a_writer_does_not_become_the_reporter_on_the_own_head(world: World) -> None:
    """Hurts everybody who builds main: bob posts on bob's head first, to be learned."""
    await world.act(
        "push", by="alice", branch="main", files={".sandbox/ci.yml": HEADS + OTHER}, bypass=True
    )
    await world.make_queue()
    number = await world.open(files={"a.txt": "x"}, fresh=True)
    await world.settle()
    post(world, head_of(world, number))
    await world.comment("/merge", on=number)
    post(world, await commit_under_test(world))
    await world.rest(120)
    assert await world.merged() == []


async def test_the_app_that_reports_on_heads_is_learned(world: World) -> None:
    """Hurts everybody who builds main: another App with the right to report posts the name."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    await reconcile.read_requirements(world.runtime, await world.queue())
    assert (await required(world)).source_id == str(gate.check.suite.app.id)
    app = world.sandbox.world.add_app("stranger", {"checks": "write"}, [])
    suite = reports.new_suite(world.repository, app, gate.check.suite.head_sha, None)
    done = {"name": "unit", "status": "completed", "conclusion": "success"}
    reports.add_run(world.repository, suite, Actor(app.bot, app), done)
    await world.rest(60)
    assert await landed_on(world) == []


async def test_a_pin_to_the_app_is_not_met_by_a_status_of_its_bot(world: World) -> None:
    """Hurts everybody who builds main: a workflow with `statuses: write` posts the name."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    app = world.sandbox.world.apps["sandbox-ci"]
    pinned = {"context": "unit", "integration_id": app.id}
    rule = {"type": "required_status_checks", "parameters": {"required_status_checks": [pinned]}}
    seeds.set_rules(world.repository, {"rulesets": [{"name": "pin", "rules": [rule]}]})
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    post(world, gate.check.suite.head_sha, by="sandbox-ci[bot]")
    await world.rest(60)
    assert await world.merged() == []


async def test_an_admin_names_the_reporter_by_a_setting(world: World) -> None:
    """Hurts the maintainer: a person's status is meant, and nothing but a rule may say so."""
    bob = world.sandbox.world.account("bob")
    assert bob is not None
    await world.make_queue(status_reporters=(f"unit=@{bob.id}",))
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    post(world, (await gates.under_test(world, number)).check.suite.head_sha)
    await world.settle()
    assert await world.merged() == [number]
    assert (await required(world)).binding.on == BY_SETTING


@of(TARGET + UNIT)
async def test_a_check_that_moves_to_another_app_is_learned_anew(
    world: World,
) -> None:
    """Hurts the maintainer: CI has moved to another App, and nothing lands any more."""
    await world.make_queue()
    first = await opened(world, "a.txt")
    await world.comment("/merge", on=first)
    await world.settle()
    moved = TARGET + UNIT.replace("unit,", "unit, app: new-ci,")
    await world.act(
        "push", by="alice", branch="main", files={".sandbox/ci.yml": moved}, bypass=True
    )
    await world.settle()
    second = await world.open(files={"b.txt": "x"}, fresh=True)
    await world.settle()
    await world.comment("/merge", on=second)
    await world.rest(300)
    assert await world.merged() == [first, second]
    assert (await required(world)).source_id == str(world.sandbox.world.apps["new-ci"].id)
