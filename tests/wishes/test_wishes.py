"""schemathesis over the document of a running instance: all checks."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from tests.contract import instance as instances
from tests.contract.instance import Instance
from tests.harness.databases import DIALECTS
from tests.tidy.tree import ROOT

EXAMPLES = int(os.environ.get("HEADGATE_WISHES", "1"))
"""Requests an endpoint, beside those at every bound that is documented: see `hooks.py`."""

IS_LONG = EXAMPLES > 1
PHASES = f"examples,coverage,stateful{',fuzzing' if IS_LONG else ''}"
"""One request of chance an endpoint finds little; its examples are those of the document."""
ROLES = ["admin", "queue", "ci", "read", ""] if IS_LONG else ["admin"]


@pytest.fixture(scope="module", params=DIALECTS if IS_LONG else DIALECTS[:1])
def instance(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Instance]:
    """An instance by itself, because what is wished for here is granted."""
    is_sqlite = request.param == "sqlite"
    url = None if is_sqlite else request.getfixturevalue("shared_postgres_url")
    settings = {**instances.OPTIONS.settings, "api_rate_metrics": "0"}
    options = replace(instances.OPTIONS, database_url=url, settings=settings)
    with instances.started(tmp_path_factory.mktemp("instance"), options) as own:
        yield own


async def world_of(instance: Instance) -> str:
    """Branches, two with a queue, pull requests and tests to wish about: see `hooks.py`."""
    branches = [await instance.new_branch() for _ in range(3)]
    numbers = [await instance.open_pull_request(branch) for branch in branches for _ in range(2)]
    repo = {"host": instance.host, "owner": instance.owner, "name": instance.repo}
    headers = {"x-api-token": instance.admin_token}
    async with aiohttp.ClientSession(instance.url, headers=headers) as session:
        for branch in branches[:2]:
            queue = {"repo": repo, "targetBranch": branch, "requiredStatuses": ["unit"]}
            async with session.post("/v1/createQueue", json=queue) as made:
                assert made.status == 200
    tests = await instance.take_in("a", "b", "c")
    return json.dumps({"repo": repo, "branches": branches, "numbers": numbers, "tests": tests})


@pytest.mark.first
@pytest.mark.timeout(0)
@pytest.mark.parametrize("role", ROLES)
def test_what_the_document_allows_is_taken_and_all_else_refused(instance, role, tmp_path):
    token = getattr(instance, f"{role}_token") if role else "none"
    done = subprocess.run(
        [
            *(Path(sys.executable).parent / "schemathesis", "--no-color"),
            *("--config-file", ROOT / "tests/wishes/schemathesis.toml"),
            *("run", f"{instance.url}/openapi.json"),
            # Its answers have no end.
            *("--exclude-path", "/v1/streamQueueEvents"),
            *("--checks", "all", "--phases", PHASES),
            *("--max-examples", str(EXAMPLES), "--workers", "1"),
        ],
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "WISHES_URL": instance.url,
            "WISHES_TOKEN": token,
            "WISHES_EXAMPLES": str(EXAMPLES),
            "WISHES_WORLD": asyncio.run(world_of(instance)),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
