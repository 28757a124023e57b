"""Attacks by which a report of one job would excuse the failed check of another."""

from typing import Any

import aiohttp
import pytest

from service.testhealth.detector.completeness import UNPROVED, UNPROVED_HISTORY
from service.vocabulary import Role
from tests.adversary.judge import landed_on
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

ONLY_RUN = "by a report of its CI run"
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
    ran = gates.workflow_run_of(world, gate.check)
    jobs = {check.name: check for check in ran.jobs[ran.attempt]}
    by = ci.token_of(world, jobs[sender]) if sender in jobs else ""
    stranger: Asker = await asker(world, role=Role.CI)
    about = {"sha": gate.run.sha, "branch": gate.run.branch, "run_id": str(ran.id)}
    if sender == "other":
        with pytest.raises(AssertionError, match="is the name of another job"):
            await ci.upload(stranger, RED, by=by, job="unit", **about)
        by = ""
    await ci.upload(stranger, RED, by=by, job="unit", **about)
    await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    assert len(await landed_on(world)) == (1 if sender == "unit" else 0)
    assert (UNPROVED in world.comment_on(number)) is (sender != "unit")


async def being_merged(world: World) -> tuple[int, gates.Gate]:
    """A pull request that is tested by the queue, and its run."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return number, await gates.under_test(world, number)


def on_tip(world: World, run_id: str) -> dict[str, Any]:
    """What an upload says about a CI run of the tip of `main`."""
    sha = str(world.repository.git.branch("main"))
    return {"sha": sha, "branch": "main", "run_id": run_id}


async def test_reports_by_a_token_do_not_shrink_what_a_job_should_report(world: World) -> None:
    """Hurts everybody who builds main: `mail` is broken, and forged results do not have it."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(admin, GREEN, "1")
    await ci.quarantine(admin, "total", WRONG)
    stranger = await asker(world, role=Role.QUEUE)
    for run_id in "234":
        await world.rest(1)
        await ci.upload(stranger, {"total": ""}, job="unit", **on_tip(world, run_id))
    number, _ = await being_merged(world)
    await ci.ends(admin, number, {"total": WRONG})
    await world.settle()
    assert await landed_on(world) == []
    assert "1 of 2 tests that `unit` reported" in world.comment_on(number)


async def test_what_nothing_proves_of_main_says_nothing_of_a_test_run(world: World) -> None:
    """Hurts everybody who builds main: a token alone would say which tests a job has."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.fails_by_tests_alone(admin)
    await ci.upload(admin, GREEN, job="unit", **on_tip(world, "1"))
    await ci.quarantine(admin, "total", WRONG)
    number, _ = await being_merged(world)
    await ci.ends(admin, number, RED)
    await world.settle()
    assert await landed_on(world) == []
    assert UNPROVED_HISTORY.format(job="`unit`") in world.comment_on(number)


@pytest.mark.parametrize("is_forged", [True, False])
async def test_a_forged_report_does_not_stand_for_a_job_that_is_missing(
    world: World, *, is_forged: bool
) -> None:
    """Hurts everybody who builds main: a job never ran, and a token says that it did."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(admin, GREEN, "1")
    lost = on_tip(world, "1")
    await ci.upload(admin, {"slow": ""}, by=ci.token_on_main(world, "1"), job="slow", **lost)
    await ci.quarantine(admin, "total", WRONG)
    number, gate = await being_merged(world)
    ran = gates.workflow_run_of(world, gate.check)
    about: dict[str, Any] = {"sha": gate.run.sha, "branch": gate.run.branch, "run_id": str(ran.id)}
    if is_forged:
        stranger = await asker(world, role=Role.CI)
        await ci.upload(stranger, {"slow": ""}, job="slow", **about)
    await ci.ends(admin, number, RED)
    await world.settle()
    assert await landed_on(world) == []
    assert "`slow` reported on the target branch and not in this CI run" in world.comment_on(number)


@pytest.mark.parametrize("needs", ["JOB", "RUN"])
async def test_what_only_the_run_proves_excuses_where_an_admin_says_so_and_is_told(
    world: World, needs: str
) -> None:
    """Hurts reviewers: an excuse that any job of the run can make looks like the job's own."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.settle_tests(admin, "update-settings", excuse_proof=needs)
    await ci.on_main(admin, GREEN, "1")
    await ci.quarantine(admin, "total", WRONG)
    number, gate = await being_merged(world)
    about: dict[str, Any] = {"sha": gate.run.sha, "branch": gate.run.branch, "job": "unit"}
    await ci.upload(admin, RED, by=ci.token_of_run(world, gate.check), **about)
    run = await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    is_enough = needs == "RUN"
    assert len(await landed_on(world)) == is_enough
    assert (UNPROVED in world.comment_on(number)) is not is_enough
    shown = await admin.done("getMergeQueueTestingDetails", testRunId=run.id)
    proofs = [one["proof"] for one in shown["requiredChecks"] if one["name"] == "unit"]
    assert proofs == (["run"] if is_enough else [None])
    assert (ONLY_RUN in world.comment_on(number)) is is_enough


async def test_the_token_of_an_earlier_attempt_excuses_no_later_one(world: World) -> None:
    """Hurts everybody who builds main: the job breaks when it runs again, and the past excuses."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(admin, GREEN, "1")
    await ci.quarantine(admin, "total", WRONG)
    number, gate = await being_merged(world)
    earlier = ci.token_of(world, gate.check)
    first = await ci.ends(admin, number, {"total": "ImportError: no cart", "mail": ""})

    async def is_tried_again() -> bool:
        run = (await world.value()).runs.get(first.id)
        return run is not None and run.attempt == 2

    await world.until(is_tried_again)
    again = await gates.under_test(world, number)
    about: dict[str, Any] = {"sha": again.run.sha, "branch": again.run.branch, "job": "unit"}
    await ci.upload(admin, RED, by=earlier, **about)
    await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    assert again.check is not gate.check
    assert await landed_on(world) == []


async def test_the_token_of_a_job_of_another_run_excuses_nothing_there(world: World) -> None:
    """Hurts everybody who builds main: one pull request's job speaks for that of another."""
    admin = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(admin, GREEN, "1")
    await ci.quarantine(admin, "total", WRONG)
    _, ahead = await being_merged(world)
    number, gate = await being_merged(world)
    earlier = ci.token_of(world, ahead.check)
    ran = gates.workflow_run_of(world, gate.check)
    for claims in ({"branch": gate.run.branch}, {"run_id": str(ran.id)}):
        form = aiohttp.FormData()
        form.add_field("metadata", ci.about(sha=gate.run.sha, job="unit", **claims))
        form.add_field("file", ci.a_report(RED), filename="junit.xml")
        url = f"{world.url}/v1/flaky-tests/upload-test-results"
        headers = {"Authorization": f"Bearer {earlier}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=form, headers=headers) as answer,
        ):
            assert (await answer.json())["code"] == "conflicting_fields"
    await ci.upload(admin, RED, by=earlier, sha=gate.run.sha, job="unit")
    await ci.ends(admin, number, RED, sends=False)
    await world.settle()
    assert await landed_on(world) == []
    assert await world.state(number) != "MERGED"


@pytest.mark.parametrize("key", ["unit", "unit @ linux", "junit-unit"])
async def test_a_job_cannot_report_under_the_name_of_another(world: World, key: str) -> None:
    """Hurts everybody who builds main: it would say what others must report, or stand for them."""
    await world.make_queue(confirm_failures="OFF")
    _, gate = await being_merged(world)
    ran = gates.workflow_run_of(world, gate.check)
    jobs = {check.name: check for check in ran.jobs[ran.attempt]}
    about: dict[str, Any] = {"sha": gate.run.sha, "branch": gate.run.branch, "run_id": str(ran.id)}
    ask, own = await asker(world, role=Role.CI), {"by": ci.token_of(world, jobs["other"]), **about}
    with pytest.raises(AssertionError, match="is the name of another job"):
        await ci.upload(ask, {"mail": ""}, job=key, **own)
    await ci.upload(ask, {"mail": ""}, job="other", **own)
    await ci.upload(ask, {"mail": ""}, job="my own name", **own)
