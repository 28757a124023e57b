"""Sandbox and service as two processes, and the command line as a person or a script uses it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.end_to_end.test_two_processes import REPO, token
from tests.harness.processes import Stage, stage

Command = Callable[..., Awaitable[tuple[int, str, str]]]
CI = """
triggers: { push: ["headgate/merge/**"], pull_request: true }
checks:
  - name: test
    seconds: 1
    rules:
      - { exists: [good.txt, bad.txt], conclusion: failure }
"""


async def seed(set_up: Stage) -> None:
    """A repository with #1, which is good, and #2, which fails once #1 is in."""
    files = {"README.md": "hi\n", ".sandbox/ci.yml": CI}
    repository = {"full_name": REPO, "files": files, "required_checks": ["test"]}
    await set_up.control("seed", {"repositories": [repository]})
    for name in ("good", "bad"):
        change = {"head": name, "files": {f"{name}.txt": name}, "title": f"The {name} one"}
        await set_up.control("acts", {"as": "alice", "act": "open", "repo": REPO, **change})
    moved = {"act": "push", "branch": "main", "files": {"later.txt": "x"}, "bypass": True}
    await set_up.control("acts", {"as": "alice", "repo": REPO, **moved})


@pytest.fixture(name="headgate")
async def _headgate(tmp_path: Path) -> AsyncIterator[Command]:
    """Commands against a running service, whose repository is the one of the environment."""
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        async with set_up.serving() as service:
            place = {
                "HEADGATE_TOKEN": await token(set_up),
                "HEADGATE_URL": service.url,
                "GITHUB_REPOSITORY": REPO,
            }

            async def run(*arguments: str) -> tuple[int, str, str]:
                return await set_up.headgate(*arguments, **place)

            yield run


async def test_a_pull_request_is_landed_from_the_command_line(headgate: Command) -> None:
    assert await headgate("land", "1") == (
        4,
        "",
        'headgate: Branch "main" has no queue. Make one: headgate queue create --branch BRANCH.\n',
    )
    code, out, err = await headgate("queue", "create", "--branch", "main", "--json")
    assert code == 0, err
    made = json.loads(out)
    assert (made["concurrency"], made["directMergeMode"]) == (5, "ALWAYS")
    assert made["effectiveRequiredStatuses"] == ["test"]
    assert (await headgate("queue", "create", "--branch", "main"))[0] == 6
    assert (await headgate("status", "1"))[0] == 4

    code, out, err = await headgate("land", "1", "--json", "--timeout", "40s")
    assert code == 0, err
    landed = json.loads(out)
    assert (landed["state"], landed["outcome"]) == ("MERGED", "merged")
    assert landed["explanation"]["prNumber"] == 1
    assert (await headgate("land", "1"))[0] == 0

    code, out, err = await headgate("land", "2", "--json", "--timeout", "40s")
    assert code == 1, err
    failed = json.loads(out)
    assert (failed["outcome"], failed["reason"]) == ("failed", "required_status_failed")
    assert failed["conclusion"]["failedStatuses"] == ["test"]
    assert (await headgate("cancel", "2"))[0] == 4
    assert "FAILED" in (await headgate("status", "2"))[1]


async def test_a_queue_is_paused_changed_held_and_deleted_from_the_command_line(
    headgate: Command,
) -> None:
    assert (await headgate("queue", "create", "--branch", "main"))[0] == 0
    code, out, err = await headgate("queue", "pause", "--reason", "release freeze", "--json")
    assert code == 0, err
    assert (json.loads(out)["state"], json.loads(out)["stateReason"]) == (
        "PAUSED",
        "release freeze",
    )
    assert (await headgate("submit", "1"))[0] == 0
    assert (await headgate("explain", "1"))[0] == 0
    assert (await headgate("queue", "delete"))[0] == 6
    assert (await headgate("cancel", "1"))[0] == 0
    assert (await headgate("queue", "resume"))[0] == 0
    assert (await headgate("queue", "update", "--set", "concurrency=0"))[0] == 6
    code, out, err = await headgate("queue", "update", "--set", "concurrency=2", "--json")
    assert (code, json.loads(out)["concurrency"]) == (0, 2), err
    code, out, err = await headgate("queue", "hold", "--reason", "release", "--json")
    assert code == 0, err
    hold = json.loads(out)["hold"]["id"]
    assert hold in (await headgate("queue", "show"))[1]
    assert (await headgate("queue", "release", str(hold), "--reason", "released"))[0] == 0
    assert await headgate("queue", "delete") == (0, "Deleted the queue for main\n", "")
