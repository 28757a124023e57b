"""`kill -9` in the middle of a batch's landing: every member lands once and nothing else does.

By the merge call the strike comes at the second of three positions, when one has landed and one
is to come; by one move of the branch it comes at the move of both.
"""

import re
from pathlib import Path

import pytest

from tests.end_to_end.test_two_processes import REPO, REPO_REF, comment, open_one, seed, token
from tests.harness import effort
from tests.harness.processes import Service, Stage, stage

BOUNDARIES = (
    "tx.permit.before_commit",
    "tx.permit.after_commit",
    "landing.after_permit",
    "act.land.before_send",
    "act.land.after_send",
    "landing.before_proof",
    "act.land.before_settle",
)


async def make_queue(set_up: Stage, service: Service, **settings: object) -> None:
    """The queue of `main` with these settings."""
    body = {"repo": REPO_REF, "targetBranch": "main", "batch": True, **settings}
    status, answer = await set_up.api(service, "createQueue", await token(set_up), **body)
    assert status == 200, answer


async def land_once(set_up: Stage, numbers: list[int], commits_each: int) -> None:
    """All are merged, each once; `main` has nothing else more, nothing is left."""
    for number in numbers:
        await set_up.landed(number)
    await set_up.swept(REPO)
    history = await set_up.rest(f"repos/{REPO}/commits?sha=main&per_page=100")
    titles = [one["commit"]["message"].split("\n")[0] for one in history]
    found = [int(one) for title in reversed(titles) for one in re.findall(r"#(\d+)", title)]
    assert sorted(found) == numbers
    assert len(history) == 2 + commits_each * len(numbers)


async def strike(set_up: Stage, boundary: str, count: int, **settings: object) -> list[int]:
    """A batch of so many whose landing is killed at the boundary; their numbers."""
    await seed(set_up)
    numbers = [await open_one(set_up, f"topic-{place}") for place in range(count)]
    struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{boundary}:kill")
    await make_queue(set_up, struck, batchingMinSize=count, **settings)
    for number in numbers:
        await comment(set_up, number, "/merge")
    assert await struck.ended() == -9
    return numbers


@pytest.mark.parametrize(
    ("name", "database_url"), effort.spread(BOUNDARIES), indirect=["database_url"]
)
async def test_a_kill_at_the_second_position_of_three_lands_each_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        numbers = await strike(set_up, f"{name}:2", 3, mergeMethod="SQUASH")
        async with set_up.serving():
            await land_once(set_up, numbers, commits_each=1)


@pytest.mark.parametrize(
    ("name", "database_url"),
    effort.spread(reversed(BOUNDARIES)),
    indirect=["database_url"],
)
async def test_a_kill_at_the_move_of_a_whole_unit_lands_each_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        numbers = await strike(set_up, f"{name}:1", 2, mergeMethod="MERGE_COMMIT")
        async with set_up.serving():
            await land_once(set_up, numbers, commits_each=2)
