"""CI jobs that run real pytest under `headgate test`, and go on until the story lets them."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bot.sandbox import job_tokens
from service.testhealth.early_failures import EarlyFailure
from service.testhealth.store import early_failures as stored
from tests.harness import gates
from tests.harness.asking import HOST
from tests.harness.issuer import AUDIENCE
from tests.harness.processes import plain_environment
from tests.harness.world import REPO, World

ROOT = Path(__file__).resolve().parents[2]

GO_ON = "go-on"
"""A pipe at which the last test waits until the story opens it."""

TESTS = f"""
import os

def test_cart():
    assert "CART" not in os.environ

def test_total():
    assert "TOTAL" not in os.environ, "10.0 != 10.01"

def test_last():
    open({GO_ON!r}).close()
    assert "LAST" not in os.environ

def test_after_all():
    if "LAST" in os.environ:
        open({GO_ON!r}).close()
"""
PYTEST = (
    f"{sys.executable} -m pytest -q -p no:cacheprovider -p headgate_pytest --junit-xml=r.xml"
    " test_shop.py"
)


class Ended(NamedTuple):
    """The end of a job: its exit code, and what it wrote to stderr from the moment of asking."""

    code: int
    err: str


@dataclass
class Job:
    """A `headgate test` that runs in a folder."""

    process: Process
    folder: Path

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended."""
        return self.process.returncode is None

    async def says(self, text: str) -> str:
        """The next line of stderr that has a text."""
        assert self.process.stderr is not None
        seen = []
        while line := (await self.process.stderr.readline()).decode():
            seen.append(line)
            if text in line:
                return line
        raise AssertionError(f"never said {text!r}: {''.join(seen)}")

    async def goes_on(self) -> None:
        """Let the last test end."""
        await asyncio.to_thread(lambda: (self.folder / GO_ON).open("w").close())

    async def ends(self) -> Ended:
        """Let the last test end; what the job then ends with."""
        await self.goes_on()
        _, err = await self.process.communicate()
        return Ended(self.process.returncode or 0, err.decode())


@asynccontextmanager
async def running(
    world: World, gate: gates.Gate, folder: Path, script: str = "$PYTEST", **environment: str
) -> AsyncIterator[Job]:
    """The job of a test run as a real process; `script` is the shell line that it runs."""
    (folder / "test_shop.py").write_text(TESTS)
    os.mkfifo(folder / GO_ON)
    options = ("--junit", "r.xml", "--sha", str(gate.run.sha), "--job", "unit", "--no-progress")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "test", *options, "--", "sh", "-c", script),
        cwd=folder,
        env={**plain_environment(), "PYTEST": PYTEST, **_place(world, gate), **environment},
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield Job(process, folder)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _place(world: World, gate: gates.Gate) -> dict[str, str]:
    """The environment of the job; the issuer takes the first audience that it is asked for."""
    ran = gates.workflow_run_of(world, gate.check)
    own = job_tokens.environment_of(world.repository, ran, gate.check)
    own["ACTIONS_ID_TOKEN_REQUEST_URL"] += f"&audience={quote(AUDIENCE, safe='')}"
    return {
        **own,
        "PYTHONPATH": str(ROOT),
        "HEADGATE_URL": world.url,
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_SERVER_URL": f"https://{HOST}",
        "GITHUB_RUN_ID": str(ran.id),
        "GITHUB_RUN_ATTEMPT": str(ran.attempt),
        "GITHUB_HEAD_REF": gate.run.branch or "",
    }


async def heard(world: World, gate: gates.Gate) -> tuple[EarlyFailure, ...]:
    """What the service has heard from the job while it ran."""
    ran = gates.workflow_run_of(world, gate.check)
    here = (await world.queue()).repository_id
    return await world.runtime.store.read(
        stored.of_job, here, str(ran.id), ran.attempt, str(gate.check.id)
    )
