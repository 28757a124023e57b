"""Find out which service, repository and branch a command is about.

An option wins over the environment, and that over the checkout in the current folder.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from bot.cli import output
from bot.cli.client import Client, Refusal
from bot.cli.exits import Exit, Failed
from bot.program import SERVICE_PORT
from bot.uploader import ci, transport
from bot.uploader.transport import Json, RequestFailed
from service.vocabulary import RepoRef

# Where `headgate serve` listens by default.
DEFAULT_URL = f"http://127.0.0.1:{SERVICE_PORT}"
DEFAULT_HOST = "github.com"
# Longest folder that an upload may name.
SOURCE_ROOT_MAX = 255
# As many queues as a repository can have, so that one page has them all.
QUEUES_MAX = 100

# [user@]host:path, as git writes remotes.
SCP_LIKE = re.compile(r"^(?:[^@/]+@)?([^:/]+):(?!//)(.+)$")


@dataclass
class Queue:
    """The queue of a branch, and the client of its service.

    Without a branch it is that of the pull request, or the repository's only queue.
    """

    client: Client
    repo: RepoRef
    given_branch: str | None
    branches: dict[int, str] = field(default_factory=dict)

    @cached_property
    def branch(self) -> str:
        """The branch; the service is asked for it if none was given. Raises as `only_branch`."""
        return self.given_branch or _only_branch(self.client, self.repo)

    def branch_of(self, number: int) -> str:
        """Return the branch on which the pull request lands. Raises Refusal, and `only_branch`."""
        if self.given_branch is not None:
            return self.given_branch
        if number not in self.branches:
            self.branches[number] = _find_branch(self.client, self.repo, number)
        return self.branches[number]

    def post(self, path: str, members: Json) -> Json:
        """Return the answer to a request about the queue. Raises as `Client.post`."""
        return self.client.post(path, queue_members(self.repo, self.branch) | members)

    def post_pull_request(self, path: str, number: int, **members: object) -> Json:
        """Return the answer to a request about one pull request; None members are left out.

        `pr` adds to the pull request's own members.
        """
        more = members.pop("pr", None)
        pull: Json = {"number": number, **(more if isinstance(more, dict) else {})}
        given = {name: value for name, value in members.items() if value is not None}
        branch = self.branch_of(number)
        return self.client.post(path, queue_members(self.repo, branch) | {"pr": pull, **given})


@dataclass
class Repository:
    """A repository's tests, and the client of their service."""

    client: Client
    repo: RepoRef

    @cached_property
    def members(self) -> Json:
        """The members of every request about tests; the organization is the token's own."""
        organization = self.client.get("/tokens/self")["organization"]
        slug = organization["slug"] if isinstance(organization, dict) else ""
        return {"repo": repository_members(self.repo), "org_url_slug": slug}

    def post(self, path: str, members: Json) -> Json:
        """Return the answer to a request about tests. Raises as `Client.post`."""
        return self.client.post(f"/flaky-tests{path}", {**self.members, **members})


def queue_members(repo: RepoRef, branch: str) -> Json:
    """Return the members of every request about a queue."""
    return {"repo": repository_members(repo), "targetBranch": branch}


def repository_members(repo: RepoRef) -> Json:
    """Return a repository as requests name it."""
    return {"host": repo.host, "owner": repo.owner, "name": repo.name}


def find_queue(
    url: str | None, token_file: Path | None, repo: str | None, branch: str | None
) -> Queue:
    """Return the queue that the options, the environment and the checkout name.

    Raises Failed(USAGE) naming what is missing.
    """
    client = find_client(url, token_file)
    return Queue(client, find_repository(repo, client), branch)


def find_tests(url: str | None, token_file: Path | None, repo: str | None) -> Repository:
    """Return the repository whose tests the command is about. Raises Failed(USAGE)."""
    client = find_client(url, token_file)
    return Repository(client, find_repository(repo, client))


def find_client(url: str | None, token_file: Path | None) -> Client:
    """Return a client for the service and the token that are named. Raises Failed(USAGE)."""
    return connect(find_url(url), find_token(token_file))


def connect(url: str, token: str) -> Client:
    """Return a client that uses the environment's proxy. Raises Failed(USAGE) if it is invalid."""
    try:
        transport.proxy_of(transport.root_of(url))
    except RequestFailed as invalid:
        raise Failed(Exit.USAGE, invalid.reason, "Name the proxy as http://HOST:PORT") from invalid
    return Client(url, token, output.log)


def find_url(url: str | None) -> str:
    """Return the service's address. Raises Failed(USAGE) for an invalid one."""
    address = url or os.environ.get("HEADGATE_URL") or DEFAULT_URL
    try:
        transport.root_of(address)
    except RequestFailed as invalid:
        raise Failed(Exit.USAGE, invalid.reason, f"Give --url {DEFAULT_URL}") from invalid
    return address


def find_token(token_file: Path | None) -> str:
    """Return the token; it has no option of its own, because process lists show arguments."""
    if token_file is not None:
        token = read_text(token_file).strip()
    else:
        token = os.environ.get("HEADGATE_TOKEN", "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise Failed(
            Exit.USAGE,
            "there is no token" if not token else "the token contains characters no token has",
            "Set HEADGATE_TOKEN or give --token-file; `headgate token create` makes one",
        )
    return token


def read_bytes(path: Path, bytes_max: int | None = None) -> bytes:
    """Return the content of a file. Raises Failed(USAGE), also if it is larger than `bytes_max`."""
    try:
        if bytes_max is not None and path.stat().st_size > bytes_max:
            raise Failed(Exit.USAGE, f"{path} is larger than {bytes_max >> 20} MiB")
        return path.read_bytes()
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{path} cannot be read ({failed.strerror})") from failed


def read_text(path: Path) -> str:
    """Return the text of a file. Raises Failed(USAGE)."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is not text"
        raise Failed(Exit.USAGE, f"{path} cannot be read ({why})") from failed


def find_repository(repo: str | None, client: Client | None = None) -> RepoRef:
    """Return the repository of the option, CI's environment, or the checkout's remote `origin`.

    If nothing names its host, it is the host of the client's token.
    """
    given = repo or os.environ.get("GITHUB_REPOSITORY")
    if given:
        needs_host = not _begins_with_host(given.split("/")) and _known_host() is None
        host = _host_of_token(client) if client is not None and needs_host else None
        return required_repository(given, host)
    ref = parse_remote(ci.git("remote", "get-url", "origin"))
    if ref is None:
        raise Failed(Exit.USAGE, "no repository is named", GIVE_REPO)
    return ref


GIVE_REPO = "Give --repo OWNER/NAME or --repo HOST/OWNER/NAME"


def required_repository(text: str, host: str | None = None) -> RepoRef:
    """Return the repository `[HOST/]OWNER/NAME`. Raises Failed(USAGE)."""
    ref = parse_repository(text, host)
    if ref is None:
        raise Failed(Exit.USAGE, f"{text!r} is not a repository", GIVE_REPO)
    return ref


def parse_repository(text: str, host: str | None = None) -> RepoRef | None:
    """Parse `[HOST/]OWNER/NAME`; `host` is that of a name without one, else as CI names it."""
    parts = text.strip("/").removesuffix(".git").split("/")
    if len(parts) < 2 or not all(parts):
        return None
    named = parts.pop(0) if _begins_with_host(parts) else host or _known_host() or DEFAULT_HOST
    return RepoRef(named.lower(), "/".join(parts[:-1]), parts[-1])


def _begins_with_host(parts: Sequence[str]) -> bool:
    """Return whether the first of three parts or more looks like a host."""
    return len(parts) > 2 and re.search(r"[.:]|^localhost$", parts[0]) is not None


def _known_host() -> str | None:
    """Return the host of repositories that the environment names: CI's own, or the setting."""
    server = os.environ.get("GITHUB_SERVER_URL")
    return (urlsplit(server).netloc if server else os.environ.get("HEADGATE_GITHUB_HOST")) or None


def _host_of_token(client: Client) -> str:
    """Return the host of the organization that the token belongs to."""
    organization = client.get("/tokens/self")["organization"]
    return str(organization["host"]) if isinstance(organization, dict) else DEFAULT_HOST


def parse_remote(address: str) -> RepoRef | None:
    """Parse a git remote: `git@host:owner/name.git`, or any address with a path."""
    if "://" in address:
        parts = urlsplit(address)
        # A port of ssh is not part of the host's name; a port of http is.
        web = parts.scheme in ("http", "https")
        host = parts.netloc.rpartition("@")[2] if web else (parts.hostname or "")
        path = parts.path
    elif match := SCP_LIKE.match(address):
        host, path = match[1], match[2]
    else:
        return None
    owner, _, name = path.strip("/").removesuffix(".git").rpartition("/")
    return RepoRef(host.lower(), owner, name) if host and owner and name else None


def find_source_root() -> str:
    """Return the checkout's root, below which reports may name files.

    Empty without a checkout, and if the path is longer than an upload may name.
    """
    root = ci.git("rev-parse", "--show-toplevel")
    return root if len(root) <= SOURCE_ROOT_MAX else ""


def _find_branch(client: Client, repo: RepoRef, number: int) -> str:
    """Return the branch of the queue that a pull request is in, or would be submitted to.

    A token that cannot submit does not find it for a pull request that was never submitted; then
    the repository's only queue counts. Raises as `only_branch`.
    """
    body: Json = {"repo": repository_members(repo), "pr": {"number": number}}
    try:
        return str(client.post("/findQueue", body)["targetBranch"])
    except Refusal as refusal:
        if refusal.problem_code != "never_submitted":
            raise
        return _only_branch(client, repo)


def _only_branch(client: Client, repo: RepoRef) -> str:
    """Return the repository's only branch with a queue.

    Raises Failed(NOT_FOUND) without any, Failed(USAGE) naming them if there are several, and
    Refusal(404) if the repository does not exist.
    """
    body: Json = {"repo": repository_members(repo), "take": QUEUES_MAX}
    queues = client.post("/listQueues", body).get("queues")
    branches = [str(each["branch"]) for each in output.objects(queues)]
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
