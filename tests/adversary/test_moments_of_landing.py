"""What happens between the last look and the landing, and while its answer is awaited."""

from typing import Any

import pytest

from bot.sandbox import reports
from bot.sandbox.records import Actor
from tests.adversary.judge import files_on
from tests.adversary.test_untested import opened
from tests.harness import gates
from tests.harness.world import REPO, World, WorldOptions

MERGE = {"method": "PUT", "path": "*/pulls/*/merge"}


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    found: WorldOptions = getattr(request, "param", WorldOptions(ci=gates.CI))
    return found


def a_person(act: str, by: str = "alice", **fields: Any) -> dict[str, Any]:
    return {"act": act, "as": by, "repo": REPO, **fields}


async def test_a_check_that_fails_while_a_landing_is_awaited_keeps_it_from_landing(
    world: World,
) -> None:
    """Hurts everybody who builds main: the check passes, fails and passes again meanwhile."""
    await world.make_queue(merge_method="SQUASH")
    await world.fault(MERGE, "refuse", status=405, message="Base branch was modified")
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    await gates.ends(world, number)
    await world.rest(5)
    actor = Actor(gate.check.suite.app.bot, gate.check.suite.app)

    def ends(conclusion: str) -> None:
        done = {"status": "completed", "conclusion": conclusion}
        reports.change_run(world.repository, gate.check, actor, done)

    ends("failure")
    world.sandbox.world.faults.clear()
    await world.rest(8)
    assert await world.merged() == []
    ends("success")
    await world.settle()
    assert await world.merged() == [number]


async def test_the_app_suspended_at_the_merge_lands_it_once_when_it_is_back(world: World) -> None:
    """Hurts the author: a merge that nobody refused would be given up."""
    await world.make_queue(merge_method="SQUASH")
    number = await opened(world, "a.txt")
    await world.fault({**MERGE, "nth": 1}, "before", act=a_person("suspend"))
    await world.comment("/merge", on=number)
    await gates.ends(world, number)
    await world.rest(60)
    assert await world.merged() == []
    await world.act("suspend", by="alice", suspended=False)
    await world.settle()
    assert await world.merged() == [number]


@pytest.mark.breaks_promises
@pytest.mark.parametrize("world_options", [WorldOptions()], indirect=True)
async def test_a_target_made_anew_at_the_merge_is_not_called_landed_without_its_change(
    world: World,
) -> None:
    """Hurts who trusts MERGED: `release` is cut from an older commit in that very moment."""
    await world.act("push", by="alice", branch="release", files={"r.txt": "r"}, bypass=True)
    await world.make_queue(branch="release", merge_method="SQUASH", required_statuses=("unit",))
    number = await world.open(base="release", files={"a.txt": "x"})
    await world.settle()
    anew = a_person("force_push", branch="release", to=world.older, bypass=True)
    await world.fault({**MERGE, "nth": 1}, "before", act=anew)
    await world.comment("/merge", on=number)
    await world.rest(300)
    value = await world.value("release")
    assert {"a.txt", "r.txt"} & await files_on(world, "release") == {"a.txt"}
    assert [hold.reason.value for hold in value.holds] == ["landing_mismatch"]
    assert "does not lead back to the expected parent" in (value.holds[0].evidence or "")
