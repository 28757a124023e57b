"""One history: the stand-in, the processes of the service, people, faults, and what was seen."""

import asyncio
import hashlib
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from bot import wiring
from bot.sandbox import app as sandbox_app
from bot.sandbox.acts import seeds
from bot.sandbox.app import Sandbox, SandboxOptions
from bot.sandbox.world import Knobs, Repository
from bot.wiring import Running
from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.crash_points import NoCrashes
from service.mergequeue.store.backlog import THROTTLED
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Role
from tests.harness.world import REPO, WorldOptions, settings_for
from tests.whole_service import parts
from tests.whole_service.faults import DatabaseFaults, ProviderFaults
from tests.whole_service.loop import PROCESS, rest
from tests.whole_service.network import NetworkLoop
from tests.whole_service.parts import InlineRunner, SeededIds, ServiceClock, SharedClock
from tests.whole_service.plan import Plan

HOST = "github.localhost"
FINAL = ("MERGED", "FAILED", "CANCELLED")
LOOK_EVERY_S = 15.0
UP_WITHIN_S = 600.0
CI = """\
triggers: {{push: ["headgate/merge/**", main], pull_request: true}}
checks:
  - name: unit
    seconds: {seconds}
    rules:
      - {{exists: [broken.txt], conclusion: failure}}
      - {{exists: [a.txt, b.txt], conclusion: failure}}
      - {{flake: {flake}, conclusion: failure}}
"""


class ServiceProcess:
    """One process of the service, from its start to its death or stop."""

    def __init__(self, history: "History", name: str) -> None:
        self.name = name
        self._history = history
        self._told = asyncio.Event()
        self.running: asyncio.Future[Running] = history.loop.create_future()
        context = copy_context()
        context.run(PROCESS.set, name)
        self.ended = history.loop.create_task(self._serve(), context=context)

    async def _serve(self) -> None:
        history = self._history
        chance = random.Random(f"{history.plan.seed}/ids/{self.name}")
        part = wiring.World(history.clock, SeededIds(chance), NoCrashes())
        async with wiring.running(history.settings, part) as service:
            history.sandbox.world.webhook_url = f"{service.url}/webhooks/github"
            if not self.running.done():
                self.running.set_result(service)
            await self._told.wait()

    def stop(self) -> None:
        """Let it end in good order."""
        self._told.set()


class Seen:
    """The ends of submissions and effects as they were seen; an end that changes is noted."""

    def __init__(self, file: Path) -> None:
        self._rows = sqlite3.connect(file, isolation_level=None)
        self._ends: dict[str, str] = {}
        self._tries: dict[tuple[str, float], int] = {}
        self.changed: list[str] = []

    def look(self, closed_until_s: float | None = None) -> None:
        """Look at the rows as they are now; the provider may be closed until some moment."""
        for entry, pr, state in self._rows.execute("SELECT id, pr, state FROM entry"):
            before = (
                self._ends.setdefault(entry, state) if state in FINAL else self._ends.get(entry)
            )
            if before not in (None, state):
                self.changed.append(f"#{pr} was {before}, and is {state}")
        for key, state in self._rows.execute(
            "SELECT idem_key, state FROM outbox WHERE NOT is_open"
        ):
            before = self._ends.setdefault(key, state)
            if before != state:
                self.changed.append(f"effect {key} was {before}, and is {state}")

        if closed_until_s is not None:
            self._look_at_throttled(closed_until_s)

    def _look_at_throttled(self, closed_until_s: float) -> None:
        """Note an effect that is tried again and again while the provider asks to wait."""
        found = self._rows.execute(
            "SELECT idem_key, attempts FROM outbox WHERE is_open AND note LIKE ?", [f"{THROTTLED}%"]
        )
        for key, attempts in found:
            first = self._tries.setdefault((key, closed_until_s), attempts)
            if attempts > first + 2:
                self.changed.append(f"effect {key} did not wait as long as the provider asked")

    def close(self) -> None:
        """Close the file."""
        self._rows.close()


@dataclass
class History:
    """A history under way. `told` is what happened, line by line."""

    plan: Plan
    loop: NetworkLoop
    sandbox: Sandbox
    clock: ServiceClock
    database: DatabaseFaults
    provider: ProviderFaults
    folder: Path
    older: str
    http: aiohttp.ClientSession
    opened: list[InlineRunner]
    told: list[str] = field(default_factory=list)
    processes: list[ServiceProcess] = field(default_factory=list)
    dead: list[ServiceProcess] = field(default_factory=list)
    secret: str = ""
    listener: Callable[[str], None] | None = None
    raised: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = WorldOptions(is_compared=False, settings=self.plan.service)
        self.settings = settings_for(self.folder, self.sandbox, options)
        self.seen = Seen(self.folder / "headgate.db")
        self.loop.set_exception_handler(self._note_raised)

    def _note_raised(self, _: object, what: dict[str, Any]) -> None:
        error = what.get("exception")
        if PROCESS.get() not in self.loop.dead and not isinstance(error, asyncio.CancelledError):
            self.raised.append(f"{what.get('message')}: {error!r}")

    def say(self, line: str) -> None:
        """Note what happens."""
        line = f"{self.loop.time():9.3f} {line}"
        self.told.append(line)
        if self.listener is not None:
            self.listener(line)

    @property
    def repository(self) -> Repository:
        """The stand-in's own record of the repository."""
        return self.sandbox.repository(REPO)

    @property
    def runtime(self) -> Runtime | None:
        """The parts of the process that runs; None while none does."""
        for process in self.processes:
            if process.running.done() and not process.ended.done():
                return process.running.result().runtime
        return None

    @property
    def url(self) -> str:
        """Where the service listens, or last listened."""
        for process in reversed(self.dead + self.processes):
            if process.running.done():
                return process.running.result().url
        return "http://127.0.0.1:1"

    def start(self) -> ServiceProcess:
        """Start a process."""
        number = len(self.processes) + len(self.dead) + 1
        made = ServiceProcess(self, f"process-{number}")
        self.processes.append(made)
        self.provider.forget()
        self.say(f"{made.name} starts")
        return made

    def kill(self, process: ServiceProcess) -> None:
        """Let a process die at this step."""
        self.say(f"{process.name} dies")
        self.processes.remove(process)
        self.dead.append(process)
        self.loop.kill(process.name)
        for runner in self.opened:
            runner.die()
        self.opened.clear()

    async def up(self) -> Runtime:
        """Wait until a process works. Raises AssertionError when none ever does."""
        until_s = self.loop.time() + UP_WITHIN_S
        while (found := self.runtime) is None:
            for process in [one for one in self.processes if one.ended.done()]:
                self.processes.remove(process)
                self.dead.append(process)
                why = process.ended.exception()
                self.say(f"{process.name} has ended: {why!r}")
            assert self.loop.time() < until_s, "no process ever works"
            if not self.processes:
                self.start()
            await rest(1)
        return found

    async def ask(self, name: str, number: int | None = None, **more: Any) -> tuple[int, Any]:
        """Status and answer of an endpoint below /v1; status 0 without an answer."""
        owner, repo = REPO.split("/")
        body = {"repo": {"host": HOST, "owner": owner, "name": repo}, "targetBranch": "main"}
        sent = {**body, **({"pr": {"number": number}} if number else {}), **more}
        try:
            async with self.http.post(
                f"{self.url}/v1/{name}", json=sent, headers={"x-api-token": self.secret}
            ) as answer:
                return answer.status, await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return 0, None

    async def act(self, name: str, by: str, **fields: Any) -> dict[str, Any]:
        """An act of a person at GitHub."""
        return await self.sandbox.act(name, by, REPO, **fields)

    def digest(self) -> str:
        """A digest of everything that anybody saw."""
        world = self.sandbox.world
        seen = hashlib.sha256("\n".join(self.told).encode())
        for call in world.calls:
            names = ("at", "method", "path", "query", "status", "by", "faults")
            seen.update(repr([call[name] for name in names]).encode())
        for one in world.attempts:
            what = (one.guid, one.event, one.action, one.at, one.answer_code, one.status)
            seen.update(repr(what).encode())
        for move in world.reflog:
            seen.update(repr(move).encode())
        return seen.hexdigest()

    async def until(self, is_so: Callable[[], Awaitable[bool]], within_s: float) -> bool:
        """Wait until something has come true; whether it did."""
        end_s = self.loop.time() + within_s
        while not await is_so():
            if self.loop.time() >= end_s:
                return False
            await rest(5)
        return True


@asynccontextmanager
async def opened(plan: Plan, folder: Path) -> AsyncIterator[History]:
    """A history that has not begun: a repository, its queue, one process that works."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, NetworkLoop)
    latency = random.Random(f"{plan.seed}/latency")
    loop.latency_s = lambda: latency.random() * 0.02
    shared = SharedClock(loop)
    database = DatabaseFaults(random.Random(f"{plan.seed}/database"))
    runners: list[InlineRunner] = []
    options = SandboxOptions(clock=shared, seed=plan.seed)
    with parts.inline(database, runners):
        async with sandbox_app.running(options) as sandbox, _people_online() as http:
            older = await _furnish(sandbox, plan)
            provider = ProviderFaults(random.Random(f"{plan.seed}/provider"), loop.time)
            sandbox.world.faults = provider
            history = History(
                plan, loop, sandbox, ServiceClock(shared), database, provider, folder, older,
                http, runners,
            )  # fmt: skip
            try:
                await _begin(history)
                yield history
            finally:
                await _end(history)


@asynccontextmanager
async def _people_online() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        yield http


async def _furnish(sandbox: Sandbox, plan: Plan) -> str:
    """Make the repository; the first commit of `main`."""
    ci = CI.format(flake=plan.flake, seconds=20)
    files = {"README.md": "# Widgets\n", ".sandbox/ci.yml": ci}
    await sandbox.seed(repositories=[{"full_name": REPO, "files": files}])
    repository = sandbox.repository(REPO)
    older = str(repository.git.branch("main"))
    newer = {"branch": "main", "files": {"newer.txt": "x\n"}, "message": "Move on"}
    await sandbox.act("push", "alice", REPO, **newer)
    seeds.set_rules(repository, {"required_checks": ["unit"]})
    return older


async def _begin(history: History) -> None:
    history.start()
    runtime = await history.up()
    owner = REPO.split("/")[0]
    wish = TokenRequest(HOST, owner, "story", Role.ADMIN)
    history.secret = (await tokens.create_token(runtime, wish, SYSTEM)).secret
    status, answer = await history.ask("createQueue", **history.plan.settings)
    assert status in (200, 201), answer
    plan = history.plan
    history.clock.off = timedelta(seconds=plan.skew_s)
    history.database.slow_s = plan.answers_within_s
    history.database.rates, history.database.read_rate = plan.writes, plan.reads
    history.provider.calls, history.provider.call_rate = plan.calls, plan.call_rate
    history.provider.late_rate = plan.late_rate
    history.provider.deliveries = plan.deliveries
    history.provider.is_muted = plan.is_muted
    history.provider.delivery_rate = plan.delivery_rate


async def _end(history: History) -> None:
    """End everything, dead processes last: their tasks only see that all is gone."""
    calm(history)
    history.seen.close()
    for process in history.processes:
        process.stop()
    for process in history.processes:
        await asyncio.gather(process.ended, return_exceptions=True)
    tasks = history.loop.bury()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def calm(history: History) -> None:
    """End all faults."""
    history.database.is_on = history.provider.is_on = False
    history.sandbox.world.knobs = Knobs()
    history.clock.off = timedelta()


async def storm(history: History) -> None:
    """Let everything go wrong that the plan has, for a while; then nothing."""
    plan = history.plan
    history.database.is_on = history.provider.is_on = True
    under_way = (_outages(history), _jumps(history), _look(history))
    told = [asyncio.create_task(one) for one in under_way]
    for steps in plan.kills:
        history.loop.after_steps(steps, lambda: _strike(history))
    await rest(plan.storm_s)
    for task in told:
        task.cancel()
    history.loop.forget_strikes()
    calm(history)
    history.say("calm")


def _strike(history: History) -> None:
    living = [one for one in history.processes if not one.ended.done()]
    if living:
        history.kill(living[0])
        pause_s = random.Random(f"{history.plan.seed}/{len(history.dead)}").choice((1, 5, 60))
        history.loop.call_later(pause_s, history.start)


async def _look(history: History) -> None:
    while True:
        history.seen.look(history.provider.closed_until_s)
        await rest(LOOK_EVERY_S)


async def _outages(history: History) -> None:
    for begin, end in history.plan.outages:
        await rest(max(begin - history.loop.time(), 0))
        history.say("the database is away")
        history.database.is_gone = True
        await rest(max(end - history.loop.time(), 0))
        history.database.is_gone = False
        history.say("the database is back")


async def _jumps(history: History) -> None:
    for moment, off_s in history.plan.jumps:
        await rest(max(moment - history.loop.time(), 0))
        history.clock.off = timedelta(seconds=off_s)
        history.say(f"the clock is off by {off_s:g} s")
