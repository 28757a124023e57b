"""Attacks by which half of what a job reports on `main` passes for all of it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.adversary.judge import landed_on
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
RED = {"total": WRONG, "mail": ""}

HALVES = {
    "attempt that repeats only failed tests": [(RED, 1), ({"total": ""}, 2)],
    "run that was canceled after half of its results": [({"total": ""}, 1)],
}


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and that we may start again."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `total` is quarantined, and `unit` has reported two tests on `main`."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(asking, GREEN, "1")
    await ci.settle_tests(asking, "update-settings", quarantine_enabled=True)
    failing = await ci.upload(asking, {"total": WRONG}, sha="b" * 40, branch="topic", run_id="9")
    await ci.settle_tests(
        asking,
        "set-quarantine-override",
        test_id=failing["failures"][0]["test_id"],
        override="ALWAYS_QUARANTINE",
        reason="waits on the real clock",
    )
    return asking


async def later_on_main(ask: Asker, minutes: int, tests: dict[str, str], **meta: Any) -> None:
    """Results of another CI run of the tip of `main`."""
    sha = str(ask.world.repository.git.branch("main"))
    ran_at = (ask.world.runtime.clock.now() + timedelta(minutes=minutes)).isoformat()
    told = {"sha": sha, "branch": "main", "run_id": "2", "job": "unit", "ran_at": ran_at}
    await ci.upload(ask, tests, **told, **meta)


@pytest.mark.parametrize("half", HALVES)
async def test_half_of_a_run_on_main_does_not_say_what_the_whole_job_reports(
    world: World, ask: Asker, half: str
) -> None:
    """Hurts everybody who builds main: `mail` is broken, and its result is lost or never made."""
    for minutes, (tests, attempt) in enumerate(HALVES[half], 1):
        await later_on_main(ask, minutes, tests, run_attempt=attempt)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await ci.ends(ask, number, {"total": WRONG})
    await world.settle()
    assert await landed_on(world) == []
    assert await world.state(number) == "FAILED"
    assert "1 of 2 tests" in world.comment_on(number)
