"""Attacks by which a report of one job would excuse the failed check of another."""

import pytest

from service.testhealth.detector.completeness import UNPROVED
from service.vocabulary import Role
from tests.adversary.judge import landed_on
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
RED = {"total": WRONG, "mail": ""}
CI = gates.CI + "  - {name: other, seconds: 1}\n"


@pytest.fixture
def world_options() -> WorldOptions:
    """CI with a second job, which passes; the first ends when the story says so."""
    return WorldOptions(ci=CI, permissions={"actions": "write"})


@pytest.mark.parametrize("sender", ["token", "other", "unit"])
async def test_only_the_job_itself_excuses_its_check(world: World, sender: str) -> None:
    """Hurts everybody who builds main: a job reports for another, which broke before its tests."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(admin, GREEN, "1")
    await ci.quarantine(admin, "total", WRONG)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    ran = ci.workflow_run_of(world, gate.check)
    jobs = {check.name: check for check in ran.jobs[ran.attempt]}
    by = ci.token_of(world, jobs[sender]) if sender in jobs else ""
    stranger: Asker = await asker(world, role=Role.CI)
    about = {"sha": gate.run.sha, "branch": gate.run.branch, "run_id": str(ran.id)}
    await ci.upload(stranger, RED, by=by, job="unit", **about)
    await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    assert len(await landed_on(world)) == (1 if sender == "unit" else 0)
    assert (UNPROVED in world.comment_on(number)) is (sender != "unit")
