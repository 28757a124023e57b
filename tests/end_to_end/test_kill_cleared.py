"""`kill -9` around a unit that a follower cleared: both members land once, nothing else does.

The first member fails alone and passes with the second on top of it, so it can land by being
cleared and in no other way. Each way of landing meets one kind of database here. A cleared unit
lands as any other does: in `make test` it is killed once by each way, before and after the call.
"""

from pathlib import Path

import pytest

from tests.end_to_end.test_kill_units import CRASH_POINTS, land_once
from tests.end_to_end.test_two_processes import REPO_REF, open_one, seed, token
from tests.harness import effort
from tests.harness.processes import Service, Stage, stage

CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 3
    rules:
      - {exists: [failed.txt, clearing.txt], conclusion: success}
      - {exists: [failed.txt], branch: "headgate/merge/**", conclusion: failure}
"""
OPTIMISTIC = {"canOptimisticallyMerge": True, "pendingFailureDepth": 1, "concurrency": 2}
CLEARING = (
    "tx.turn.before_commit:8",
    "tx.turn.after_commit:8",
    "tx.turn.before_commit:9",
    "tx.turn.after_commit:9",
    "act.retire.before_send:1",
    "act.retire.after_send:1",
)
"""Around the turn that clears, the eighth or the ninth; then the failed run is given up."""
AT_SECOND = CRASH_POINTS if effort.IS_SOAK else ("act.land.before_send",)
AT_MOVE = CRASH_POINTS if effort.IS_SOAK else ("act.land.after_send",)


async def strike(set_up: Stage, crash_point: str, merge_method: str) -> list[int]:
    """Two pull requests whose unit is killed at the crash point; their numbers.

    The queue starts when both are in it, so that the second always stands on the first.
    """
    await seed(set_up, CI)
    numbers = [await open_one(set_up, name) for name in ("failed", "clearing")]
    struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{crash_point}:kill")
    secret = await token(set_up)
    queue = {"repo": REPO_REF, "targetBranch": "main"}
    settings = {"mergeMethod": merge_method, **OPTIMISTIC}
    await answered(set_up, struck, secret, "createQueue", **queue, **settings, state="PAUSED")
    for number in numbers:
        wish = {**queue, "pr": {"number": number}}
        await answered(set_up, struck, secret, "submitPullRequest", **wish)
    await answered(set_up, struck, secret, "updateQueue", **queue, state="RUNNING")
    assert await struck.ended() == -9
    return numbers


async def answered(set_up: Stage, service: Service, secret: str, path: str, **body: object) -> None:
    """A call of the API that succeeds."""
    status, answer = await set_up.api(service, path, secret, **body)
    assert status == 200, answer


@pytest.mark.parametrize(
    ("name", "database_url"), effort.spread(CLEARING), indirect=["database_url"]
)
@pytest.mark.fault(
    "`kill -9` while a failure is cleared",
    holds="each lands once",
    within="150 s",
)
async def test_a_kill_while_a_failure_is_cleared_lands_each_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    is_sqlite = database_url.startswith("sqlite")
    merge_method, commits_each = ("SQUASH", 1) if is_sqlite else ("MERGE_COMMIT", 2)
    async with stage(tmp_path, database_url) as set_up:
        numbers = await strike(set_up, name, merge_method)
        async with set_up.serving():
            await land_once(set_up, numbers, commits_each)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", AT_SECOND)
async def test_a_kill_at_the_second_position_of_a_cleared_unit_lands_each_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        numbers = await strike(set_up, f"{name}:2", "SQUASH")
        async with set_up.serving():
            await land_once(set_up, numbers, commits_each=1)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("name", AT_MOVE)
async def test_a_kill_at_the_move_of_a_cleared_unit_lands_each_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        numbers = await strike(set_up, f"{name}:1", "MERGE_COMMIT")
        async with set_up.serving():
            await land_once(set_up, numbers, commits_each=2)
