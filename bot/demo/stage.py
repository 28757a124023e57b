"""The two servers of the demo, and the repository with its pull requests."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from pydantic import JsonValue

from bot import settings, wiring
from bot.demo import story, widgets
from bot.demo.story import Change
from bot.github import webhook
from bot.program import SANDBOX_PORT, SERVICE_PORT
from bot.sandbox import app as sandboxes
from bot.sandbox.app import CannotRun, Sandbox, SandboxOptions
from bot.sandbox.records import HOST
from bot.settings import Settings
from bot.wiring import World
from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.errors import StartRefused
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Role

LOOPBACK = "127.0.0.1"
PORTS_END = 65_536
BRANCHES = tuple(each.branch for each in story.STORIES)
RESPONSE_TIMEOUT_S = 30

# The tests mostly sleep; more of them at a time than a machine has cores do no harm.
COMMANDS_AT_ONCE = 12

# The sandbox imitates how long GitHub takes; the demo need not show that.
KNOBS = {"mergeable_delay_s": 0.2, "rename_delay_s": 0.2}

Json = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports that the user gave; None: the default one, or the next free one."""

    service: int | None = None
    sandbox: int | None = None

    def chosen(self) -> "Ports":
        """Return two free, different ports. Raises StartRefused."""
        if self.service is not None and self.service == self.sandbox:
            raise StartRefused(f"port {self.service} is given for both servers. Give two ports")
        service = free_port(self.service, SERVICE_PORT, self.sandbox)
        return Ports(service, free_port(self.sandbox, SANDBOX_PORT, service))


def free_port(given: int | None, default: int, other: int | None) -> int:
    """Return the given port, else the first free one from the default on that is not `other`.

    Raises StartRefused if the given one is in use.
    """
    if given is not None:
        if not is_free(given):
            raise StartRefused(f"port {given} is in use. Give another, or none")
        return given
    for port in range(default, PORTS_END):
        if port != other and is_free(port):
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
    """The running servers; `starts` are the target branches, `heads` the pull requests' heads."""

    service: str
    sandbox: str
    token: str
    bare: Path
    starts: Mapping[str, str]
    heads: Mapping[int, str]
    session: aiohttp.ClientSession

    async def comment(self, login: str, number: int, text: str) -> None:
        """Comment on a pull request as a person."""
        body: Json = {"as": login, "act": "comment", "number": number, "body": text}
        await act(self.session, self.sandbox, body)

    async def call(self, path: str, branch: str, **members: JsonValue) -> Json | None:
        """Return what the service's API answers about the queue of a branch; None for 404."""
        repo: Json = {"host": HOST, "owner": story.OWNER, "name": story.NAME}
        body: Json = {"repo": repo, "targetBranch": branch, **members}
        url, headers = f"{self.service}/v1{path}", {"x-api-token": self.token}
        async with self.session.post(url, json=body, headers=headers) as response:
            if response.status == 404:
                return None
            response.raise_for_status()
            answer: Json = await response.json()
            return answer

    def addresses(self) -> dict[str, str]:
        """Return the addresses that a visitor opens."""
        return {
            "service": self.service,
            "api": f"{self.service}/v1",
            "sandbox": f"{self.sandbox}/{story.SLUG}/pull/8",
        }


@asynccontextmanager
async def running(folder: Path, ports: Ports) -> AsyncIterator[Stage]:
    """Start both servers and make the repository with its pull requests.

    Raises StartRefused for a port that was given and is in use, or a git that is too old.
    """
    ports = ports.chosen()
    options = SandboxOptions(
        host=LOOPBACK,
        port=ports.sandbox or 0,
        data=folder / "sandbox",
        allow_commands=True,
        commands_at_once=COMMANDS_AT_ONCE,
    )
    timeout = aiohttp.ClientTimeout(total=RESPONSE_TIMEOUT_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        running_sandbox(options) as sandbox,
    ):
        cache = folder / "ci-cache"
        await asyncio.to_thread(cache.mkdir)
        heads, starts = await seed(session, sandbox.url, cache)
        chosen = settings_of(sandbox, folder, ports.service or 0)
        async with wiring.running(chosen, World()) as service:
            sandbox.world.webhook_url = f"{service.url}{webhook.PATH}"
            repository = sandbox.world.repository(story.SLUG)
            bare = repository.git.folder if repository else folder
            token = await create_token(service.runtime)
            yield Stage(service.url, sandbox.url, token, bare, starts, heads, session)


@asynccontextmanager
async def running_sandbox(options: SandboxOptions) -> AsyncIterator[Sandbox]:
    """Run a sandbox. Raises StartRefused."""
    try:
        async with sandboxes.running(options) as sandbox:
            yield sandbox
    except CannotRun as cannot:
        raise StartRefused(f"{cannot}. Install it") from cannot


def settings_of(sandbox: Sandbox, folder: Path, port: int) -> Settings:
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
        # Pushes keep ten seconds apart, which would slow the demonstration.
        build_method="rest",
    )


async def seed(
    session: aiohttp.ClientSession, sandbox: str, cache: Path
) -> tuple[dict[int, str], dict[str, str]]:
    """Make the repository with its pull requests; return their heads and the target branches."""
    await post(session, f"{sandbox}/_sandbox/seed", repository_seed(cache))
    for branch in BRANCHES[1:]:
        await act(session, sandbox, push(branch, {}, f"Begin {branch}"))
    heads, starts = {}, {}
    for each in story.STORIES:
        for change in each.changes:
            opened = await act(session, sandbox, opening(change, each.branch))
            heads[int(str(opened["number"]))] = str(opened["head"])
    for branch in BRANCHES:
        pushed = await act(session, sandbox, push(branch, widgets.LATER, "Begin a change log"))
        starts[branch] = str(pushed["sha"])
    return heads, starts


def repository_seed(cache: Path) -> Json:
    """Return the repository: its files, its people, and the check that each branch requires."""
    statuses: Json = {
        "required_status_checks": [{"context": widgets.CHECK}],
        "strict_required_status_checks_policy": False,
    }
    required: Json = {
        "name": "tests pass",
        "include": [f"refs/heads/{branch}" for branch in BRANCHES],
        "rules": [{"type": "required_status_checks", "parameters": statuses}],
    }
    repository: Json = {
        "full_name": story.SLUG,
        "default_branch": BRANCHES[0],
        "files": {**widgets.FILES, ".sandbox/ci.yml": widgets.ci_file(cache)},
        "collaborators": dict(story.PEOPLE),
        "rulesets": [required],
    }
    return {"repositories": [repository], "knobs": dict(KNOBS)}


def opening(change: Change, branch: str) -> Json:
    """Return the act that opens a pull request."""
    return {
        "as": change.author,
        "act": "open",
        "head": change.branch,
        "base": branch,
        "title": change.title,
        "files": dict(change.files),
        "draft": change.is_draft,
    }


def push(branch: str, files: Mapping[str, str], message: str) -> Json:
    """Return the act that pushes a commit to a target branch, past its rules."""
    return {
        "as": "alice",
        "act": "push",
        "branch": branch,
        "files": dict(files),
        "message": message,
        "bypass": True,
    }


async def act(session: aiohttp.ClientSession, sandbox: str, body: Json) -> Json:
    """Act as a person in the repository, over the sandbox's control plane."""
    return await post(session, f"{sandbox}/_sandbox/acts", {"repo": story.SLUG, **body})


async def post(session: aiohttp.ClientSession, url: str, body: Json) -> Json:
    """Return the answer of the sandbox's control plane. Raises ClientResponseError."""
    async with session.post(url, json=body) as response:
        response.raise_for_status()
        answer: Json = await response.json()
        return answer


async def create_token(runtime: Runtime) -> str:
    """Return an admin token of the demo's organization, for the play and for the visitor."""
    request = TokenRequest(HOST, story.OWNER, "demo", Role.ADMIN)
    return (await tokens.create_token(runtime, request, SYSTEM)).secret
