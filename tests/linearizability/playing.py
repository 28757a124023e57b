"""Random calls about one queue, on one or several instances, with a slow provider.

Each instance has a provider, an application and connections of its own, and does what its workers
would do from time to time. All have one database.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import aiohttp

from service.accounts import repositories, tokens
from service.accounts.tokens import TokenRequest
from service.clock import RandomIds
from service.crash_points import NoCrashes
from service.database.database import open_store
from service.http.health import Readiness
from service.limits import Rate
from service.mergequeue.operations import reconcile
from service.process.api import app
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provider.port import Provider
from service.runtime import Options, Rates, Runtime
from service.vocabulary import SYSTEM, Role
from tests.api.wire import served
from tests.harness.clock import FastClock
from tests.harness.runtimes import a_runtime
from tests.harness.values import ValuesProvider
from tests.linearizability.model import Asked, Line, after
from tests.linearizability.search import Call, order_of

Body = dict[str, Any]
"""A body, of a request or of its answer."""

PLENTY = Rate(1_000_000, 1_000_000)
RATES = Rates(PLENTY, PLENTY, PLENTY, PLENTY, PLENTY)
CLIENTS = 4
CALLS_EACH = 6
PULL_REQUESTS = (1, 2)
PAUSES_S = (0.0, 0.0, 0.2, 1.0)
"""Between two calls of a client, and after each call of the provider and of the database."""

SLOW_CALLS = ("pull_request", "required", "tip", "read_file", "vehicle_advice", "checks", "build")
REPO = ValuesProvider().ref

WEIGHTS = {
    "submitPullRequest": 6,
    "cancelPullRequest": 5,
    "createQueue": 4,
    "deleteQueue": 3,
    "getQueue": 3,
    "getSubmittedPullRequest": 2,
    "setState": 2,
    "addQueueHold": 1,
    "releaseQueueHold": 1,
    "restartTestsOnPullRequest": 1,
    "updateQueue": 1,
    "listPullRequests": 1,
    "listQueues": 1,
    "work": 3,
}
"""How often each call is made; `work` is what workers of an instance do, and answers nobody.

A history has only some of them, so that those meet more often.
"""
SHARE = 0.5
ALWAYS = frozenset({"createQueue", "submitPullRequest"})


class Slow:
    """A part of an instance that answers some calls late: the provider, or the database."""

    def __init__(self, inner: Any, clock: FastClock, *slow: str) -> None:
        self.inner = inner
        self.clock = clock
        self.slow = frozenset(slow)
        self.random = random.Random(0)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in self.slow:
            return found

        async def late(*given: Any, **named: Any) -> Any:
            answer = await found(*given, **named)
            await self.clock.sleep(self.random.choice(PAUSES_S))
            return answer

        return late


@dataclass
class Instance:
    """A process that serves the database."""

    runtime: Runtime
    slow: tuple[Slow, ...]
    url: str

    async def work(self) -> None:
        """Do what is due. Raises what no worker may raise."""
        runtime = self.runtime
        await Flow(runtime, flows.CONTROL).drain()
        await Flow(runtime, flows.NOTICES).drain()
        await reconcile.read_live_queues(runtime)
        await reconcile.read_running_checks(runtime)
        await reconcile.pass_time(runtime)


@dataclass
class History:
    """The calls of some clients, and what became of them."""

    instances: list[Instance]
    http: aiohttp.ClientSession
    token: str
    dice: random.Random
    moments: Iterator[int] = field(default_factory=itertools.count)
    calls: list[Call[Asked]] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    numbers: tuple[int, ...] = PULL_REQUESTS

    async def play(self) -> None:
        """Let all clients make their calls, each one after another."""
        plans = [random.Random(self.dice.random()) for _ in range(CLIENTS)]
        self.weights = {
            name: weight
            for name, weight in WEIGHTS.items()
            if name in ALWAYS or self.dice.random() < SHARE
        }
        self.numbers = PULL_REQUESTS[: self.dice.randint(1, len(PULL_REQUESTS))]
        async with asyncio.TaskGroup() as clients:
            for plan in plans:
                clients.create_task(self._client(plan))

    async def _client(self, plan: random.Random) -> None:
        for _ in range(CALLS_EACH):
            instance = plan.choice(self.instances)
            await instance.runtime.clock.sleep(plan.choice(PAUSES_S))
            (name,) = plan.choices(list(self.weights), list(self.weights.values()))
            if name == "work":
                await instance.work()
            elif (asked := self._asked(name, plan)) is not None:
                await self.ask(instance, asked)

    def _asked(self, name: str, plan: random.Random) -> Asked | None:
        match name:
            case "submitPullRequest":
                priority = plan.choice((None, None, 50, 200))
                return Asked(name, plan.choice(self.numbers), priority)
            case "cancelPullRequest" | "restartTestsOnPullRequest" | "getSubmittedPullRequest":
                return Asked(name, plan.choice(self.numbers))
            case "createQueue":
                return Asked(name, plan.choice(("RUNNING", "PAUSED")))
            case "setState":
                return Asked(name, plan.choice(("RUNNING", "PAUSED", "DRAINING")))
            case "updateQueue":
                return Asked(name, plan.choice(("MERGE_COMMIT", "SQUASH")))
            case "releaseQueueHold":
                return Asked(name, plan.choice(self.holds)) if self.holds else None
        return Asked(name)

    async def ask(self, instance: Instance, asked: Asked) -> None:
        """Make a call and keep its answer."""
        body: Body = {"repo": {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}}
        if asked.name != "listQueues":
            body |= {"targetBranch": "main", **_fields(asked)}
        endpoint = "updateQueue" if asked.name == "setState" else asked.name
        began = next(self.moments)
        async with self.http.post(
            f"{instance.url}/v1/{endpoint}", json=body, headers={"x-api-token": self.token}
        ) as answer:
            body = await answer.json(content_type=None)
            ended = next(self.moments)
        read = READERS.get(asked.name, _nothing) if answer.status == 200 else _code
        word, shown = read(body)
        if asked.name == "addQueueHold" and shown is not None:
            self.holds.append(shown)
        seen = replace(asked, status=answer.status, word=word, shown=shown)
        self.calls.append(Call(began, ended, seen))

    async def clear(self) -> None:
        """Take everything away, as one more client that is alone."""
        alone = self.instances[0]
        for number in PULL_REQUESTS:
            await self.ask(alone, Asked("cancelPullRequest", number))
        await self.ask(alone, Asked("getQueue"))
        await self.ask(alone, Asked("deleteQueue"))
        await alone.work()

    def is_explained(self) -> bool:
        """Whether some order of the calls gives their answers."""
        return order_of(self.calls, Line(), after) is not None

    def text(self) -> str:
        """The history as text, by the time at which the calls began."""
        calls = sorted(self.calls, key=lambda call: call.began)
        return "\n".join(f"{one.began:4} {one.ended:4}  {one.operation}" for one in calls)


def _fields(asked: Asked) -> dict[str, Any]:
    """The members of a request beside the queue."""
    match asked.name:
        case "submitPullRequest":
            given = {} if asked.priority is None else {"priority": asked.priority}
            return {"pr": {"number": asked.about}, **given}
        case "cancelPullRequest" | "restartTestsOnPullRequest" | "getSubmittedPullRequest":
            return {"pr": {"number": asked.about}}
        case "createQueue":
            # One that holds its entries without a test run, as well as one that tests them.
            return {"state": asked.about, "concurrency": 2}
        case "setState":
            return {"state": asked.about}
        case "updateQueue":
            # To change the method asks the provider. A reason alone leaves the state as it is.
            return {"mergeMethod": asked.about, "stateReason": "a release"}
        case "addQueueHold":
            return {"text": "freeze"}
        case "releaseQueueHold":
            return {"holdId": asked.about, "text": "over"}
    return {}


FINAL = frozenset({"MERGED", "FAILED", "CANCELLED"})


def _nothing(_: Body) -> tuple[str, Any]:
    return "", None


def _code(body: Body) -> tuple[str, Any]:
    return body["code"], None


def _queue(body: Body) -> tuple[str, Any]:
    entries = sorted(
        (one["prNumber"], one["priorityValue"]) for one in body["enqueuedPullRequests"]
    )
    holds = frozenset(hold["id"] for hold in body["holds"])
    return "", (body["state"], tuple(entries), holds)


def _pull_requests(body: Body) -> tuple[str, Any]:
    rows = (one for one in body["pullRequests"] if one["state"] not in FINAL)
    return "", tuple(sorted(one["prNumber"] for one in rows))


READERS: dict[str, Callable[[Body], tuple[str, Any]]] = {
    "submitPullRequest": lambda body: (body["result"], None),
    "cancelPullRequest": lambda body: (body["state"], None),
    "addQueueHold": lambda body: ("", body["hold"]["id"]),
    "getQueue": _queue,
    "listPullRequests": _pull_requests,
    "listQueues": lambda body: ("there" if body["queues"] else "none", None),
    "getSubmittedPullRequest": lambda body: (
        "ended" if body["state"] in FINAL else "open",
        None,
    ),
}
"""What the model knows of a success, by endpoint."""


@asynccontextmanager
async def instances(url: str, count: int) -> AsyncIterator[tuple[list[Instance], str]]:
    """So many instances over one database, and a token of an admin."""
    clock = FastClock(1.0)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(clock.running())
        made = [await _instance(stack, url, clock, f"instance-{nth}") for nth in range(count)]
        first = made[0]
        fresh = await ValuesProvider().repository(REPO)
        await first.runtime.store.run(repositories.upsert, fresh)
        wish = TokenRequest(REPO.host, REPO.owner, "x", Role.ADMIN)
        yield made, (await tokens.create_token(first.runtime, wish, SYSTEM)).secret


async def _instance(stack: AsyncExitStack, url: str, clock: FastClock, name: str) -> Instance:
    ids = RandomIds()
    store = await open_store(url, clock=clock, ids=ids, crash_points=NoCrashes())
    stack.push_async_callback(store.close)
    store.runner = database = Slow(store.runner, clock, "read", "write")
    provider = Slow(ValuesProvider(), clock, *SLOW_CALLS)
    runtime = a_runtime(
        store,
        clock,
        {REPO.host: cast(Provider, provider)},
        options=Options(version="0.0.7", rates=RATES),
        instance=name,
        translators={},
    )
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    port = await stack.enter_async_context(served(app.build_app(runtime, readiness)))
    return Instance(runtime, (provider, database), f"http://127.0.0.1:{port}")


async def played(url: str, count: int, seed: int) -> History:
    """Play the history of a seed on so many instances over an empty database."""
    async with instances(url, count) as (made, token), aiohttp.ClientSession() as http:
        for nth, part in enumerate(part for one in made for part in one.slow):
            part.random = random.Random(f"{seed} {nth}")
        history = History(made, http, token, random.Random(seed))
        await history.play()
        await history.clear()
        return history
