"""`kill -9` at each named boundary of the first merge: it lands exactly once.

The boundaries are those of service/boundary.py that the story of one `/merge` passes.
"""

from pathlib import Path

import pytest

from service import boundary
from tests.end_to_end.test_two_processes import REPO, comment, open_one, seed
from tests.harness.processes import Stage, stage

ELSEWHERE = {
    "api.before_answer": "the story of a comment calls no API",
    "stop.before_drain": "passed at a stop, which test_stop_* tells",
    "stop.before_close": "passed at a stop, which test_stop_* tells",
}
"""Boundaries that this story does not pass, and why."""

STORY = [name for name in boundary.NAMES if name not in ELSEWHERE]


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
