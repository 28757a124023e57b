"""The two servers of the demo, and the world in which they meet."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from pydantic import JsonValue

from bot import settings, wiring
from bot.demo import story, widgets
from bot.github import webhook
from bot.program import SANDBOX_PORT, SERVICE_PORT
from bot.sandbox import app as sandboxes
from bot.sandbox.app import CannotRun, Sandbox, SandboxOptions
from bot.sandbox.records import HOST
from bot.settings import Settings
from bot.wiring import World
from service.accounts import tokens
from service.accounts.tokens import TokenWish
from service.errors import StartRefused
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Role

LOOPBACK = "127.0.0.1"
BRANCHES = tuple(played.branch for played in story.STORIES)
ANSWER_WITHIN_S = 30

# The tests mostly sleep; more of them at a time than a machine has cores do no harm.
COMMANDS_AT_ONCE = 12

# The sandbox imitates how long GitHub takes; nobody came to watch that.
KNOBS = {"mergeable_delay_s": 0.2, "rename_delay_s": 0.2}

Json = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports somebody asked for; None: the usual one, or a free one when it is taken."""

    service: int | None = None
    sandbox: int | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the play takes place.

    `starts` are the target branches before it, `heads` the pull requests' heads.
    """

    service: str
    sandbox: str
    token: str
    bare: Path
    starts: dict[str, str]
    heads: dict[int, str]
    session: aiohttp.ClientSession

    async def act(self, who: str, act: str, **fields: JsonValue) -> Json:
        """Do something as a person, over the sandbox's control plane."""
        body: Json = {"as": who, "act": act, "repo": story.SLUG, **fields}
        return await post(self.session, f"{self.sandbox}/_sandbox/acts", body)

    async def ask(self, path: str, branch: str, **members: JsonValue) -> Json | None:
        """What the service's API answers about the queue of a branch; None for 404."""
        repo: Json = {"host": HOST, "owner": story.OWNER, "name": story.NAME}
        body: Json = {"repo": repo, "targetBranch": branch, **members}
        sent = self.session.post(
            f"{self.service}/v1{path}", json=body, headers={"x-api-token": self.token}
        )
        async with sent as answer:
            if answer.status == 404:
                return None
            answer.raise_for_status()
            found: Json = await answer.json()
            return found


@asynccontextmanager
async def raised(folder: Path, ports: Ports) -> AsyncIterator[Stage]:
    """Both servers, the repository and its pull requests; nobody has commented yet.

    Raises StartRefused for a port that was asked for and is taken, or a git too old.
    """
    service_port, sandbox_port = both_of(ports)
    options = SandboxOptions(
        host=LOOPBACK,
        port=sandbox_port,
        data=folder / "sandbox",
        allow_commands=True,
        commands_at_once=COMMANDS_AT_ONCE,
    )
    patience = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
    async with (
        aiohttp.ClientSession(timeout=patience) as session,
        sandbox_of(options) as sandbox,
    ):
        cache = folder / "ci-cache"
        cache.mkdir()
        heads, starts = await seeded(session, sandbox.url, cache)
        chosen = settings_of(sandbox, folder, service_port)
        async with wiring.running(chosen, World()) as service:
            sandbox.world.webhook_url = f"{service.url}{webhook.PATH}"
            repository = sandbox.world.repository(story.SLUG)
            yield Stage(
                service=service.url,
                sandbox=sandbox.url,
                token=await token_for(service.runtime),
                bare=repository.git.folder if repository else folder,
                starts=starts,
                heads=heads,
                session=session,
            )


@asynccontextmanager
async def sandbox_of(options: SandboxOptions) -> AsyncIterator[Sandbox]:
    """A running sandbox. Raises StartRefused."""
    try:
        async with sandboxes.running(options) as sandbox:
            yield sandbox
    except CannotRun as cannot:
        raise StartRefused(f"{cannot}. Install it") from cannot


def settings_of(sandbox: Sandbox, folder: Path, port: int) -> Settings:
    """The service's settings: this sandbox, this folder, nothing of the environment."""
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
    )


def both_of(ports: Ports) -> tuple[int, int]:
    """The ports to use, the service's first; never the same. Raises StartRefused."""
    if ports.service is not None and ports.service == ports.sandbox:
        raise StartRefused(f"port {ports.service} is given for both servers. Give two ports")
    service = port_of(ports.service, SERVICE_PORT, ports.sandbox)
    return service, port_of(ports.sandbox, SANDBOX_PORT, service)


def port_of(asked: int | None, usual: int, other: int | None = None) -> int:
    """The port to use: the one asked for, else the usual one, else any free one but `other`.

    Raises StartRefused for one that was asked for and is taken.
    """
    if asked is not None:
        if not is_free(asked):
            raise StartRefused(f"port {asked} is in use. Give another, or none")
        return asked
    if usual != other and is_free(usual):
        return usual
    with socket.socket() as one, socket.socket() as spare:
        one.bind((LOOPBACK, 0))
        spare.bind((LOOPBACK, 0))
        number: int = one.getsockname()[1]
        instead: int = spare.getsockname()[1]
        return instead if number == other else number


def is_free(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as probe:
        # As the servers do: a connection that lingers after a stop is nobody.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


async def seeded(
    session: aiohttp.ClientSession, sandbox: str, cache: Path
) -> tuple[dict[int, str], dict[str, str]]:
    """Make the repository with its pull requests; their heads, and the branches as they stand."""
    acts = f"{sandbox}/_sandbox/acts"
    await post(session, f"{sandbox}/_sandbox/seed", repository_seed(cache))
    for branch in BRANCHES[1:]:
        await post(session, acts, pushed(branch, {}, f"Begin {branch}"))
    heads = {}
    for played in story.STORIES:
        for role in played.roles:
            made = await post(session, acts, opened(role, played.branch))
            heads[int(str(made["number"]))] = str(made["head"])
    starts = {}
    for branch in BRANCHES:
        made = await post(session, acts, pushed(branch, widgets.LATER, "Begin a change log"))
        starts[branch] = str(made["sha"])
    return heads, starts


def repository_seed(cache: Path) -> Json:
    """The repository: its files, its people, and the check that every target branch requires."""
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


def opened(role: story.Role, branch: str) -> Json:
    """The act that opens a pull request."""
    return {
        "as": role.author,
        "act": "open",
        "repo": story.SLUG,
        "head": role.branch,
        "base": branch,
        "title": role.title,
        "files": dict(role.files),
        "draft": role.draft,
    }


def pushed(branch: str, files: Mapping[str, str], message: str) -> Json:
    """The act that brings a commit onto a target branch, past its rules."""
    return {
        "as": "alice",
        "act": "push",
        "repo": story.SLUG,
        "branch": branch,
        "files": dict(files),
        "message": message,
        "bypass": True,
    }


async def post(session: aiohttp.ClientSession, url: str, body: Json) -> Json:
    """The answer of the sandbox's control plane. Raises ClientResponseError."""
    async with session.post(url, json=body) as answer:
        answer.raise_for_status()
        found: Json = await answer.json()
        return found


async def token_for(runtime: Runtime) -> str:
    """An admin token of the demo's organization, for the play and for the visitor."""
    wish = TokenWish(HOST, story.OWNER, "demo", Role.ADMIN)
    return (await tokens.create_token(runtime, wish, SYSTEM)).secret
