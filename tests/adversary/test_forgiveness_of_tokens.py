"""Attacks by which a shared token would have results excuse failures of runs that made others."""

from typing import Any

import pytest

from service.testhealth.detector.completeness import NO_HISTORY, UNPROVED
from service.vocabulary import Role
from tests.adversary.judge import landed_on
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import HOST, Asker, asker
from tests.harness.world import REPO, World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
RED = {"total": WRONG, "mail": ""}
COMMAND: dict[str, Any] = {
    "session": "a" * 32,
    "session_uploads": 1,
    "command_exit_code": 1,
    "runner": "pytest",
    "job": "unit",
}
"""One run of `headgate test` around tests that failed."""
RUN_READS = {"method": "GET", "path": "*/actions/runs/*"}


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and that we may start again."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def admin(world: World) -> Asker:
    """An admin of a queue; `total` is quarantined."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.quarantine(asking, "total", WRONG)
    return asking


async def being_merged(world: World) -> tuple[int, gates.Gate]:
    """A pull request that is tested by the queue, and its run."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return number, await gates.under_test(world, number)


def of(gate: gates.Gate) -> dict[str, Any]:
    """What an upload says about the commit that a run tests."""
    return {"sha": gate.run.sha, "branch": gate.run.branch}


async def test_a_shared_token_that_names_no_run_excuses_no_failure(
    world: World, admin: Asker
) -> None:
    """Hurts everybody who builds main: any job with the token vouches for the test branch."""
    await ci.on_main(admin, GREEN, "1")
    job = await asker(world, role=Role.CI)
    number, gate = await being_merged(world)
    answer = await ci.upload(job, RED, **of(gate), **COMMAND)
    assert answer["not_excused_because"] == [UNPROVED]
    assert answer["verdict"]["exit_code"] == 1
    await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    assert await landed_on(world) == []


async def test_a_run_that_the_provider_does_not_know_excuses_no_failure(
    world: World, admin: Asker
) -> None:
    """Hurts everybody who builds main: a number that looks like a run's would be proof enough."""
    await ci.on_main(admin, GREEN, "1")
    job = await asker(world, role=Role.CI)
    _, gate = await being_merged(world)
    answer = await ci.upload(job, RED, run_id="424242", **of(gate), **COMMAND)
    assert answer["not_excused_because"] == [UNPROVED]


@pytest.mark.parametrize("role", [Role.CI, Role.QUEUE, Role.ADMIN])
async def test_a_token_of_any_role_excuses_nothing_unless_an_admin_says_so(
    world: World, admin: Asker, role: Role
) -> None:
    """Hurts everybody who builds main: whoever saw the token once excuses failures of any job."""
    await ci.on_main(admin, GREEN, "1")
    job = await asker(world, role=role)
    _, gate = await being_merged(world)
    ran = gates.workflow_run_of(world, gate.check)
    about = {**of(gate), "run_id": str(ran.id), **COMMAND}
    answer = await ci.upload(job, RED, **about)
    assert answer["not_excused_because"] == [UNPROVED]
    await ci.settle_tests(admin, "update-settings", excuse_proof="TOKEN")
    answer = await ci.upload(job, RED, **about)
    assert answer["not_excused_because"] == []
    assert answer["verdict"]["exit_code"] == 0


@pytest.mark.parametrize("role", [Role.CI, Role.QUEUE])
async def test_only_an_admin_lowers_what_must_prove_a_report(
    world: World, admin: Asker, role: Role
) -> None:
    """Hurts everybody who builds main: a job would first allow itself what it then does."""
    asking = await asker(world, role=role)
    owner, name = REPO.split("/")
    repo = {"host": HOST, "owner": owner, "name": name}
    status, answer = await asking.post(
        "flaky-tests/update-settings", repo=repo, org_url_slug=owner, excuse_proof="TOKEN"
    )
    assert (status, answer["code"]) == (403, "missing_role")
    shown = await ci.settle_tests(admin, "get-settings")
    assert shown["excuse_proof"] == "JOB"


async def test_a_provider_that_was_slow_when_results_came_is_asked_again(
    world: World, admin: Asker
) -> None:
    """Hurts authors: a moment in which the provider is away would cost them their excuse."""
    await ci.on_main(admin, GREEN, "1")
    await ci.settle_tests(admin, "update-settings", excuse_proof="TOKEN")
    job = await asker(world, role=Role.CI)
    number, gate = await being_merged(world)
    ran = gates.workflow_run_of(world, gate.check)
    about = {**of(gate), "run_id": str(ran.id), "run_attempt": ran.attempt}
    await world.fault(RUN_READS, "refuse", status=404)
    answer = await ci.upload(job, RED, **about, job="unit")
    assert answer["not_excused_because"] == [UNPROVED]
    world.sandbox.world.faults.clear()
    await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    assert len(await landed_on(world)) == 1


async def test_a_repository_without_results_of_main_excuses_nothing(
    world: World, admin: Asker
) -> None:
    """Hurts everybody who builds main: lost tests go unseen, and the answer says all is well."""
    number, gate = await being_merged(world)
    answer = await ci.upload(admin, RED, by=ci.token_of(world, gate.check), job="unit", **of(gate))
    assert answer["not_excused_because"] == [NO_HISTORY]
    await ci.ends(admin, number, RED)
    await world.settle()
    assert await landed_on(world) == []
    assert NO_HISTORY in world.comment_on(number)
