"""`headgate serve` and a sandbox as real processes, for stories that end in a kill."""

import asyncio
import json
import multiprocessing
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import aiohttp

from bot.cli import app
from bot.sandbox.app import SandboxOptions, running
from bot.sandbox.faces import Face
from service.clock import SystemClock
from tests.harness import faces, newer_schema
from tests.harness.clock import JumpingLoop

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.harness.preloaded"])
"""Processes forked from one that has imported everything: each is real, and starts at once."""
START_WITHIN_S = 100.0
LOOK_EVERY_S = 0.05
LAND_WITHIN_S = 150.0
SPEED = 20
QUICK = {
    "HEADGATE_PERIOD_TIMERS_S": "1",
    "HEADGATE_PERIOD_READBACK_S": "1",
    "HEADGATE_PERIOD_RUN_CHECKS_S": "1",
    "HEADGATE_PERIOD_QUEUES_S": "1",
    "HEADGATE_PERIOD_IDLE_S": "2",
    "HEADGATE_PERIOD_REDELIVERY_S": "2",
    "HEADGATE_PERIOD_COMMENTS_S": "2",
    "HEADGATE_PERIOD_ORPHANS_S": "2",
    "HEADGATE_GITHUB_WRITE_SPACING_MS": "0",
    "HEADGATE_BUILD_METHOD": "rest",
    "HEADGATE_LOG_FORMAT": "json",
}
"""Sweeps as often as they may run, so that no test waits for a minute."""


class NeverHappened(AssertionError):
    """Something that had to come did not; the message says what was there instead."""


@dataclass(slots=True)
class Service:
    """One `headgate serve`: its process, its address, and where it logs."""

    process: BaseProcess
    url: str
    log: Path
    clock: SystemClock

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.exitcode is None

    async def ready(self) -> None:
        """Wait until it works: it has recovered what happened while it was away."""
        deadline = self.clock.monotonic_s() + START_WITHIN_S
        while '"ready"' not in self.log.read_text():
            if self.clock.monotonic_s() > deadline:
                raise NeverHappened(f"serve is not ready; its log is {self.log}")
            await self.clock.sleep(LOOK_EVERY_S)

    async def ended(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""
        deadline = self.clock.monotonic_s() + START_WITHIN_S
        while self.process.exitcode is None:
            if self.clock.monotonic_s() > deadline:
                raise NeverHappened(f"serve goes on; its log is {self.log}")
            await self.clock.sleep(LOOK_EVERY_S)
        return self.process.exitcode


@dataclass(slots=True)
class Stage:
    """A sandbox process, the environment to serve against it, and a client for both."""

    folder: Path
    sandbox_url: str
    sandbox_pid: int
    environment: dict[str, str]
    http: aiohttp.ClientSession
    clock: SystemClock = field(default_factory=SystemClock)
    processes: list[BaseProcess] = field(default_factory=list)
    """Every `serve` that was started, whether it listens yet or not."""

    async def control(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        """POST to the sandbox's control plane."""
        async with self.http.post(f"{self.sandbox_url}/_sandbox/{path}", json=value) as answer:
            said: dict[str, Any] = await answer.json()
            assert answer.status == 200, said
            return said

    async def look(self, path: str) -> Any:
        """GET from the sandbox's control plane."""
        async with self.http.get(f"{self.sandbox_url}/_sandbox/{path}") as answer:
            return await answer.json()

    async def api(self, service: Service, path: str, token: str, **body: Any) -> tuple[int, Any]:
        """POST to the service's API once it has recovered from its start; status and answer."""
        headers = {"x-api-token": token}
        deadline = self.clock.monotonic_s() + START_WITHIN_S
        while True:
            url = f"{service.url}/v1/{path}"
            async with self.http.post(url, json=body, headers=headers) as got:
                status, answer = got.status, await got.json(content_type=None)
            if status != 503 or self.clock.monotonic_s() > deadline:
                return status, answer
            await self.clock.sleep(LOOK_EVERY_S)

    async def ready(self, service: Service) -> None:
        """Wait until the service has recovered from its start."""
        deadline = self.clock.monotonic_s() + START_WITHIN_S
        while self.clock.monotonic_s() < deadline:
            async with self.http.get(f"{service.url}/readyz") as answer:
                if answer.status == 200:
                    return
            await self.clock.sleep(LOOK_EVERY_S)
        raise NeverHappened(f"serve is not ready; its log is {service.log}")

    @asynccontextmanager
    async def serving(self, **more: str) -> AsyncIterator[Service]:
        """`headgate serve`, listening; killed at the end if it still runs."""
        service = await self.start(**more)
        try:
            yield service
        finally:
            service.process.kill()
            service.process.join()

    async def start(self, **more: str) -> Service:
        """Start `headgate serve` and wait until it listens; it may be struck before that."""
        log = self.folder / f"serve-{self.clock.monotonic_s()}.log"
        log.touch()
        environment = {**self.environment, **more}
        process = FORKS.Process(target=serve_here, args=(environment, str(log)), daemon=True)
        process.start()
        self.processes.append(process)
        service = Service(process, "", log, self.clock)
        deadline = self.clock.monotonic_s() + START_WITHIN_S
        while service.is_running and not address_in(log):
            if self.clock.monotonic_s() > deadline:
                raise NeverHappened(f"serve does not listen; its log is {log}")
            await self.clock.sleep(LOOK_EVERY_S)
        service.url = address_in(log)
        if service.url:
            await self.control("webhook", {"url": f"{service.url}/webhooks/github"})
        return service

    async def headgate(self, *arguments: str, **more: str) -> tuple[int, str, str]:
        """Run another command of the command line; exit code, stdout, stderr."""
        return await command(self.folder, {**self.environment, **more}, arguments)

    async def landed(self, number: int, repo: str = "octo/widgets") -> dict[str, Any]:
        """Wait until the sandbox shows the pull request as merged; its facts."""
        deadline = self.clock.monotonic_s() + LAND_WITHIN_S
        shown: dict[str, Any] = {}
        while self.clock.monotonic_s() < deadline:
            shown = await self.pull(number, repo)
            if shown.get("merged"):
                return shown
            await self.clock.sleep(LOOK_EVERY_S * 2)
        raise NeverHappened(f"#{number} did not land: {shown.get('state')}")

    async def swept(self, repo: str) -> None:
        """Wait until no branch of ours is left in the repository."""
        deadline = self.clock.monotonic_s() + LAND_WITHIN_S
        left: list[str] = []
        while self.clock.monotonic_s() < deadline:
            branches = await self.rest(f"repos/{repo}/branches?per_page=100")
            left = [one["name"] for one in branches if one["name"].startswith("headgate/")]
            if not left:
                return
            await self.clock.sleep(LOOK_EVERY_S * 2)
        raise NeverHappened(f"left behind: {', '.join(left)}")

    async def pull(self, number: int, repo: str = "octo/widgets") -> dict[str, Any]:
        """The pull request as the sandbox's REST shows it to alice."""
        return await self.rest(f"repos/{repo}/pulls/{number}")

    async def rest(self, path: str) -> Any:
        """GET from the sandbox's REST as alice."""
        headers = {"Authorization": "token sandbox_pat_alice"}
        async with self.http.get(f"{self.sandbox_url}/api/v3/{path}", headers=headers) as answer:
            return await answer.json()


@asynccontextmanager
async def stage(
    folder: Path, database_url: str | None = None, speed: float = SPEED
) -> AsyncIterator[Stage]:
    """A sandbox process and the settings to serve against it."""
    told, telling = FORKS.Pipe(duplex=False)
    given = (telling, speed, faces.of_this_test())
    process = FORKS.Process(target=sandbox_here, args=given, daemon=True)
    process.start()
    try:
        settings: dict[str, str] = await asyncio.to_thread(told.recv)
        environment = {
            **plain_environment(),
            **settings,
            **QUICK,
            "HEADGATE_PORT": "0",
            "HEADGATE_ADMIN_LISTEN": "off",
            "HEADGATE_DATA_DIR": str(folder),
            "HEADGATE_DATABASE_URL": database_url or f"sqlite:///{folder}/headgate.db",
            "HEADGATE_SECRET_KEY": "c2VjcmV0LWtleS1vZi1hLXRlc3Qtd29ybGQtMDEyMzQ1Njc4OTAx",
        }
        async with aiohttp.ClientSession() as http:
            url, pid = settings["HEADGATE_GITHUB_URL"], process.pid or 0
            yield Stage(folder, url, pid, environment, http)
    finally:
        process.terminate()
        process.join()


def serve_here(environment: dict[str, str], log: str) -> None:
    """The body of a service process: exactly `headgate serve` in this environment."""
    sink = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.environ.clear()
    os.environ.update(environment)
    newer_schema.use_if_named()
    sys.argv = ["headgate", "serve"]
    app.main()


async def command(
    folder: Path, environment: dict[str, str], arguments: Sequence[str]
) -> tuple[int, str, str]:
    """Run a command of the command line as a process; exit code, stdout, stderr.

    The files that it writes to are left in the folder.
    """
    said = [folder / f"command-{secrets.token_hex(4)}.{name}" for name in ("out", "err")]
    for file in said:
        file.touch()
    paths = [str(file) for file in said]
    forkserver.ensure_running()
    loop = asyncio.get_running_loop()
    if isinstance(loop, JumpingLoop):
        loop.disregard_children()
    process = FORKS.Process(target=command_here, args=(environment, paths, arguments))
    process.start()
    await asyncio.to_thread(process.join)
    return process.exitcode or 0, said[0].read_text(), said[1].read_text()


def command_here(environment: dict[str, str], said: list[str], arguments: Sequence[str]) -> None:
    """The body of any other command's process; `said` are its files for stdout and stderr.

    It runs outside of any checkout.
    """
    os.chdir("/")
    for place, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), place)
    os.environ.clear()
    os.environ.update(environment)
    newer_schema.use_if_named()
    app.main(list(arguments))


def sandbox_here(telling: Connection, speed: float, face: Face) -> None:
    """The body of a sandbox process: serves until it is ended."""
    asyncio.run(_sandbox(telling, speed, face))


async def _sandbox(telling: Connection, speed: float, face: Face) -> None:
    ended = asyncio.Event()
    # An end that is asked for leaves no folder behind.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with running(SandboxOptions(speed=speed, face=face)) as sandbox:
        telling.send(sandbox.environment())
        await ended.wait()


def address_in(log: Path) -> str:
    """The address that `serve` logged, empty while it has not."""
    return _listening(log).get("url") or ""


def admin_in(log: Path) -> str:
    """The address of the admin listener that `serve` logged, empty where it has none."""
    return _listening(log).get("admin") or ""


def _listening(log: Path) -> dict[str, str | None]:
    for line in log.read_text().splitlines():
        if '"listening"' in line:
            said: dict[str, str | None] = json.loads(line)
            return said
    return {}


def plain_environment() -> dict[str, str]:
    """This machine's environment without anything that is meant for Headgate."""
    return {name: text for name, text in os.environ.items() if not name.startswith("HEADGATE_")}
