"""Real pytest with coverage under `headgate test`: what it says itself decides what is excused."""

from pathlib import Path

import pytest

from tests.end_to_end.test_live_tests import GREEN, RED
from tests.harness import gates, live_jobs
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `test_total` is quarantined."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    end = {"run": "1", "runner": "pytest", "reason": "passed", "exit_code": 0}
    counts = dict.fromkeys(("planned", "passed"), GREEN.count(b"<testcase"))
    await ci.on_main(asking, GREEN, "1", runner="pytest", runner_ends=[end | counts])
    settings = {"quarantine_enabled": True, "quarantine_forgives": "ANY_FAILURE"}
    await ci.settle_tests(asking, "update-settings", **settings)
    failing = await ci.upload(asking, RED, sha="b" * 40, branch="topic", run_id="9", job="unit")
    await ci.always_quarantine(asking, failing["failures"][0]["test_id"])
    return asking


async def test_only_a_threshold_that_was_met_lets_a_quarantined_failure_pass(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    measured = f"{live_jobs.PYTEST} --cov=. --cov-fail-under="
    stories = {
        "met": (f"{measured}10", 0, "all quarantined: exit code 0"),
        "missed": (f"{measured}100", 1, "`pytest` says that a threshold was missed"),
        "without a word": (
            f"{measured}10".replace("-p headgate_pytest", ""),
            1,
            "nothing shows that it does so for failed tests alone",
        ),
    }
    for name, (script, expected, said) in stories.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        async with live_jobs.running(world, gate, folder, script, TOTAL="1") as job:
            code, err = await job.ends()
        assert (code, said in err) == (expected, True), (name, err)
