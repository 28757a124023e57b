"""`kill -9` at each named boundary of the first merge: it lands exactly once.

Together the stories pass every boundary of service/boundary.py.
"""

from pathlib import Path

import aiohttp
import pytest

from service import boundary
from tests.end_to_end.test_two_processes import REPO, REPO_REF, comment, open_one, seed, token
from tests.harness.processes import Stage, stage

STOPPING = ("stop.before_drain", "stop.before_close")
ANSWERING = "api.before_answer"
STORY = [name for name in boundary.NAMES if name not in {*STOPPING, ANSWERING}]


async def lands_once(set_up: Stage, number: int) -> None:
    """The pull request is merged, `main` has exactly its one commit more, nothing is left."""
    await set_up.landed(number)
    await set_up.swept(REPO)
    history = await set_up.rest(f"repos/{REPO}/commits?sha=main")
    landed = [one for one in history if one["commit"]["message"].endswith(f"(#{number})")]
    assert len(landed) == 1
    assert len(history) == 3


@pytest.mark.parametrize("name", STORY)
async def test_a_kill_loses_nothing_and_lands_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:1:kill")
        if struck.is_running:
            await comment(set_up, number, "/merge")
        assert await struck.ended() == -9
        async with set_up.serving():
            if name.startswith("barrier."):
                await comment(set_up, number, "/merge")
            await lands_once(set_up, number)


@pytest.mark.parametrize("name", STOPPING)
async def test_a_kill_in_the_middle_of_a_stop_loses_nothing_and_lands_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        stopping = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:1:kill")
        await comment(set_up, number, "/merge")
        stopping.process.terminate()
        assert await stopping.ended() == -9
        async with set_up.serving():
            await comment(set_up, number, "/merge")
            await lands_once(set_up, number)


async def test_a_stop_that_is_asked_for_ends_well_and_the_next_start_lands_it(
    database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        stopping = await set_up.start()
        await comment(set_up, number, "/merge")
        stopping.process.terminate()
        assert await stopping.ended() == 0
        async with set_up.serving():
            await comment(set_up, number, "/merge")
            await lands_once(set_up, number)


async def test_a_submission_whose_answer_a_kill_took_is_kept_and_lands_once(
    database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        body = {"repo": REPO_REF, "targetBranch": "main"}
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{ANSWERING}:2:kill")
        secret = await token(set_up)
        assert (await set_up.api(struck, "createQueue", secret, **body))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await set_up.api(struck, "submitPullRequest", secret, **body, pr={"number": number})
        assert await struck.ended() == -9
        async with set_up.serving():
            await lands_once(set_up, number)
