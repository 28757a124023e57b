"""The process under test of `metrics.py`: the service's own door.

Prints one line of JSON: its ports, a token, the path to ask, the size of the answer.
"""

import sys
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

import aiohttp
import uvloop

from service.database.database import Tx
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import DEFAULT_PRIORITY, MergeQueue
from service.mergequeue.engine.outputs import EntrySubmitted, Recorded, Step
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.store import figures, journal, queues
from service.metrics.facts import BOUNDS_S, MetricFact
from service.metrics.queue_families import ROLLING
from service.process.figures import ZEROS
from service.vocabulary import SYSTEM, QueueRef, RepoRef, Sha
from tests.bench import door
from tests.bench.api_server import entry

HOST = "github.com"
PATH = "/v1/getMergeQueueMetrics"
QUEUES = 50
ENTRIES = 20
EVENTS_A_MONTH = 2_000
RECENT = 100
"""Facts of a queue in the last hour: a few dozen pull requests."""


async def serve(url: str, months: int) -> None:
    """Serve the pages of 50 queues until the standard input ends."""
    runtime = await door.runtime_at(url)
    await runtime.store.run(fill, runtime.clock.now(), months)
    token = await door.reader_of(runtime, RepoRef(HOST, "octo", "widgets"))
    runner, port = await door.opened(door.application(runtime))
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        session.get(PATH, headers={"x-api-token": token}) as answer,
    ):
        said = await answer.read()
        assert answer.status == 200, said
    about = {"port": port, "token": token, "path": PATH, "bytes": len(said)}
    await door.stay(about, runtime, runner)


def fill(session: Tx, now: datetime, months: int) -> None:
    """One organization with 50 queues, what waits in them, and what has happened to them."""
    for number in range(QUEUES):
        repo = RepoRef(HOST, "octo", f"widgets-{number}")
        record = door.met(session, repo, number + 2)
        draft = MergeQueue(id=0, uid=f"bench-{number}", branch="main", config=QueueConfig())
        empty = queues.create(session, record.org_id, record.id, draft)
        waiting = {pr: replace(entry(pr), id=f"{number}-{pr}") for pr in range(1, ENTRIES + 1)}
        queues.save(session, empty, Step(replace(empty, entries=waiting), (), (), None, None))
        ref = QueueRef(empty.id, record.org_id, record.id, repo, "main")
        remember(session, ref, now, months)


def remember(session: Tx, ref: QueueRef, now: datetime, months: int) -> None:
    """Events, sums and recent facts of one queue."""
    count = EVENTS_A_MONTH * months
    step = timedelta(days=30 * months) / count
    events = [
        Recorded(
            now - n * step,
            SYSTEM,
            EntrySubmitted(n, f"e{n}", Sha("a" * 40), REASON, DEFAULT_PRIORITY),
        )
        for n in range(count)
    ]
    journal.append(session, ref.id, events)
    figures.add(session, ref, facts(), now - timedelta(days=1))
    rolling = [fact for fact in facts() if fact.kind in ROLLING]
    for n in range(RECENT):
        at = now - timedelta(hours=1) * (n / RECENT)
        figures.add(session, ref, [rolling[n * 7 % len(rolling)]], at)


REASON = Reason.API_REQUESTED


def facts() -> list[MetricFact]:
    """Facts of many kinds and durations: a month knows nearly all that can happen."""
    types, conclusions = ("main", "bisection"), ZEROS["headgate_pull_requests_left_total"]
    return [
        *(
            MetricFact("left", (queue_type, *ended), bound * 1000)
            for queue_type, ended, bound in product(types, conclusions[:6], BOUNDS_S)
        ),
        *(
            MetricFact(kind, (queue_type,), bound * 1000)
            for kind, queue_type, bound in product(("waited", "tested"), types, BOUNDS_S)
        ),
        *(
            MetricFact("stayed_in", (queue_type, state), bound * 1000)
            for queue_type, state, bound in product(types, ("pending", "testing"), BOUNDS_S)
        ),
    ]


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2])))
