"""Real pytest under `headgate test`: a failed test is known while the command still runs."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from service.testhealth.early_failures import FAILURES_MAX, EarlyStanding
from tests.harness import gates, live_jobs
from tests.harness import reporting_ci as ci
from tests.harness.asking import HOST, Asker, asker
from tests.harness.world import REPO, World, WorldOptions

GREEN = b"""<testsuite name="pytest">
<testcase name="test_cart" classname="test_shop"/>
<testcase name="test_total" classname="test_shop"/>
<testcase name="test_last" classname="test_shop"/>
</testsuite>"""
JUDGED = "headgate: test_shop.py::test_cart failed; the test run is judged by it"


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of a repository whose `main` passes all tests."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(asking, GREEN, "1")
    return asking


async def under_test(world: World) -> gates.Gate:
    """The run of a pull request that was asked to merge."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return await gates.under_test(world, number)


async def standings(world: World, gate: gates.Gate) -> dict[str, EarlyStanding]:
    """What each test moves that the job has reported early."""
    return {each.name: each.standing for each in await live_jobs.heard(world, gate)}


async def test_a_failed_test_is_known_while_the_command_runs(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    gate = await under_test(world)
    async with live_jobs.running(world, gate, tmp_path, CART="broken") as job:
        assert await job.says("judged by it") == f"{JUDGED}\n"
        assert job.is_running
        assert await standings(world, gate) == {"test_cart": EarlyStanding.COUNTS}
        code, err = await job.ends()
    assert code == 1
    assert "1 failure, 0 quarantined, 1 not: exit code 1" in err


RED = GREEN.replace(
    b'"test_total" classname="test_shop"/>',
    b'"test_total" classname="test_shop"><failure message="10.0 != 10.01"/></testcase>',
)


async def test_a_quarantined_failure_is_not_sent_on(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    failing = await ci.upload(ask, RED, sha="b" * 40, branch="topic", run_id="9", job="unit")
    await ci.settle_tests(ask, "update-settings", quarantine_enabled=True)
    await ci.always_quarantine(ask, failing["failures"][0]["test_id"])
    gate = await under_test(world)

    async def is_heard() -> bool:
        return bool(await standings(world, gate))

    async with live_jobs.running(world, gate, tmp_path, TOTAL="1") as job:
        # A report that is under way when the command ends may be left behind.
        await world.until(is_heard, within_s=7200)
        await job.ends()
    assert await standings(world, gate) == {"test_total": EarlyStanding.QUARANTINED}


async def test_a_failure_that_is_known_as_flaky_is_not_sent_on_and_the_next_one_is(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    failing = await ci.upload(ask, RED, sha="b" * 40, branch="topic", run_id="9", job="unit")
    about = {"flag": "FLAKY", "reason": "waits on the clock"}
    await ci.settle_tests(ask, "flag-test", test_id=failing["failures"][0]["test_id"], **about)
    gate = await under_test(world)
    async with live_jobs.running(world, gate, tmp_path, TOTAL="1", LAST="broken") as job:
        await job.goes_on()
        await job.says("judged by it")
        assert job.is_running
        await job.ends()
    found = await standings(world, gate)
    assert found["test_total"] is EarlyStanding.KNOWN_FLAKY
    assert found["test_last"] is EarlyStanding.COUNTS


async def test_a_test_that_passes_when_it_is_tried_again_is_taken_back(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    gate = await under_test(world)
    again = "CART=broken $PYTEST -k cart; $PYTEST"
    async with live_jobs.running(world, gate, tmp_path, again) as job:
        await job.says("judged by it")
        await job.says("passed when it was tried again")
        assert job.is_running
        await job.ends()
    (failed,) = await live_jobs.heard(world, gate)
    assert failed.standing is EarlyStanding.PASSED
    assert failed.taken_back_at is not None


async def test_a_report_in_which_the_test_passed_takes_its_failure_back(
    world: World, ask: Asker
) -> None:
    gate = await under_test(world)
    by = ci.token_of(world, gate.check)
    test = {"name": "test_cart", "classname": "test_shop", "final": True}
    answer = await tell(ask, gate, by, **test)
    assert (answer["counts"], answer["standing"]) == (True, "counts")
    await ci.upload(ask, GREEN, by=by, sha=gate.run.sha, job="unit")
    (failed,) = await live_jobs.heard(world, gate)
    assert failed.taken_back_at is not None


@pytest.mark.parametrize("end", ["report", "passed"])
async def test_a_late_copy_of_a_failure_that_was_taken_back_counts_no_more(
    world: World, ask: Asker, end: str
) -> None:
    gate = await under_test(world)
    by = ci.token_of(world, gate.check)
    test = {"name": "test_cart", "classname": "test_shop", "final": True}
    await tell(ask, gate, by, **test)
    if end == "report":
        await ci.upload(ask, GREEN, by=by, sha=gate.run.sha, job="unit")
    else:
        await tell(ask, gate, by, **test, passed=True)
    answer = await tell(ask, gate, by, **test)
    assert not answer["counts"]
    (failed,) = await live_jobs.heard(world, gate)
    assert failed.taken_back_at is not None


async def test_a_late_copy_from_before_the_last_try_leaves_a_failure_that_can_be_taken_back(
    world: World, ask: Asker
) -> None:
    gate = await under_test(world)
    by = ci.token_of(world, gate.check)
    test = {"name": "test_cart", "classname": "test_shop"}
    await tell(ask, gate, by, **test, final=True)
    await tell(ask, gate, by, **test, final=False)
    assert await standings(world, gate) == {"test_cart": EarlyStanding.COUNTS}
    await ci.upload(ask, GREEN, by=by, sha=gate.run.sha, job="unit")
    (failed,) = await live_jobs.heard(world, gate)
    assert failed.taken_back_at is not None


async def tell(ask: Asker, gate: gates.Gate, by: str = "", **more: Any) -> dict[str, Any]:
    """Report a failed test of the run's commit, as the job of a token or as an API token."""
    body = ci.about(sha=gate.run.sha, **more)
    return await ci.done(ask, "report-early-failure", data=body, by=by)


async def test_only_the_token_of_the_job_itself_proves_a_failed_test(
    world: World, ask: Asker
) -> None:
    gate = await under_test(world)
    ran = gates.workflow_run_of(world, gate.check)
    test = {"name": "test_cart", "final": True, "run_id": str(ran.id)}
    of_run = ci.token_of_run(world, gate.check)
    for by in ("", of_run):
        answer = await tell(ask, gate, by, **test)
        assert (answer["counts"], answer["standing"]) == (False, "unproved")
    assert await live_jobs.heard(world, gate) == ()


async def test_a_failure_that_may_be_tried_again_moves_nothing(world: World, ask: Asker) -> None:
    gate = await under_test(world)
    by = ci.token_of(world, gate.check)
    answer = await tell(ask, gate, by, name="test_cart", final=False)
    assert answer["standing"] == "not_final"
    # The same test again, now for the last time, and once more: it stays one failure.
    for _ in range(2):
        assert (await tell(ask, gate, by, name="test_cart", final=True))["counts"]
    assert await standings(world, gate) == {"test_cart": EarlyStanding.COUNTS}


async def test_a_job_cannot_speak_under_the_name_of_another(world: World, ask: Asker) -> None:
    gate = await under_test(world)
    by = ci.token_of(world, gate.check)
    forged = {"name": "test_cart", "final": True, "run_id": "77"}
    with pytest.raises(AssertionError, match="conflicting_fields"):
        await tell(ask, gate, by, **forged)
    assert await live_jobs.heard(world, gate) == ()


async def test_a_token_takes_back_no_failure_of_the_job_whose_check_run_it_names(
    world: World, ask: Asker
) -> None:
    gate = await under_test(world)
    by, ran = ci.token_of(world, gate.check), gates.workflow_run_of(world, gate.check)
    test: dict[str, Any] = {"name": "test_cart", "final": True}
    named = {"run_id": str(ran.id), "job": str(gate.check.id)}
    await tell(ask, gate, **test, **named, passed=True)
    assert (await tell(ask, gate, by, **test))["counts"]


async def test_a_job_reports_a_bounded_number_of_failures(world: World, ask: Asker) -> None:
    gate = await under_test(world)
    by = ci.token_of(world, gate.check)
    for number in range(FAILURES_MAX):
        await tell(ask, gate, by, name=f"test_{number}", final=False)
    with pytest.raises(AssertionError, match="limit_reached"):
        await tell(ask, gate, by, name="one more", final=False)
    assert not (await tell(ask, gate, by, name="test_1", final=False))["counts"]


async def test_the_test_of_a_changed_file_is_run_first(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    many = "".join(f"def test_{number:03}(): pass\n" for number in range(50))
    names = {"test_aaa": [f"test_{number:03}" for number in range(50)], "test_zzz": ["test_it"]}
    cases = "".join(
        f'<testcase name="{name}" classname="{module}"/>'
        for module, tests in names.items()
        for name in tests
    )
    await ci.on_main(ask, f'<testsuite name="pytest">{cases}</testsuite>'.encode(), "2")
    number = await world.open(files={"shop/zzz.py": "broken = True\n"})
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    assert await ask_suspects(ask, gate) == [("test_it", "named_after_change")]
    (tmp_path / "test_aaa.py").write_text(many)
    (tmp_path / "test_zzz.py").write_text("def test_it(): assert False\n")
    script = "$PYTEST test_aaa.py test_zzz.py > order"
    async with live_jobs.running(world, gate, tmp_path, f"{script} -vv") as job:
        assert "test_zzz.py::test_it failed" in await job.says("judged by it")
        await job.ends()
    ran = [line for line in (tmp_path / "order").read_text().splitlines() if "::" in line]
    assert ran[0].startswith("test_zzz.py::test_it FAILED")
    assert await ask_suspects(ask, gate) == [("test_it", "failed_before")]


async def ask_suspects(ask: Asker, gate: gates.Gate) -> list[tuple[str, str]]:
    """Name and reason of the tests that are suspected on a run's commit."""
    owner, name = REPO.split("/")
    query = {"host": HOST, "owner": owner, "name": name, "sha": str(gate.run.sha)}
    headers = {"x-api-token": ask.secret}
    url = f"{ask.world.url}/v1/flaky-tests/list-suspected-tests"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=query, headers=headers) as answer,
    ):
        assert answer.status == 200
        return [(each["name"], each["because"]) for each in (await answer.json())["tests"]]
