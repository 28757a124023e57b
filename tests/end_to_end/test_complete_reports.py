"""Runs in which only a quarantined test failed land, however their job ends and is split."""

import pytest

from tests.harness import command_reports as command
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.command_reports import CART, FAILS, GREEN, MAIL, POST, RED, TOTAL
from tests.harness.world import World, WorldOptions

ODD_CODES = [
    pytest.param("ctest", 8, id="ctest"),
    pytest.param("make", 2, id="make"),
    pytest.param("sh", 2, id="mocha behind a shell"),
    pytest.param("mix", 2, id="mix"),
    pytest.param("xcodebuild", 65, id="xcodebuild"),
    pytest.param("cypress", 3, id="cypress"),
]


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `total` is quarantined."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await command.on_main(asking, GREEN, 0, "1")
    await command.quarantine(asking)
    return asking


async def under_test(world: World, files: dict[str, str | None] | None = None) -> gates.Gate:
    """The run of a pull request that was asked to merge."""
    number = await world.open(files=files)
    await world.settle()
    await world.comment("/merge", on=number)
    return await gates.under_test(world, number)


async def ends_by(world: World, ask: Asker, gate: gates.Gate, code: int) -> None:
    """End the job of a run with the exit code that `headgate test` was told."""
    (number,) = gate.run.prs
    tests = {TOTAL: "failed" if code else ""}
    await ci.ends(ask, number, tests, sends=False)
    await world.settle()


@pytest.mark.parametrize(("runner", "code"), ODD_CODES)
async def test_a_code_that_the_job_has_shown_is_excused(
    world: World, ask: Asker, runner: str, code: int
) -> None:
    for attempt, (tests, ended) in enumerate(((RED, code), (GREEN, 0)), 1):
        await command.on_main(ask, tests, ended, "2", run_attempt=attempt, runner=runner)
    gate = await under_test(world)
    answer = await command.in_gate(ask, gate, command.report_of(RED), code, runner=runner)
    await ends_by(world, ask, gate, answer["verdict"]["exit_code"])
    assert await world.merged() == list(gate.run.prs)


@pytest.mark.parametrize("name", ["unit=2", "*=2", "un*=2"])
async def test_a_code_that_the_setting_names_is_excused(
    world: World, ask: Asker, name: str
) -> None:
    await ci.settle_tests(ask, "update-settings", test_failure_exit_codes=["other=3", name])
    gate = await under_test(world)
    answer = await command.in_gate(ask, gate, command.report_of(RED), 2, runner="make")
    await ends_by(world, ask, gate, answer["verdict"]["exit_code"])
    assert await world.merged() == list(gate.run.prs)


async def test_shards_may_exchange_tests(world: World, ask: Asker) -> None:
    await ci.fails_by_tests_alone(ask)
    for run_id in "23":
        await command.on_main(ask, {TOTAL: "", CART: ""}, 0, run_id, job="unit")
        await command.on_main(ask, {MAIL: "", POST: ""}, 0, run_id, job="unit2")
    gate = await under_test(world)
    moved = command.report_of({TOTAL: FAILS, MAIL: ""})
    first = await command.in_gate(ask, gate, moved, 1)
    # Nobody knows yet where the rest has gone.
    assert first["verdict"]["exit_code"] == 1
    await command.in_gate(ask, gate, command.report_of({CART: "", POST: ""}), 0, job="unit2")
    await ends_by(world, ask, gate, 1)
    assert await world.merged() == list(gate.run.prs)


async def test_a_test_that_is_lost_between_shards_is_missed(world: World, ask: Asker) -> None:
    for run_id in "23":
        await command.on_main(ask, {TOTAL: "", CART: ""}, 0, run_id, job="unit")
        await command.on_main(ask, {MAIL: "", POST: ""}, 0, run_id, job="unit2")
    gate = await under_test(world)
    await command.in_gate(ask, gate, command.report_of({TOTAL: FAILS, MAIL: ""}), 1)
    await command.in_gate(ask, gate, command.report_of({CART: ""}), 0, job="unit2")
    await ends_by(world, ask, gate, 1)
    assert await world.merged() == []


async def test_tests_that_a_change_removes_are_not_missed(world: World, ask: Asker) -> None:
    gate = await under_test(world, {"tests/mail.py": "# one test less\n"})
    rest = {TOTAL: FAILS, MAIL: "", CART: ""}
    answer = await command.in_gate(ask, gate, command.report_of(rest), 1)
    await ends_by(world, ask, gate, answer["verdict"]["exit_code"])
    assert await world.merged() == list(gate.run.prs)


async def test_a_skip_that_the_head_has_had_as_well_is_no_gap(world: World, ask: Asker) -> None:
    skipping = command.report_of({**RED, CART: "<skipped/>"})
    number = await world.open()
    await world.settle()
    pull = world.repository.issues[number].pull
    assert pull is not None
    await command.send(
        ask, skipping, 1, sha=pull.head_sha, branch="topic", run_id="77", pr_number=number
    )
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    answer = await command.in_gate(ask, gate, skipping, 1)
    await ends_by(world, ask, gate, answer["verdict"]["exit_code"])
    assert await world.merged() == [number]
