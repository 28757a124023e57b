"""The process under test of `api.py`: the service's own door, with its pages.

Prints one line of JSON: its port, and the requests. With `changing` an entry becomes another one
before every read, as a turn's commit would leave it.
"""

import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import replace

import psycopg
import uvloop
from aiohttp import web

from bot import wiring
from service.database.database import Tx
from service.http.health import Readiness
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry, MergeQueue, RequiredSet
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.state.places import indexed
from service.mergequeue.store import queues
from service.mergequeue.store.cache import QueueCache
from service.runtime import DashboardAuth, Runtime
from service.vocabulary import RequiredName, RequiredSource
from tests.bench import door
from tests.bench.door import REPO
from tests.store.builders import an_entry

QUEUE_ID = 1
REPO_NAMED = {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}
PR = {"number": 1}


async def serve(url: str, entries: int, *, changing: bool = False) -> None:
    """Serve a queue of so many entries until the standard input ends."""
    runtime = await door.runtime_at(url)
    await runtime.store.run(fill, entries)
    token = await door.reader_of(runtime, REPO)
    options = replace(runtime.options, dashboard_auth=DashboardAuth.LOOPBACK, public_url=None)
    runtime = replace(runtime, options=replace(options, main_host=REPO.host))
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    application = wiring.build_own_app(runtime, readiness)
    if changing:
        application.middlewares.append(changing_before_reads(runtime, url))
    runner, port = await door.opened(application)
    named = {"targetBranch": "main", "repo": REPO_NAMED}
    requests = {
        "getSubmittedPullRequest": posted("getSubmittedPullRequest", token, {**named, "pr": PR}),
        "getQueue": posted("getQueue", token, named),
        "queue page": f"GET /{REPO.slug}/main HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    }
    await door.stay({"port": port, "requests": requests}, runtime, runner)


def posted(endpoint: str, token: str, question: Mapping[str, object]) -> str:
    """Return a request to an endpoint as it is sent."""
    body = json.dumps(question)
    return (
        f"POST /v1/{endpoint} HTTP/1.1\r\nHost: bench\r\nx-api-token: {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )


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
            entries = indexed(value.entries)
            entries[pr] = other
            version = value.version + 1
            if tell is not None:
                tell.execute("UPDATE merge_queue SET version = %s", (version,))
            runtime.store.caches.of(QueueCache).put(
                replace(value, entries=entries, version=version)
            )
        return await handler(request)

    return changed


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
