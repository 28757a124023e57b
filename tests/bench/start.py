"""How long a start takes, and what an idle process costs."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from bot import telemetry
from service.accounts.store import access
from service.clock import RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database.database import open_store
from service.http import connections
from service.http.health import Readiness
from service.mergequeue.engine.outputs import Recorded, TipMoved
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queues
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import journal
from service.process import presence
from service.process.api import app
from service.process.workers.supervisor import Workers
from service.runtime import Options, Runtime
from service.vocabulary import SYSTEM, Sha
from tests.bench import door, load
from tests.harness.runtimes import a_runtime
from tests.harness.values import ValuesProvider

ENTRIES = 1_000
EVENTS = 1_000_000
BATCH = 10_000
IDLE_S = 10.0
NOTICES_AFTER_S = 2.5
"""When the comments of submissions are due."""
Row = dict[str, object]


def run(folder: Path, scale: float) -> Sequence[Row]:
    """Both subjects over one database."""
    events = max(BATCH, int(EVENTS * scale))
    asyncio.run(fill(folder, events))
    return measured(folder, events)


async def fill(folder: Path, events: int) -> None:
    """A paused queue with 1,000 pull requests, and a long journal."""
    provider = ValuesProvider()
    async with opened(folder, provider) as runtime:
        await presence.recover(runtime)
        record = await runtime.store.read(access.repository_by_ref, None, provider.ref)
        if record is None:
            raise RuntimeError("the repository was not met")
        wish = QueueRequest({"concurrency": 5}, QueueState.PAUSED)
        queue = (await queues.create(runtime, record, "main", wish, SYSTEM)).queue
        for number in range(1, ENTRIES + 1):
            pull = await provider.pull_request(provider.ref, number)
            await pull_requests.submit_fetched(
                runtime, queue, [pull], SubmitOptions(), Requester(SYSTEM)
            )
        await runtime.clock.sleep(NOTICES_AFTER_S)
        workers = Workers(runtime)
        while await workers.drain():
            pass
        moved = TipMoved(Sha("a" * 40), landed=False, adopted=False)
        one = Recorded(runtime.clock.now(), SYSTEM, moved)
        for _ in range(events // BATCH):
            await runtime.store.run(journal.append, queue.id, [one] * BATCH)


@asynccontextmanager
async def opened(folder: Path, provider: ValuesProvider) -> AsyncIterator[Runtime]:
    """A service's parts over the database of a folder, without workers."""
    clock, ids = SystemClock(), RandomIds()
    telemetry.start("json", "error", clock)
    store = await open_store(
        f"sqlite:///{folder}/headgate.db", clock=clock, ids=ids, crash_points=NoCrashes()
    )
    yield a_runtime(
        store,
        clock,
        {provider.ref.host: provider},
        translators={},
        options=Options(version="bench"),
    )
    await store.close()


async def live(folder: Path) -> None:
    """Start over the folder's database, say when ready, and idle until the input ends."""
    async with opened(folder, ValuesProvider()) as runtime:
        readiness = Readiness()
        runner = connections.runner(app.build_app(runtime, readiness), drain_s=1)
        await door.listen(runner)
        await presence.recover(runtime)
        readiness.mark("recovery", "ok")
        workers = Workers(runtime)
        task = asyncio.create_task(workers.run())
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        await workers.stop()
        await task
        await runner.cleanup()


def measured(folder: Path, events: int) -> Sequence[Row]:
    """Start a process over the database, see it ready, leave it idle."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "tests.bench.start", str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        ready_s = time.perf_counter() - began
        before = load.cpu_us(process.pid)
        asyncio.run(SystemClock().sleep(IDLE_S))
        busy = (load.cpu_us(process.pid) - before) / 1e6 / IDLE_S
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        process.stdin.close()
    resident = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return [
        {
            "goal": "V13",
            "subject": f"start to ready, {ENTRIES} live entries, {events} journal rows",
            "seconds": round(ready_s, 2),
            "seconds_goal": 3,
        },
        {
            "goal": "V14",
            "subject": "idle process",
            "resident_mib": round(resident),
            "resident_goal_mib": 150,
            "cpu_percent": round(busy * 100, 2),
            "cpu_goal_percent": 1,
        },
    ]


if __name__ == "__main__":
    uvloop.run(live(Path(sys.argv[1])))
