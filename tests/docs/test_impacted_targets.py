"""The workflow that the page about impacted targets shows, run as CI would run it."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.mergequeue.engine.config import Mode
from tests.harness import gates
from tests.harness.asking import HOST, asker
from tests.harness.world import REPO, World, WorldOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/impacted-targets.md").read_text("utf-8")
ACTION = ROOT / "action/upload-impacted-targets"
CI = """\
triggers: {pull_request: true}
checks:
  - name: unit
    seconds: 60
    rules:
      - {branch: "headgate/merge/**", conclusion: hang}
"""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that is under way for a while, as the run that uploads has to be."""
    return WorldOptions(ci=CI)


def workflow() -> dict[str, Any]:
    """The page's workflow without the action."""
    (_, block) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(block)
    return found


async def tell(world: World, folder: Path, number: int, **more: str) -> str:
    """Run the step that uploads, for targets in a file; what it prints."""
    (job,) = workflow()["jobs"].values()
    step = next(one for one in job["steps"] if one.get("name") == "Tell Headgate")
    pull = world.repository.issues[number].pull
    assert pull is not None
    owner, name = REPO.split("/")
    known = {
        "HEADGATE_URL": world.url,
        "OWNER": owner,
        "NAME": name,
        "BASE": "main",
        "NUMBER": str(number),
        "SHA": pull.head_sha,
    }
    assert known.keys() == job["env"].keys()
    (folder / "targets.txt").write_text("api\nweb\n")
    process = await asyncio.create_subprocess_exec(
        *("bash", "-e", "-c", step["run"].replace('"github.com"', f'"{HOST}"')),
        cwd=folder,
        env={"PATH": os.environ["PATH"], **known, **more},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out, err)
    return out.decode()


async def test_the_workflow_uploads_for_a_fork(
    world: World, tmp_path: Path, needs: Callable[[str], None]
) -> None:
    needs("curl")
    needs("jq")
    ask = await asker(world)
    await world.make_queue(mode=Mode.PARALLEL)
    own = await world.open()
    forked = await world.open(by="dave", fork=True)

    def ci_runs() -> list[int]:
        found = world.repository.workflow_runs
        return [one.id for one in found if one.pulls == [forked] and one.status != "completed"]

    async def has_begun() -> bool:
        return ci_runs() != []

    await world.until(has_begun)
    run = str(ci_runs()[0])
    assert '"targetCount":2' in await tell(world, tmp_path, forked, GITHUB_RUN_ID=run)
    await ask.done("setImpactedTargets", own, impactedTargets=["api"])
    await world.comment("/merge", on=own)
    await gates.ends(world, own)


async def acted(world: World, folder: Path, number: int, **more: str) -> str:
    """Run the action in an empty folder, where nothing can be told; what it prints."""
    action = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
    (step,) = action["runs"]["steps"]
    pull = world.repository.issues[number].pull
    assert pull is not None
    event = folder / "event.json"
    event.write_text(
        f'{{"pull_request": {{"number": {number}, "head": {{"sha": "{pull.head_sha}"}}}}}}'
    )
    known = {
        **dict.fromkeys(step["env"], ""),
        "PATH": os.environ["PATH"],
        "INPUT_URL": world.url,
        "INPUT_TOOL": "nx",
        "INPUT_ON_ERROR": "all",
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_SERVER_URL": f"https://{HOST}",
        "GITHUB_BASE_REF": "main",
        "GITHUB_EVENT_PATH": str(event),
    }
    process = await asyncio.create_subprocess_exec(
        *("bash", "-e", "-c", step["run"]),
        cwd=folder,
        env=known | more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out, err)
    return out.decode()


async def test_the_action_is_taken(world: World, tmp_path: Path) -> None:
    ask = await asker(world)
    await world.make_queue(mode=Mode.PARALLEL)
    number = await world.open()
    said = await acted(world, tmp_path, number, HEADGATE_TOKEN=ask.secret)
    assert "touches everything." in said


def test_the_step_names_inputs_that_the_action_has() -> None:
    (block, _) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    step = yaml.safe_load(block)["steps"][-1]
    assert "headgate/action/upload-impacted-targets@" in step["uses"]
    inputs = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["inputs"]
    needed = {name for name, each in inputs.items() if each.get("required")}
    assert needed <= set(step["with"]) <= set(inputs)


def test_the_workflow_leaves_test_branches_alone_and_may_only_read() -> None:
    found = workflow()
    (job,) = found["jobs"].values()
    assert "!startsWith(github.head_ref, 'headgate/')" in job["if"]
    assert found["permissions"] == {"contents": "read", "id-token": "write"}
