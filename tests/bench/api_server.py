"""The process under test of `api.py`: the service's own door, and a bare handler beside it.

Prints one line of JSON: its ports, a token, and what to ask. Both doors share the event loop;
the bare one returns the very bytes that the service answered, without doing anything. With
`changing` an entry becomes another one before every read, as a turn's commit would leave it.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import uvloop
from aiohttp import web

from bot.keys import KeyRing
from service.api import app, connections
from service.api.health import Readiness
from service.boundary import NoBoundary
from service.clock import RandomIds, SystemClock
from service.memory import Rate
from service.mergequeue.config import QueueConfig
from service.mergequeue.model import Entry, MergeQueue, RequiredSet
from service.mergequeue.outputs import Step
from service.notifications.addresses import Rules
from service.notifications.sender import HttpSender
from service.operations import tokens
from service.operations.tokens import TokenWish
from service.provider.values import (
    Repository,
)
from service.runtime import Options, Rates, Runtime
from service.store import access, queues
from service.store.database import Tx, open_store
from service.store.wakeups import Wakeups
from service.vocabulary import (
    SYSTEM,
    MergeMethod,
    RepoId,
    RepoRef,
    RequiredName,
    RequiredSource,
    Role,
)
from tests.store.builders import an_entry

REF = RepoRef("github.com", "octo", "widgets")
QUEUE_ID = 1
# Counted as always, refused never.
PLENTY = Rate(1_000_000, 1_000_000)
RATES = Rates(PLENTY, PLENTY, PLENTY, PLENTY, PLENTY)
NAMED = {"repo": {"host": REF.host, "owner": REF.owner, "name": REF.name}}


async def serve(entries: int, folder: Path, *, changing: bool = False) -> None:
    """Serve a queue of so many entries until the standard input ends."""
    clock, ids = SystemClock(), RandomIds()
    store = await open_store(
        f"sqlite:///{folder}/bench.db", clock=clock, ids=ids, boundary=NoBoundary()
    )
    runtime = Runtime(
        store=store,
        providers={},
        translators={},
        clock=clock,
        ids=ids,
        wakeups=Wakeups(clock),
        boundary=NoBoundary(),
        keys=KeyRing("the secret key of a benchmark, which keeps no secrets"),
        sender=HttpSender(Rules()),
        options=Options(version="bench", public_url="https://queue.example.org", rates=RATES),
    )
    await store.run(fill, entries)
    wish = TokenWish(REF.host, REF.owner, "bench", Role.READ)
    token = (await tokens.create_token(runtime, wish, SYSTEM)).secret
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    application = app.build_app(runtime, readiness)
    if changing:
        application.middlewares.append(changing_before_reads(runtime))
    runner = connections.runner(application, drain_s=1)
    port = await listen(runner)
    requests = {
        "getSubmittedPullRequest": {**NAMED, "targetBranch": "main", "pr": {"number": 1}},
        "getQueue": {**NAMED, "targetBranch": "main"},
    }
    bare = await bare_beside(port, token, requests)
    about = {"port": port, "bare": bare[1], "token": token, "requests": requests}
    sys.stdout.write(json.dumps(about) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()
    await bare[0].cleanup()
    await store.close()


def changing_before_reads(runtime: Runtime):
    """A middleware that changes one entry of the queue in memory, the next one each time.

    What a turn costs is another goal's matter (V4), so none is taken; the value that it would
    have committed is put where the newest value is looked for.
    """
    count = itertools.count()

    @web.middleware
    async def changed(request: web.Request, handler) -> web.StreamResponse:
        value = runtime.store.cache.newest(QUEUE_ID)
        if value is not None:
            pr = 1 + next(count) % len(value.entries)
            one = value.entries[pr]
            other = replace(one, no_batch=not one.no_batch)
            entries = {**value.entries, pr: other}
            runtime.store.cache.put(replace(value, entries=entries, version=value.version + 1))
        return await handler(request)

    return changed


async def listen(runner: web.AppRunner) -> int:
    """Serve on a free port of this machine."""
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port: int = runner.addresses[0][1]
    return port


async def bare_beside(
    port: int, token: str, requests: Mapping[str, object]
) -> tuple[web.AppRunner, int]:
    """A plain application that returns what the service answers to each request."""
    bare = web.Application()
    headers = {"x-api-token": token}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
        for name, body in requests.items():
            async with session.post(f"/v1/{name}", json=body) as answer:
                said = await answer.read()
                assert answer.status == 200, said
            bare.router.add_post(f"/v1/{name}", returning(said))
    runner = web.AppRunner(bare, access_log=None, shutdown_timeout=1)
    return runner, await listen(runner)


def returning(body: bytes):
    """A handler that does nothing but answer."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return handler


def fill(session: Tx, entries: int) -> None:
    """One repository with one queue and its entries, all waiting."""
    org = access.ensure_organization(session, REF.host, "1", REF.owner)
    seen = Repository(
        ref=REF,
        id=RepoId(REF.host, "2"),
        owner_id="1",
        default_branch="main",
        merge_methods=frozenset(MergeMethod),
        archived=False,
        url="https://github.com/octo/widgets",
    )
    repository = access.upsert_repository(session, org.id, seen)
    required = RequiredSet((RequiredName("unit"),), RequiredSource.BRANCH_PROTECTION)
    draft = MergeQueue(id=0, uid="bench", branch="main", config=QueueConfig(), required=required)
    made = queues.create(session, org.id, repository.id, draft)
    full = replace(made, entries={pr: entry(pr) for pr in range(1, entries + 1)})
    queues.save(session, made, Step(full, (), (), None, None))


def entry(pr: int) -> Entry:
    """A pull request in the line."""
    return replace(
        an_entry(pr, seq=pr, rank=pr),
        id=f"0f8c6c1e-5b0e-4f3e-9d0a-{pr:012x}",
        p_fail=0.04,
    )


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        uvloop.run(serve(int(sys.argv[1]), Path(folder), changing="changing" in sys.argv))
