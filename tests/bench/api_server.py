"""The process under test of `api.py`: the service's own door, and a bare handler beside it.

Prints one line of JSON: its ports, a token, and what to ask. Both doors share the event loop;
the bare one returns the very bytes that the service answered, without doing anything. With
`changing` an entry becomes another one before every read, as a turn's commit would leave it.
"""

import itertools
import sys
from collections.abc import Mapping
from dataclasses import replace

import aiohttp
import psycopg
import uvloop
from aiohttp import web

from service.database.database import Tx
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry, MergeQueue, RequiredSet
from service.mergequeue.engine.outputs import Step
from service.mergequeue.store import queues
from service.mergequeue.store.cache import QueueCache
from service.runtime import Runtime
from service.vocabulary import RequiredName, RequiredSource
from tests.bench import door
from tests.bench.door import REPO
from tests.store.builders import an_entry

QUEUE_ID = 1
NAMED = {"repo": {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}}


async def serve(url: str, entries: int, *, changing: bool = False) -> None:
    """Serve a queue of so many entries until the standard input ends."""
    runtime = await door.runtime_at(url)
    await runtime.store.run(fill, entries)
    token = await door.reader_of(runtime, REPO)
    application = door.application(runtime)
    if changing:
        application.middlewares.append(changing_before_reads(runtime, url))
    runner, port = await door.opened(application)
    requests = {
        "getSubmittedPullRequest": {**NAMED, "targetBranch": "main", "pr": {"number": 1}},
        "getQueue": {**NAMED, "targetBranch": "main"},
    }
    bare = await door.bare(await echoes(port, token, requests))
    about = {"port": port, "bare": bare[1], "token": token, "requests": requests}
    await door.stay(about, runtime, runner, bare[0])


def changing_before_reads(runtime: Runtime, url: str):
    """A middleware that changes one entry of the queue in memory, the next one each time.

    What a turn costs is another goal's matter (V4), so none is taken; the value that it would
    have committed is put where the newest value is looked for, and PostgreSQL, where that is
    asked which version is the newest, is told so.
    """
    count = itertools.count()
    tell = None if runtime.store.dialect == "sqlite" else psycopg.connect(url, autocommit=True)

    @web.middleware
    async def changed(request: web.Request, handler) -> web.StreamResponse:
        value = runtime.store.caches.of(QueueCache).newest(QUEUE_ID)
        if value is not None:
            pr = 1 + next(count) % len(value.entries)
            one = value.entries[pr]
            other = replace(one, no_batch=not one.no_batch)
            entries = {**value.entries, pr: other}
            version = value.version + 1
            if tell is not None:
                tell.execute("UPDATE merge_queue SET version = %s", (version,))
            runtime.store.caches.of(QueueCache).put(
                replace(value, entries=entries, version=version)
            )
        return await handler(request)

    return changed


async def echoes(port: int, token: str, requests: Mapping[str, object]) -> web.Application:
    """A plain application that returns what the service answers to each request."""
    bare = web.Application()
    headers = {"x-api-token": token}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
        for name, body in requests.items():
            async with session.post(f"/v1/{name}", json=body) as answer:
                said = await answer.read()
                assert answer.status == 200, said
            bare.router.add_post(f"/v1/{name}", returning(said))
    return bare


def returning(body: bytes):
    """A handler that does nothing but answer."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return handler


def fill(session: Tx, entries: int) -> None:
    """One repository with one queue and its entries, all waiting."""
    repository = door.met(session)
    required = RequiredSet((RequiredName("unit"),), RequiredSource.BRANCH_PROTECTION)
    draft = MergeQueue(id=0, uid="bench", branch="main", config=QueueConfig(), required=required)
    made = queues.create(session, repository.org_id, repository.id, draft)
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
    uvloop.run(serve(sys.argv[1], int(sys.argv[2]), changing="changing" in sys.argv))
