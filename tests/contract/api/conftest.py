"""An instance to ask, and the words to ask it with."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict

from tests.contract import instance as instances
from tests.contract.api import described
from tests.contract.instance import Instance


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    json: Any

    def is_problem(self, status: int, code: str) -> bool:
        """Whether it is this refusal, in the form of docs/design/http.md 7."""
        assert self.headers["Content-Type"] == "application/problem+json; charset=utf-8"
        always = ["type", "title", "status", "code", "detail", "request_id"]
        assert list(self.json)[:6] == always
        assert self.json["status"] == self.status
        assert self.json["request_id"] == self.headers["X-Request-Id"]
        assert self.json["type"].endswith(f"/docs/errors/{self.json['code']}")
        return (self.status, self.json["code"]) == (status, code)


class Client:
    """Asks one instance; with the admin's token unless told otherwise."""

    def __init__(self, session: aiohttp.ClientSession, instance: Instance) -> None:
        self._session = session
        self.instance = instance

    async def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> Answer:
        """Any request; `token` "" sends none, bytes go as JSON unless told otherwise."""
        headers = CIMultiDict(more.pop("headers", {}))
        if "data" in more and "skip_auto_headers" not in more:
            headers.setdefault("Content-Type", "application/json")
        sent = self.instance.admin_token if token is None else token
        if sent:
            headers.setdefault("x-api-token", sent)
        url = self.instance.url + path
        async with self._session.request(method, url, headers=headers, **more) as response:
            body = await response.read()
            kind = response.headers.get("Content-Type", "")
            is_json = "json" in kind and method != "HEAD"
            described.check(method, path, response.status, kind, body)
            json = await response.json(content_type=None) if is_json else None
            return Answer(response.status, response.headers, body, json)

    async def post(self, name: str, body: Any = None, token: str | None = None) -> Answer:
        """One of the endpoints under /v1 by its name."""
        return await self.ask("POST", f"/v1/{name}", token, json=body)

    async def done(self, name: str, body: Any, token: str | None = None) -> Any:
        """As `post`; what it answered, which must be a success."""
        answer = await self.post(name, body, token)
        assert answer.status == 200, answer.json
        assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
        return answer.json

    def named(self, branch: str = "main", **more: Any) -> dict[str, Any]:
        """The fields that every request about a queue carries."""
        it = self.instance
        repo = {"host": it.host, "owner": it.owner, "name": it.repo}
        return {"repo": repo, "targetBranch": branch, **more}


@pytest.fixture(scope="package")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """The instance under test: one for the tests of this folder that a worker plays.

    It goes on working while nobody asks it, so it ends with the folder.
    """
    elsewhere = instances.named_by_environment()
    if elsewhere is not None:
        yield elsewhere
        return
    with instances.started(tmp_path_factory.mktemp("instance")) as own:
        yield own


@pytest.fixture
async def client(instance: Instance) -> AsyncIterator[Client]:
    """Whoever asks."""
    timeout = aiohttp.ClientTimeout(total=40)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield Client(session, instance)


@pytest.fixture
def world(instance: Instance) -> Instance:
    """The instance, for tests that also need the world around it."""
    if instance.world is None:
        pytest.skip("needs an instance of our own: unset HEADGATE_CONTRACT_URL")
    return instance


@dataclass(frozen=True)
class Queue:
    """A queue of a test's own, and its requests."""

    client: Client
    world: Instance
    branch: str

    def named(self, **more: Any) -> dict[str, Any]:
        """A request about this queue."""
        return self.client.named(self.branch, **more)

    def about(self, number: int | str, **more: Any) -> dict[str, Any]:
        """A request about a pull request of this queue."""
        return self.named(pr={"number": number}, **more)

    async def submitted(self, **more: Any) -> int:
        """A new pull request that is in the queue and does all it can; its number."""
        number = await self.world.open_pull_request(self.branch)
        await self.client.done("submitPullRequest", self.about(number, **more))
        await self.world.settle()
        return number

    async def record(self, number: int, **more: Any) -> Any:
        """The pull request as it is now."""
        return await self.client.done("getSubmittedPullRequest", self.about(number, **more))

    async def get(self) -> Any:
        """The queue as it is now."""
        return await self.client.done("getQueue", self.named())


async def made(client: Client, world: Instance, **settings: Any) -> Queue:
    """A queue on a branch of its own."""
    queue = Queue(client, world, await world.new_branch())
    await client.done("createQueue", queue.named(**settings))
    return queue


async def removed(queue: Queue) -> None:
    """Let the queue go, because a repository has room for a hundred."""
    answer = await queue.client.post("getQueue", queue.named())
    for entry in answer.json.get("enqueuedPullRequests", ()):
        await queue.client.post("cancelPullRequest", queue.about(entry["prNumber"]))
    await queue.client.post("deleteQueue", queue.named())


@pytest.fixture
async def queue(client: Client, world: Instance) -> AsyncIterator[Queue]:
    """A queue whose test runs never end: nobody reports the second check."""
    required = ["unit", "gate"]
    own = await made(client, world, requiredStatuses=required, checkStartTimeoutMinutes=1440)
    yield own
    await removed(own)


@pytest.fixture
async def open_queue(client: Client, world: Instance) -> AsyncIterator[Queue]:
    """A queue that lands whatever lacks the file `broken.txt`."""
    own = await made(client, world, requiredStatuses=["unit"])
    yield own
    await removed(own)
