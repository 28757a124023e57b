"""The two servers of the demo, and the repository with its pull requests."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from pydantic import JsonValue

from bot import settings, wiring
from bot.demo import seeding, story, widgets
from bot.demo.seeding import Json
from bot.github import webhook
from bot.program import SANDBOX_PORT, SERVICE_PORT
from bot.sandbox import app as sandboxes
from bot.sandbox import timeline
from bot.sandbox.app import CannotRun, Observer, Sandbox, SandboxOptions
from bot.sandbox.records import HOST
from bot.sandbox.world import Repository
from bot.settings import Settings
from bot.wiring import World
from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.clock import Clock, SystemClock
from service.errors import StartRefused
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Role

LOOPBACK = "127.0.0.1"
PORTS_END = 65_536
PAGE_PORT = 8641
RESPONSE_TIMEOUT_S = 30
NOT_ANSWERED = f"a request was not answered within {RESPONSE_TIMEOUT_S} s"

# The tests mostly sleep; more of them at a time than a machine has cores do no harm.
COMMANDS_AT_ONCE = 12

# With draft pull requests each test branch would be tested twice, once as a push.
PUSH_ONLY: Json = {"createPrsForTestingBranches": False}

POLL_S = 0.25

AWAY, DONE_BEFORE = 503, 409
AWAY_PAUSE_S = 1.0
AWAY_TRIES = 30
"""The number of times the service is asked while its database is late, with pauses in between."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports that the user gave; None: the default one, or the next free one.

    `page` is that of the playground's page.
    """

    service: int | None = None
    sandbox: int | None = None
    page: int | None = None

    def chosen(self) -> "Ports":
        """Return free, different ports. Raises StartRefused."""
        if self.service is not None and self.service == self.sandbox:
            raise StartRefused(f"port {self.service} is given for both servers. Give two ports")
        service = free_port(self.service, SERVICE_PORT, self.sandbox)
        sandbox = free_port(self.sandbox, SANDBOX_PORT, service)
        return Ports(service, sandbox, free_port(self.page, PAGE_PORT, service, sandbox))

    @property
    def page_origin(self) -> str:
        """The origin of the playground's page."""
        return f"http://{LOOPBACK}:{self.page}"


def free_port(given: int | None, default: int, *others: int | None) -> int:
    """Return the given port, else the first free one from the default on that is none of others.

    Raises StartRefused if the given one is in use.
    """
    if given is not None:
        if not is_free(given):
            raise StartRefused(f"port {given} is in use. Give another, or none")
        return given
    for port in range(default, PORTS_END):
        if port not in others and is_free(port):
            return port
    raise StartRefused(f"no port from {default} on is free. Give one")


def is_free(port: int) -> bool:
    """Return whether a server can listen on the port."""
    with socket.socket() as probe:
        # As the servers do: a connection that lingers after a stop does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Stage:
    """The running servers, and the repository on them.

    `machine` is the folder that CI's runs share. `starts` are the target branches, `heads` the
    heads of the pull requests.
    """

    service: str
    sandbox: Sandbox
    token: str
    machine: Path
    starts: dict[str, str]
    heads: dict[int, str]
    session: aiohttp.ClientSession
    clock: Clock

    @property
    def repository(self) -> Repository:
        """The repository as the sandbox has it."""
        return self.sandbox.repository(story.SLUG)

    @property
    def bare(self) -> Path:
        """The folder of the repository itself."""
        return self.repository.git.folder

    async def act(self, login: str, act: str, **fields: JsonValue) -> Json:
        """Act as a person in the repository; return what the act made."""
        return await seeding.act(
            self.session, self.sandbox.url, {"as": login, "act": act, **fields}
        )

    async def comment(self, login: str, number: int, text: str) -> None:
        """Comment on a pull request as a person."""
        await self.act(login, "comment", number=number, body=text)

    async def call(self, path: str, branch: str, **members: JsonValue) -> Json | None:
        """Return what the service's API answers about the queue of a branch; None for 404."""
        return await self._ask(path, {"targetBranch": branch, **members})

    async def of_tests(self, name: str, **members: JsonValue) -> Json | None:
        """Return what the API answers about the tests of the repository."""
        return await self._ask(f"/flaky-tests/{name}", {"org_url_slug": story.OWNER, **members})

    async def _ask(self, path: str, members: Json) -> Json | None:
        """Ask the service, and again while its database is late; what is done by then is done."""
        repo: Json = {"host": HOST, "owner": story.OWNER, "name": story.NAME}
        url, headers = f"{self.service}/v1{path}", {"x-api-token": self.token}
        body: Json = {"repo": repo, **members}
        absent, left = {404}, AWAY_TRIES
        while True:
            left -= 1
            async with self.session.post(url, json=body, headers=headers) as response:
                if response.status in absent:
                    return None
                if response.status != AWAY or not left:
                    response.raise_for_status()
                    answer: Json = await response.json()
                    return answer
            absent = {404, DONE_BEFORE}
            await self.clock.sleep(AWAY_PAUSE_S)

    def set_rain(self, *, is_on: bool) -> None:
        """Let it rain on the CI machine, or stop it."""
        if is_on:
            self.show_sign(widgets.RAIN)
        else:
            (self.machine / widgets.RAIN).unlink(missing_ok=True)

    def show_sign(self, name: str) -> None:
        """Make a file on the CI machine that tests look for."""
        (self.machine / name).touch()

    async def learn_weather(self, branch: str) -> None:
        """Make a test flaky in the eyes of Headgate, by reports alone.

        The test is pushed to the branch while it rains and fails; the job runs again in the sun
        and passes. The job sends both reports, and Headgate quarantines tests that are flaky
        (not those that are broken: they must stop the queue).
        """
        await self.of_tests(
            "update-settings",
            quarantine_enabled=True,
            auto_quarantine_enabled=True,
            auto_quarantine_statuses=["flaky"],
            stable_branches=[*dict.fromkeys((story.MAIN.branch, branch))],
            # CI runs the tests and nothing else, and sends no exit code.
            test_failure_exit_codes=["*=failure"],
        )
        self.set_rain(is_on=True)
        body = seeding.push(branch, {widgets.WEATHER_FILE: widgets.WEATHER}, "Test the weather")
        pushed = await seeding.act(self.session, self.sandbox.url, body)
        self.starts[branch] = str(pushed["sha"])
        while not self.ci_has(branch, "failure"):
            await self.clock.sleep(POLL_S)
        self.set_rain(is_on=False)
        await self.act("alice", "rerun_ci", branch=branch)
        while not await self.of_flaky_tests():
            await self.clock.sleep(POLL_S)

    def set_pace(self, pace: float) -> None:
        """Let time pass faster or slower for the tests on the CI machine; 0 stops it."""
        new = self.machine / "new-pace"
        new.write_text(str(pace))
        new.replace(self.machine / "pace")

    async def add_fault(self, fault: Json) -> JsonValue:
        """Add a fault to the sandbox; return its id."""
        return (await seeding.post(self.session, f"{self.sandbox.url}/_sandbox/faults", fault))[
            "id"
        ]

    async def clear_fault(self, number: JsonValue) -> None:
        """Remove a fault from the sandbox."""
        url = f"{self.sandbox.url}/_sandbox/faults"
        async with self.session.delete(url, json={"id": number}) as response:
            response.raise_for_status()

    def pushed_by_people(self, branch: str) -> frozenset[str]:
        """Return the commits to which people moved a branch, by the sandbox's own log."""
        moves = (each for each in self.sandbox.world.reflog if each.app is None)
        return frozenset(each.after for each in moves if each.ref == f"refs/heads/{branch}")

    def is_tested(self, sha: str) -> bool:
        """Return whether CI has tested a commit that was pushed."""
        runs = [run for run in self.repository.workflow_runs if run.head_sha == sha]
        return bool(runs) and runs[-1].conclusion is not None

    def ci_has(self, branch: str, conclusion: str) -> bool:
        """Return whether the newest CI run of a branch has ended so."""
        runs = [run for run in self.repository.workflow_runs if run.head_branch == branch]
        return bool(runs) and runs[-1].conclusion == conclusion

    async def of_flaky_tests(self) -> JsonValue:
        """Return the tests that are flaky now, as the API lists them."""
        page: Json = {"page_size": 10}
        answer = await self.of_tests("list-unhealthy-tests", status="FLAKY", page_query=page)
        return answer["tests"] if answer else []

    def addresses(self) -> dict[str, str]:
        """Return the addresses that a visitor opens."""
        return {
            "dashboard": f"{self.service}/",
            "api": f"{self.service}/v1",
            "sandbox": f"{self.sandbox.url}/{story.SLUG}/pulls",
        }


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that tests replace: the time of both servers, and who sees their traffic.

    Without a `shared` clock the sandbox has one of its own.
    """

    clock: Clock = field(default_factory=SystemClock)
    shared: timeline.Clock | None = None
    observer: Observer | None = None


@dataclass(frozen=True, slots=True)
class Scenery:
    """The beginning of a stage.

    `settings` of the service differ from its own. Pages of the origin `framed_by` may show the
    dashboard in a frame.
    """

    begin: "Begin"
    settings: Mapping[str, int] = field(default_factory=dict)
    framed_by: str | None = None


Begin = Callable[
    [aiohttp.ClientSession, str, Path], Awaitable[tuple[dict[int, str], dict[str, str]]]
]
"""Makes the repository on the sandbox of an address, whose CI runs share a folder; returns heads
and starts, as the stage has them."""


@asynccontextmanager
async def running(
    folder: Path, ports: Ports, parts: Parts, scenery: Scenery
) -> AsyncIterator[Stage]:
    """Start both servers and make the repository with its pull requests.

    `ports` are chosen. Raises StartRefused for a git that is too old.
    """
    options = SandboxOptions(
        host=LOOPBACK,
        port=ports.sandbox or 0,
        data=folder / "sandbox",
        allow_commands=True,
        commands_at_once=COMMANDS_AT_ONCE,
        clock=parts.shared,
        observer=parts.observer,
    )
    timeout = aiohttp.ClientTimeout(total=RESPONSE_TIMEOUT_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        running_sandbox(options) as sandbox,
    ):
        machine = folder / "ci-machine"
        await asyncio.to_thread(machine.mkdir)
        heads, starts = await scenery.begin(session, sandbox.url, machine)
        chosen = settings_of(sandbox, folder, ports.service or 0, scenery.settings)
        world = World(parts.clock, framed_by=scenery.framed_by)
        async with wiring.running(chosen, world) as service:
            sandbox.world.webhook_url = f"{service.url}{webhook.PATH}"
            token = await create_token(service.runtime)
            yield Stage(service.url, sandbox, token, machine, starts, heads, session, parts.clock)


@asynccontextmanager
async def running_sandbox(options: SandboxOptions) -> AsyncIterator[Sandbox]:
    """Run a sandbox. Raises StartRefused."""
    try:
        async with sandboxes.running(options) as sandbox:
            yield sandbox
    except CannotRun as cannot:
        raise StartRefused(f"{cannot}. Install it") from cannot


def settings_of(sandbox: Sandbox, folder: Path, port: int, more: Mapping[str, int]) -> Settings:
    """Return settings of the service for this sandbox, apart from the environment."""
    credentials = {
        name.removeprefix(settings.PREFIX).lower(): value
        for name, value in sandbox.environment().items()
    }
    return settings.alone(
        **credentials,
        host=LOOPBACK,
        port=port,
        public_url=f"http://{LOOPBACK}:{port}",
        admin_listen="off",
        data_dir=folder / "headgate",
        # As on github.com; the sandbox enforces what it can.
        github_limits=True,
        **more,
    )


async def create_token(runtime: Runtime) -> str:
    """Return an admin token of the demo's organization, for the play and for the visitor."""
    request = TokenRequest(HOST, story.OWNER, "demo", Role.ADMIN)
    return (await tokens.create_token(runtime, request, SYSTEM)).secret
