"""Which service, repository and branch a command means.

Option first, then the environment, then the checkout one stands in (UX.md 5).
"""

import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import JsonValue

from bot.cli import client, output
from bot.cli.client import Client, Json
from bot.cli.exits import Exit, Failed
from bot.uploader import sending
from bot.uploader.sending import Unsent
from service.clock import SystemClock
from service.vocabulary import RepoRef

# Where `headgate serve` listens when nothing is set.
DEFAULT_URL = "http://127.0.0.1:8642"
DEFAULT_HOST = "github.com"
GIT_TIMEOUT_S = 5
# API.md 8.4.
SOURCE_ROOT_MAX = 255

# As many as a repository can have (API.md 5.2), so one page holds them all.
QUEUES_MAX = 100

# user@host:path, and scheme://[user@]host[:port]/path, as git writes remotes.
SCP_LIKE = re.compile(r"^(?:[^@/]+@)?([^:/]+):(?!//)(.+)$")


@dataclass(frozen=True, slots=True)
class Place:
    """One repository of one service; `branch` None: the only queue there is."""

    url: str
    token: str
    repo: RepoRef
    branch: str | None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Opened"]:
        """The place with a connection and its branch found out.

        Raises Failed(USAGE) when several branches have a queue and none was named.
        """
        connecting = client.connected(self.url, self.token, SystemClock(), output.told)
        async with connecting as connection:
            branch = self.branch or await only_branch(connection, self.repo)
            yield Opened(connection, self.repo, branch)


@dataclass(frozen=True, slots=True)
class Opened:
    """A queue, and a connection to the service that has it."""

    client: Client
    repo: RepoRef
    branch: str

    async def post_about(self, path: str, number: int, **members: JsonValue) -> Json:
        """The answer to a request about one pull request; members that are None are left out.

        `pr` may add to the pull request's own members.
        """
        more = members.pop("pr", None)
        pr: Json = {"number": number, **(more if isinstance(more, dict) else {})}
        given = {name: value for name, value in members.items() if value is not None}
        body: Json = {**target(self.repo, self.branch), "pr": pr, **given}
        return await self.client.post(path, body)


def target(repo: RepoRef, branch: str) -> Json:
    """The members that every request about a queue has (API.md 1.4)."""
    return {"repo": named(repo), "targetBranch": branch}


def named(repo: RepoRef) -> Json:
    """A repository as requests name it."""
    return {"host": repo.host, "owner": repo.owner, "name": repo.name}


def find(url: str | None, token_file: Path | None, repo: str | None, branch: str | None) -> Place:
    """The place that the options, the environment and the checkout name.

    Raises Failed(USAGE) that says what is missing and how to give it.
    """
    return Place(find_url(url), find_token(token_file), find_repository(repo), branch)


def find_url(url: str | None) -> str:
    """The service's address as it was given. Raises Failed(USAGE) when it is none."""
    found = url or os.environ.get("HEADGATE_URL") or DEFAULT_URL
    try:
        sending.address_of(found)
    except Unsent as odd:
        raise Failed(Exit.USAGE, odd.why, f"Give --url {DEFAULT_URL}") from odd
    return found


def find_token(token_file: Path | None) -> str:
    """The token; there is no option for it, because arguments show in process lists."""
    if token_file is not None:
        try:
            token = token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as failed:
            why = failed.strerror if isinstance(failed, OSError) else "it is no text"
            raise Failed(Exit.USAGE, f"{token_file} cannot be read ({why})") from failed
    else:
        token = os.environ.get("HEADGATE_TOKEN", "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise Failed(
            Exit.USAGE,
            "there is no token" if not token else "the token holds characters no token has",
            "Set HEADGATE_TOKEN or give --token-file; `headgate token create` makes one",
        )
    return token


def find_repository(repo: str | None) -> RepoRef:
    """The repository named by the option, by CI's environment, or by the checkout's remote."""
    given = repo or os.environ.get("GITHUB_REPOSITORY")
    found = parse_repository(given) if given else parse_remote(remote_origin())
    if found is None:
        raise Failed(
            Exit.USAGE,
            f"{given!r} names no repository" if given else "no repository is named",
            "Give --repo OWNER/NAME or --repo HOST/OWNER/NAME",
        )
    return found


def parse_repository(text: str) -> RepoRef | None:
    """`[HOST/]OWNER/NAME`; the first part is a host when it looks like one and two more follow."""
    parts = text.strip("/").removesuffix(".git").split("/")
    if len(parts) < 2 or not all(parts):
        return None
    is_host = len(parts) > 2 and re.search(r"[.:]|^localhost$", parts[0])
    host = parts.pop(0) if is_host else default_host()
    return RepoRef(host.lower(), "/".join(parts[:-1]), parts[-1])


def default_host() -> str:
    """The host of a repository named without one: CI's own, else the public one."""
    server = os.environ.get("GITHUB_SERVER_URL")
    named = urlsplit(server).netloc if server else os.environ.get("HEADGATE_GITHUB_HOST")
    return named or DEFAULT_HOST


def parse_remote(address: str) -> RepoRef | None:
    """The repository behind a git remote: `git@host:owner/name.git` or any address with a path."""
    if "://" in address:
        parts = urlsplit(address)
        # A port of ssh is not part of the host's name; one of http is.
        web = parts.scheme in ("http", "https")
        host = parts.netloc.rpartition("@")[2] if web else (parts.hostname or "")
        path = parts.path
    elif match := SCP_LIKE.match(address):
        host, path = match[1], match[2]
    else:
        return None
    owner, _, name = path.strip("/").removesuffix(".git").rpartition("/")
    return RepoRef(host.lower(), owner, name) if host and owner and name else None


def remote_origin() -> str:
    """The address of the remote `origin` of the checkout one stands in; empty without one."""
    return answer_of_git("remote", "get-url", "origin")


def find_root() -> str:
    """The folder of the checkout one stands in, which reports may name files below.

    Empty without a checkout, or where its path is longer than an upload may say.
    """
    root = answer_of_git("rev-parse", "--show-toplevel")
    return root if len(root) <= SOURCE_ROOT_MAX else ""


def answer_of_git(*words: str) -> str:
    """Return the line that git prints; empty if git fails."""
    try:
        done = subprocess.run(
            ["git", *words],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


async def only_branch(connection: Client, repo: RepoRef) -> str:
    """The repository's only branch with a queue.

    Raises Failed: NOT_FOUND without any, USAGE naming them when there are several; and
    Refusal(404) when there is no such repository.
    """
    answer = await connection.post("/listQueues", {"repo": named(repo), "take": QUEUES_MAX})
    queues = answer.get("queues")
    rows = queues if isinstance(queues, list) else []
    branches = [str(row["branch"]) for row in rows if isinstance(row, dict)]
    if len(branches) == 1:
        return branches[0]
    if not branches:
        raise Failed(
            Exit.NOT_FOUND,
            f"{repo.slug} has no queue",
            "Make one: headgate queue create --branch BRANCH",
        )
    raise Failed(
        Exit.USAGE,
        f"{repo.slug} has several queues: {', '.join(branches)}",
        "Name one with --branch",
    )
