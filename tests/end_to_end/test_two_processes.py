"""`headgate serve` and `headgate sandbox` as two processes that meet over HTTP alone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes import Stage, stage

REPO = "octo/widgets"
REPO_REF = {"host": "github.localhost", "owner": "octo", "name": "widgets"}
CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - {name: unit, seconds: 3}
"""


@pytest.fixture
async def on_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        yield set_up


async def seed(set_up: Stage, ci: str = CI) -> None:
    """`octo/widgets`, whose `main` has two commits and requires the check `unit`."""
    files = {"README.md": "# Widgets\n", ".sandbox/ci.yml": ci}
    await set_up.control("seed", {"repositories": [{"full_name": REPO, "files": files}]})
    newer = {"branch": "main", "files": {"newer.txt": "x\n"}, "message": "Move on"}
    await set_up.control("acts", {"act": "push", "as": "alice", "repo": REPO, **newer})
    await set_up.control("rules", {"repo": REPO, "required_checks": ["unit"]})


async def open_one(set_up: Stage, name: str = "one") -> int:
    """A pull request by bob that adds a file to the older commit of `main`; its number.

    So its own green head says nothing about `main`, and a test branch is needed.
    """
    history = await set_up.rest(f"repos/{REPO}/commits?sha=main")
    start = {"from": history[-1]["sha"], "files": {f"{name}.txt": f"{name}\n"}}
    act = {"act": "open", "as": "bob", "repo": REPO, **start}
    number: int = (await set_up.control("acts", act))["number"]
    return number


def names(payload: dict[str, Any], number: int) -> bool:
    """Whether a delivery is about the pull request."""
    return payload.get("number") == number or f"/pr-{number}/" in str(payload.get("ref"))


async def comment(set_up: Stage, number: int, body: str) -> None:
    await set_up.control(
        "acts", {"act": "comment", "as": "bob", "repo": REPO, "number": number, "body": body}
    )


async def token(set_up: Stage) -> str:
    """An admin token of `octo`, made beside the running service."""
    code, out, err = await set_up.headgate(
        "token", "create", "--org", "octo", "--role", "admin", "--name", "test"
    )
    assert code == 0, err
    return out.strip()


async def test_a_comment_lands(on_stage: Stage) -> None:
    async with on_stage.serving():
        number = await open_one(on_stage)
        await comment(on_stage, number, "/merge")
        shown = await on_stage.landed(number)
        assert shown["merged_by"]["login"].endswith("[bot]")


async def test_a_submission_by_rest_lands_without_any_comment(on_stage: Stage) -> None:
    async with on_stage.serving() as service:
        number = await open_one(on_stage)
        secret = await token(on_stage)
        body = {"repo": REPO_REF, "targetBranch": "main"}
        assert (await on_stage.api(service, "createQueue", secret, **body))[0] == 200
        status, record = await on_stage.api(
            service, "submitPullRequest", secret, **body, pr={"number": number}
        )
        assert (status, record["result"]) == (200, "created")
        await on_stage.landed(number)


async def test_it_lands_by_the_sweeps_when_no_delivery_ever_arrives(on_stage: Stage) -> None:
    async with on_stage.serving() as service:
        await on_stage.control("faults", {"match": {}, "fault": {"kind": "drop"}})
        number = await open_one(on_stage)
        secret = await token(on_stage)
        body = {"repo": REPO_REF, "targetBranch": "main"}
        assert (await on_stage.api(service, "createQueue", secret, **body))[0] == 200
        await on_stage.api(service, "submitPullRequest", secret, **body, pr={"number": number})
        await on_stage.landed(number)
        faults = (await on_stage.look("faults"))["faults"]
        attempts = (await on_stage.look("deliveries"))["deliveries"]
        assert faults[0]["struck"] > 0
        assert [one["event"] for one in attempts if names(one["payload"], number)] == []
