"""The sandbox as one aiohttp application, and as a running server.

The command line, the demo and tests use `running`. It serves loopback, and refuses requests that
a foreign web page could make a browser send.

The control plane `/_sandbox/…` is for tests, the demo and people at the keyboard: seeds, acts of
people, time, faults, deliveries. A malformed request is 400 `{"error"}`. Nothing of it imitates the
provider.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from aiohttp import web

from bot.sandbox import artifacts, command, deliver, job_tokens, registration
from bot.sandbox.acts import actions_by_people, seeds
from bot.sandbox.auth import Credentials
from bot.sandbox.deliver import APP_SLUG
from bot.sandbox.faces import PLAIN, Face
from bot.sandbox.faults import Fault, lands_other_tree
from bot.sandbox.graph import endpoint
from bot.sandbox.pages import Pages
from bot.sandbox.records import HOST, App, Json
from bot.sandbox.refusal import Refusal
from bot.sandbox.registration import NEW, Registration, SignIn
from bot.sandbox.rest import actions, apps, pulls, repositories
from bot.sandbox.rest import door as doors
from bot.sandbox.rest.call import Route
from bot.sandbox.rest.door import Door
from bot.sandbox.smart_http import SmartHttp
from bot.sandbox.timeline import Clock, ManualClock, RunningClock, Timeline, stamp
from bot.sandbox.world import COMMANDS_AT_ONCE, Courier, Repository, World

BODY_MAX = 256 << 20  # a push may carry this much
MANUAL_START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
WEBHOOK_SECRET = "sandbox-webhook-secret-0123456789abcdef"
PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "pull_requests": "write",
    "checks": "write",
    "statuses": "read",
    "actions": "read",
    "issues": "read",
    "administration": "read",
}
EVENTS = [
    "pull_request",
    "pull_request_review",
    "pull_request_review_thread",
    "issue_comment",
    "push",
    "check_run",
    "check_suite",
    "status",
    "workflow_run",
    "repository",
    "repository_ruleset",
    "branch_protection_rule",
]
ROUTES: tuple[Route, ...] = (
    *apps.ROUTES,
    *registration.ROUTES,
    *repositories.ROUTES,
    *repositories.GIT_ROUTES,
    *pulls.ROUTES,
    *pulls.ISSUE_ROUTES,
    *actions.CHECK_ROUTES,
    *actions.ROUTES,
    *repositories.LATE_ROUTES,
)
GIT = ".git/"  # in every path of smart_http.py
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", HOST})
READS = ("GET", "HEAD", "OPTIONS")


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PREFIX = "/_sandbox"


class _Control:
    """The handlers of the control plane of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def routes(self) -> list[web.RouteDef]:
        """Every route below PREFIX."""
        return [
            web.post(f"{_PREFIX}/seed", self._answer(self.seed)),
            web.post(f"{_PREFIX}/acts", self._answer(self.act)),
            web.post(f"{_PREFIX}/rules", self._answer(self.rules)),
            web.post(f"{_PREFIX}/clock", self._answer(self.clock)),
            web.post(f"{_PREFIX}/settle", self._answer(self.settle)),
            web.post(f"{_PREFIX}/webhook", self._answer(self.webhook)),
            web.post(f"{_PREFIX}/faults", self._answer(self.add_fault)),
            web.get(f"{_PREFIX}/faults", self._answer(self.list_faults)),
            web.delete(f"{_PREFIX}/faults", self._answer(self.clear_faults)),
            web.get(f"{_PREFIX}/deliveries", self._answer(self.deliveries)),
        ]

    def _answer(
        self, act: Callable[[Json], Awaitable[Json]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                raw = await request.read()
                value = json.loads(raw) if raw.strip() else {}
                if not isinstance(value, dict):
                    raise Refusal(400, "the body is not a JSON object")
                return web.json_response(await act(value))
            except Refusal as refused:
                return web.json_response({"error": refused.message}, status=refused.status)
            except (ValueError, TypeError, KeyError, AttributeError) as wrong:
                return web.json_response({"error": f"malformed: {wrong!r}"}, status=400)

        return answer

    async def seed(self, value: Json) -> Json:
        """People, repositories, files, rules: acts/seeds.py."""
        return await seeds.seed(self.world, value)

    async def act(self, value: Json) -> Json:
        """Something a person does: acts/actions_by_people.py."""
        return await actions_by_people.act(self.world, value)

    async def rules(self, value: Json) -> Json:
        """Settings and rules of `repo`, as in a seed."""
        repository = self.world.repository(value["repo"])
        if repository is None:
            raise Refusal(400, f"no repository is called {value['repo']!r}")
        seeds.set_rules(repository, value)
        return {}

    async def knobs(self, value: Json) -> Json:
        """Delays of the imitation, by name."""
        seeds.set_knobs(self.world, value)
        return asdict(self.world.knobs)

    async def clock(self, value: Json) -> Json:
        """Move the world's time by `advance_s`, or change its `speed`."""
        timeline = self.world.timeline
        if "speed" in value:
            if not isinstance(timeline.clock, RunningClock):
                raise Refusal(400, "this clock has no speed: it stands still until moved")
            timeline.clock.change_speed(float(value["speed"]))
            timeline.advance(0.0)
        if "advance_s" in value:
            timeline.advance(float(value["advance_s"]))
        return {"now": stamp(timeline.now()), "waiting": timeline.waiting()[:100]}

    async def webhook(self, value: Json) -> Json:
        """Send deliveries to `url` from now on, as an owner does in the App's settings."""
        self.world.webhook_url = str(value["url"])
        return {"url": self.world.webhook_url}

    async def settle(self, value: Json) -> Json:
        """Move time on until no delivery, CI job or other delay is left."""
        done = await self.world.timeline.settle()
        return {"done": done, "now": stamp(self.world.timeline.now()), **value}

    async def add_fault(self, value: Json) -> Json:
        """One more fault."""
        made = self.world.faults.add(self.world.new_id(), value)
        return {"id": made.id}

    async def list_faults(self, _: Json) -> Json:
        """The faults, with how often each matched and struck."""
        return {"faults": [asdict(one) for one in self.world.faults.listed]}

    async def clear_faults(self, value: Json) -> Json:
        """Remove the fault `id`, or all."""
        self.world.faults.clear(value.get("id"))
        return {}

    async def deliveries(self, _: Json) -> Json:
        """Every attempt to deliver a webhook so far, oldest first."""
        names = ("id", "guid", "event", "action", "redelivery", "status")
        listed = [
            {
                **{name: getattr(one, name) for name in names},
                "at": stamp(one.at),
                "payload": json.loads(one.body),
                "status_code": one.answer_code,
            }
            for one in self.world.attempts
        ]
        return {"deliveries": listed}


class Observer(Protocol):
    """Sees all traffic of a sandbox: calls with their answers, and webhooks."""

    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request with what the handler answers."""

    def watching(self, courier: Courier) -> Courier:
        """Return a courier that carries what this one carries."""


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The options of a sandbox.

    Port 0 takes a free one. Without `data` everything is in a temporary folder. With a `clock`
    nothing happens by itself: the owner of the clock also runs the jobs. At most
    `commands_at_once` commands of checks run at the same time. Without `has_app` the App is first
    registered and installed in the browser. `has_example`: it begins with the repositories of
    acts/seeds.py. `face`: how it behaves where GitHub has been seen to do so in two ways.
    """

    host: str = "127.0.0.1"
    port: int = 0
    data: Path | None = None
    seed: int = 1
    speed: float = 1.0
    webhook_url: str | None = None
    webhook_secret: str = WEBHOOK_SECRET
    allow_commands: bool = False
    commands_at_once: int = COMMANDS_AT_ONCE
    pass_env: tuple[str, ...] = ()
    is_ghes: bool = False
    is_manual: bool = False
    clock: Clock | None = None
    has_app: bool = True
    has_example: bool = False
    observer: Observer | None = None
    face: Face = PLAIN


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox: its world, and where to find it."""

    world: World
    credentials: Credentials
    control: _Control
    url: str
    key_path: Path

    @property
    def app_id(self) -> int:
        """The id of the App."""
        return self.app.id

    @property
    def app(self) -> App:
        """The App. Raises KeyError before it is registered."""
        if self.world.app is None:
            raise KeyError("no App is registered")
        return self.world.app

    @property
    def webhook_secret(self) -> str:
        """The secret that signs deliveries."""
        return self.world.webhook_secret

    def repository(self, full_name: str) -> Repository:
        """The repository of a name. Raises KeyError."""
        repository = self.world.repository(full_name)
        if repository is None:
            raise KeyError(full_name)
        return repository

    async def seed(self, **value: Any) -> Json:
        """Add people and repositories: acts/seeds.py."""
        return await seeds.seed(self.world, value)

    async def act(self, name: str, by: str, repo: str, **fields: Any) -> Json:
        """Do an action of the person `by`: acts/actions_by_people.py."""
        value = {"act": name, "as": by, "repo": repo, **fields}
        return await actions_by_people.act(self.world, value)

    async def settle(self) -> int:
        """Move the world's clock until nothing is left to do; how many jobs were done."""
        return await self.world.timeline.settle()

    def environment(self) -> dict[str, str]:
        """The settings with which Headgate finds this sandbox."""
        address = {"HEADGATE_GITHUB_URL": self.url, "HEADGATE_GITHUB_HOST": HOST}
        if self.world.app is None:
            return address
        return {
            **address,
            "HEADGATE_GITHUB_APP_ID": str(self.app_id),
            "HEADGATE_GITHUB_PRIVATE_KEY": str(self.key_path),
            "HEADGATE_GITHUB_WEBHOOK_SECRET": self.webhook_secret,
            "HEADGATE_GITHUB_CLIENT_ID": self.app.client_id,
            "HEADGATE_GITHUB_CLIENT_SECRET": self.app.client_secret,
        }


def environment_lines(sandbox: Sandbox) -> list[str]:
    """The settings as `NAME=value` lines, as `headgate sandbox` prints them."""
    return [f"{name}={value}" for name, value in sandbox.environment().items()]


class CannotRun(Exception):
    """The sandbox cannot start here; the message says what is missing."""


@asynccontextmanager
async def running(options: SandboxOptions) -> AsyncIterator[Sandbox]:
    """A sandbox that serves until the context ends.

    Raises CannotRun for an old git, OSError for a port in use.
    """
    async with AsyncExitStack() as stack:
        folder = _folder(stack, options)
        if await command.version(folder) < command.VERSION_NEEDED:
            raise CannotRun("the sandbox needs git 2.38 or newer on PATH")
        world = _make_world(options, folder)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        courier: Courier = partial(deliver.carry, world, session)
        observer = options.observer
        world.courier = courier if observer is None else observer.watching(courier)
        credentials = Credentials(world)
        control = _Control(world)
        hosts = LOOPBACK if options.host in LOOPBACK else frozenset[str]()
        app = build_app(world, credentials, control, hosts)
        if observer is not None:
            app.middlewares.append(observer.middleware)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, options.host, options.port)
        await site.start()
        port = runner.addresses[0][1]
        world.web = f"http://{options.host}:{port}"
        if isinstance(world.timeline.clock, RunningClock):
            await _run_in_background(stack, world.timeline)
        if options.has_example:
            await seeds.fill(world)
        yield Sandbox(world, credentials, control, world.web, _write_key(folder, credentials))


def _folder(stack: AsyncExitStack, options: SandboxOptions) -> Path:
    if options.data is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-")))
    folder = options.data.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.git")):
        # Only git is kept: the rest of an earlier world would be missing around it.
        raise CannotRun(f"{folder} holds repositories of an earlier run; give an empty folder")
    return folder


def _make_world(options: SandboxOptions, folder: Path) -> World:
    """An empty world with the App and the four people."""
    clock, callers_now = _clock(options)
    world = World(Timeline(clock, callers_now), folder, options.seed)
    world.is_ghes = options.is_ghes
    world.webhook_url = options.webhook_url
    world.webhook_secret = options.webhook_secret
    world.allow_commands = options.allow_commands
    world.command_places = asyncio.Semaphore(options.commands_at_once)
    world.pass_env = options.pass_env
    world.face = options.face
    world.orders.seed(f"{options.seed}:{options.face.seed}")
    for login in (*seeds.PEOPLE, seeds.STRANGER):
        world.add_account(login)
    world.installs_itself = options.has_app
    if options.has_app:
        world.app = world.add_app(APP_SLUG, dict(PERMISSIONS), list(EVENTS))
    return world


def _clock(options: SandboxOptions) -> tuple[Clock, Callable[[], datetime] | None]:
    if options.clock is not None:
        return options.clock, options.clock.now
    if options.is_manual:
        return ManualClock(MANUAL_START), None
    return RunningClock(options.speed), None


def _write_key(folder: Path, credentials: Credentials) -> Path:
    path = folder / "app.pem"
    path.touch(mode=0o600)
    path.write_bytes(credentials.pem)
    return path


async def _run_in_background(stack: AsyncExitStack, timeline: Timeline) -> None:
    task = asyncio.create_task(timeline.run())

    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await timeline.end()

    stack.push_async_callback(stop)


def build_app(
    world: World,
    credentials: Credentials,
    control: _Control,
    hosts: frozenset[str] = frozenset(),
) -> web.Application:
    """The whole application of one world; `hosts`: see `guard`."""
    served = Door(world, credentials)
    app = web.Application(
        middlewares=[guard(hosts), _fault_middleware(served)], client_max_size=BODY_MAX
    )
    app.on_response_prepare.append(_dated(world))
    for route in ROUTES:
        app.router.add_route(
            route.method, f"{doors.PREFIX}{route.path}", partial(_serve, served, route)
        )
    app.router.add_post("/api/graphql", partial(_serve, served, endpoint.ROUTE))
    app.router.add_route("*", f"{doors.PREFIX}{{tail:.*}}", doors.not_imitated)
    app.add_routes(control.routes())
    app.add_routes(SmartHttp(world, credentials).routes())
    app.add_routes(job_tokens.routes(world))
    app.router.add_get(artifacts.STORAGE + r"{id:\d+}", partial(artifacts.serve, world))
    pages = Pages(world)
    Registration(world, pages).add_to(app)
    SignIn(world, credentials, pages).add_to(app)
    pages.add_to(app)
    return app


def _dated(world: World) -> Any:
    """Give each answer the stand-in's own time, also one that a fault puts in its place."""

    async def date(_: web.Request, answer: web.StreamResponse) -> None:
        answer.headers["Date"] = format_datetime(world.timeline.callers_now(), usegmt=True)

    return date


async def _serve(served: Door, route: Route, request: web.Request) -> web.StreamResponse:
    return await served.answer(request, route)


def guard(hosts: frozenset[str]) -> Any:
    """The middleware that refuses what a page of another site makes a browser send.

    With `--allow-commands` such a write could run programs on this machine. `hosts` are the
    names under which the sandbox may be asked; without any, every name will do. A manifest comes
    from another site; its page only asks.
    """

    @web.middleware
    async def refuse_foreign_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
        name = request.url.host or ""
        if hosts and name not in hosts:
            raise web.HTTPForbidden(text=f"refused: the sandbox is not called {name}")
        site = request.headers.get("Sec-Fetch-Site", "none")
        origin = request.headers.get("Origin")
        is_foreign = site not in ("none", "same-origin") or (
            origin is not None and origin.partition("://")[2] != request.host
        )
        is_manifest = request.path.endswith(NEW)
        if is_foreign and not is_manifest and request.method not in READS:
            raise web.HTTPForbidden(text="refused: the request comes from another site")
        answer: web.StreamResponse = await handler(request)
        return answer

    return refuse_foreign_pages


def _fault_middleware(served: Door) -> Any:
    """The middleware that logs every call of API and git, and applies faults to it."""

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        path, world = request.rel_url.path, served.world
        if not path.startswith(("/api/", artifacts.STORAGE)) and GIT not in path:
            answer: web.StreamResponse = await handler(request)
            return answer
        request[doors.REQUEST_ID] = f"SBOX:{world.new_id():X}"
        document = (await request.text()) if path == "/api/graphql" else None
        below = path.removeprefix(doors.PREFIX)
        hits = world.faults.of_call(request.method, below, document)
        beyond = doors.beyond_limits(world, request.method, below)
        answer = beyond or await _with_faults(served, request, handler, hits)
        served.note(request, answer.status, [fault.kind for fault in hits])
        return answer

    return serve


async def _with_faults(
    served: Door, request: web.Request, handler: Handler, hits: list[Fault]
) -> web.StreamResponse:
    token = lands_other_tree.set(False)
    try:
        for fault in hits:
            instead = await doors.before(served, request, fault)
            if instead is not None:
                return instead
        answer: web.StreamResponse = await handler(request)
    finally:
        lands_other_tree.reset(token)
    for fault in hits:
        answer = await doors.after(request, fault, answer)
    return answer
