"""`kill -9` in the middle of a batch's landing: every member lands once and nothing else does.

By the merge call the strike comes at the second of three positions, when one has landed and one
is to come; by one move of the branch it comes at the move of both.
"""

import re
from pathlib import Path

import pytest

from tests.end_to_end.test_two_processes import REPO, REPO_REF, comment, open_one, seed, token
from tests.harness import effort
from tests.harness.processes import LAND_WITHIN_S, LOOK_EVERY_S, Service, Stage, stage

CRASH_POINTS = (
    "tx.permit.before_commit",
    "tx.permit.after_commit",
    "landing.after_permit",
    "act.land.before_send",
    "act.land.after_send",
    "landing.before_proof",
    "act.land.before_settle",
)
AT_SECOND = CRASH_POINTS if effort.IS_SOAK else CRASH_POINTS[::2]
AT_MOVE = CRASH_POINTS if effort.IS_SOAK else CRASH_POINTS[1::2]
"""`make test` passes each crash point by one of the two ways of landing."""
PENDING_S = 60.0
"""Of the sandbox, whose time is faster: three seconds here."""


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


async def strike(set_up: Stage, crash_point: str, count: int, **settings: object) -> list[int]:
    """A batch of so many whose landing is killed at the crash point; their numbers."""
    await seed(set_up)
    numbers = [await open_one(set_up, f"topic-{place}") for place in range(count)]
    struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{crash_point}:kill")
    await make_queue(set_up, struck, batchingMinSize=count, **settings)
    for number in numbers:
        await comment(set_up, number, "/merge")
    assert await struck.ended() == -9
    return numbers


@pytest.mark.parametrize(
    ("name", "database_url"), effort.spread(AT_SECOND), indirect=["database_url"]
)
@pytest.mark.fault(
    "`kill -9` at the second landing of three",
    holds="each lands once",
    within="150 s",
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
    effort.spread(reversed(AT_MOVE)),
    indirect=["database_url"],
)
@pytest.mark.fault(
    "`kill -9` at the move of a whole unit",
    holds="each lands once",
    within="150 s",
)
async def test_a_kill_at_the_move_of_a_whole_unit_lands_each_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        numbers = await strike(set_up, f"{name}:1", 2, mergeMethod="MERGE_COMMIT")
        async with set_up.serving():
            await land_once(set_up, numbers, commits_each=2)


async def a_stack_of_two(set_up: Stage) -> list[int]:
    """Two pull requests, the upper one on the branch of the lower one, as a native stack."""
    lower = await open_one(set_up, "lower")
    head = (await set_up.pull(lower))["head"]
    act = {"as": "bob", "repo": REPO}
    upper = {"from": head["sha"], "base": head["ref"], "files": {"upper.txt": "x\n"}}
    made = await set_up.control("acts", {**act, "act": "open", **upper})
    numbers = [lower, int(made["number"])]
    await set_up.control("acts", {**act, "act": "stack", "numbers": numbers})
    return numbers


async def until_github_merges(set_up: Stage) -> None:
    """Wait until an asynchronous merge is pending."""
    deadline = set_up.clock.monotonic_s() + LAND_WITHIN_S
    while "asynchronous merge" not in str(await set_up.control("clock", {})):
        assert set_up.clock.monotonic_s() < deadline, "no merge was requested"
        await set_up.clock.sleep(LOOK_EVERY_S)


@pytest.mark.fault(
    "`kill -9` while the provider merges a stack",
    holds="the end is read back",
    within="150 s",
)
async def test_a_kill_while_github_merges_a_stack_is_read_back_in_spite_of_a_cancel(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        await set_up.control("seed", {"knobs": {"async_merge_delay_s": PENDING_S}})
        stack = await a_stack_of_two(set_up)
        struck = await set_up.start()
        await make_queue(set_up, struck)
        await comment(set_up, stack[-1], "/merge")
        await until_github_merges(set_up)
        struck.process.kill()
        async with set_up.serving() as service:
            for number in stack:
                await comment(set_up, number, "/merge cancel")
            for number in stack:
                await set_up.landed(number)
            await set_up.swept(REPO)
            secret = await token(set_up)
            for number in stack:
                of_pull = {"repo": REPO_REF, "targetBranch": "main", "pr": {"number": number}}
                _, shown = await set_up.api(service, "getSubmittedPullRequest", secret, **of_pull)
                assert shown["state"] == "MERGED", shown
