"""The database breaks under a workload: afterwards everything lands, once, as git shows.

The fault strikes when about half of the pull requests have landed. `make test` plays a few of
them; `make soak ROWS=faults` plays forty, with every fault, on both databases, and with three
instances over PostgreSQL.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.test_two_processes import REPO, REPO_REF, open_one, seed, token
from tests.harness import needs, small_disk
from tests.harness.databases import Server
from tests.harness.processes import LOOK_EVERY_S, NeverHappened, Service, Stage, stage

IS_LONG = os.environ.get("HEADGATE_FAULTS") == "long"
COUNT = 40 if IS_LONG else 3
HANG_S = 45.0 if IS_LONG else 7.0
FULL_S = 10.0 if IS_LONG else 2.0
ENDS_WITHIN_S = 120.0
"""After the fault has ended."""
HALF_WITHIN_S = 240.0
QUICK_QUEUE = {
    "concurrency": 4,
    "batch": True,
    "batchingMinSize": 8,
    "batchingMaxWaitTimeMinutes": 0,
}
"""One after the other, forty need over three minutes without any fault: CI takes 3 s for each."""
INSTANCES = (1, 3) if IS_LONG else (1,)
SQLITE_MEGABYTES = 100 if IS_LONG else 12

SWEEPS = {
    "HEADGATE_PERIOD_RUN_CHECKS_S": "5",
    "HEADGATE_PERIOD_QUEUES_S": "15",
    "HEADGATE_PERIOD_IDLE_S": "15",
    "HEADGATE_PERIOD_REDELIVERY_S": "10",
    "HEADGATE_PERIOD_COMMENTS_S": "30",
    "HEADGATE_PERIOD_ORPHANS_S": "10",
}
"""More rarely than other stories sweep: three instances that read forty pull requests each second
keep the sandbox busy, and nothing lands for want of its answers."""

long_only = pytest.mark.skipif(not IS_LONG, reason="make soak ROWS=faults plays it")
never_in_time = pytest.mark.timeout(900)


@dataclass(slots=True)
class Scene:
    """A workload under way: the stage, the services, the pull requests."""

    set_up: Stage
    services: list[Service]
    numbers: list[int]

    async def comes_down_to(self, count: int, within_s: float) -> float:
        """Wait until at most `count` pull requests are open; return the seconds it took.

        Raises NeverHappened after `within_s`.
        """
        clock = self.set_up.clock
        started = clock.monotonic_s()
        while len(left := await self.open_ones()) > count:
            if clock.monotonic_s() > started + within_s:
                raise NeverHappened(f"not landed: {left}; log: {self.services[0].log}")
            await clock.sleep(LOOK_EVERY_S * 4)
        return clock.monotonic_s() - started

    async def open_ones(self) -> list[int]:
        """Return the numbers still open: one request, so that looking slows no landing down."""
        pulls = await self.set_up.rest(f"repos/{REPO}/pulls?state=open&per_page=100")
        return [pull["number"] for pull in pulls if pull["number"] in self.numbers]


@asynccontextmanager
async def workload(
    folder: Path, record: Callable[[str], None], url: str, instances: int
) -> AsyncIterator[Scene]:
    """Pull requests of which half have landed; in the end each has landed once, as git shows.

    `record` takes how long it took.
    """
    async with stage(folder, url, speed=1) as set_up:
        await seed(set_up)
        set_up.environment.update(SWEEPS)
        services = [await set_up.start() for _ in range(instances)]
        try:
            numbers = [await open_one(set_up, f"file-{number}") for number in range(COUNT)]
            await submit(set_up, services[0], numbers)
            scene = Scene(set_up, services, numbers)
            half_s = await scene.comes_down_to(COUNT - COUNT // 2, HALF_WITHIN_S)
            left = len(await scene.open_ones())
            yield scene
            took_s = await scene.comes_down_to(0, ENDS_WITHIN_S)
            await set_up.swept(REPO)
            assert sorted(await landed(set_up)) == sorted(numbers)
            record(f"half in {half_s:.0f} s, the last {left} in {took_s:.0f} s")
        finally:
            for process in set_up.processes:
                process.kill()
                process.join()


Play = Callable[[str, int], AbstractAsyncContextManager[Scene]]


@pytest.fixture
def play(
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> Play:
    """Play the workload over a database, with so many instances."""

    def record(measured: str) -> None:
        record_property("found", f"{request.node.name}: {measured}")

    return partial(workload, tmp_path, record)


async def submit(set_up: Stage, service: Service, numbers: list[int]) -> None:
    """Submit all by the API, to a queue that starts when it has all of them.

    Comments would not do: one person's are limited to ten a minute.
    """
    secret = await token(set_up)
    body = {"repo": REPO_REF, "targetBranch": "main"}
    assert (await set_up.api(service, "createQueue", secret, **body, **QUICK_QUEUE))[0] == 200
    assert (await set_up.api(service, "updateQueue", secret, **body, state="PAUSED"))[0] == 200
    for number in numbers:
        path, pull = "submitPullRequest", {"number": number}
        assert (await set_up.api(service, path, secret, **body, pr=pull))[0] == 200
    assert (await set_up.api(service, "updateQueue", secret, **body, state="RUNNING"))[0] == 200


async def landed(set_up: Stage) -> list[int]:
    """Numbers of the pull requests in the first-parent history of `main`, by git alone."""
    clone = set_up.folder / "clone"
    await git("clone", "-q", "--bare", f"{set_up.sandbox_url}/{REPO}.git", str(clone))
    said = await git("-C", str(clone), "log", "--first-parent", "--format=%s", "main")
    return [int(line.rpartition("(#")[2][:-1]) for line in said.splitlines() if line.endswith(")")]


async def git(*words: str) -> str:
    """What git prints. Raises AssertionError when it fails."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("git", *words, stdout=pipe, stderr=pipe)
    out, trouble = await process.communicate()
    assert process.returncode == 0, trouble.decode()
    return out.decode()


Strike = Callable[[Scene, Server], Awaitable[None]]


async def no_fault(_scene: Scene, _server: Server) -> None:
    """Break nothing: what the others are compared with."""


async def restart_fast(scene: Scene, server: Server) -> None:
    """The server ends its sessions and comes back after two seconds."""
    await asyncio.to_thread(server.halt, "fast")
    await scene.set_up.clock.sleep(2)
    await asyncio.to_thread(server.begin)


async def crash(scene: Scene, server: Server) -> None:
    """The server ends without a word, and recovers."""
    await asyncio.to_thread(server.halt, "immediate")
    await scene.set_up.clock.sleep(1)
    await asyncio.to_thread(server.begin)


async def hang(scene: Scene, server: Server) -> None:
    """No process of the server runs for a while."""
    with server.hung():
        await scene.set_up.clock.sleep(HANG_S)


async def kill_one(scene: Scene, _server: Server) -> None:
    """One service ends without a word, and is started again."""
    await killed_and_started(scene)


async def killed_and_started(scene: Scene) -> None:
    """`kill -9` and a new start."""
    scene.services[0].process.kill()
    scene.services[0].process.join()
    scene.services[0] = await scene.set_up.start()


@never_in_time
@pytest.mark.parametrize("instances", INSTANCES)
@pytest.mark.parametrize(
    "strike",
    [
        pytest.param(no_fault, marks=long_only),
        pytest.param(restart_fast, marks=long_only),
        crash,
        pytest.param(hang, marks=long_only),
        pytest.param(kill_one, marks=long_only),
    ],
    ids=lambda strike: strike.__name__,
)
@pytest.mark.fault(
    "PostgreSQL ends at once, restarts, or hangs, under a workload",
    holds="all land once, by git",
    within="2 min",
)
async def test_everything_lands_once_after_the_server_broke(
    outage_url: str,
    own_postgres: Server,
    play: Play,
    strike: Strike,
    instances: int,
) -> None:
    async with play(outage_url, instances) as scene:
        await strike(scene, own_postgres)


@long_only
@never_in_time
@pytest.mark.parametrize("instances", INSTANCES)
@pytest.mark.fault(
    "the disk of PostgreSQL is full, under a workload",
    holds="all land once, by git",
    within="2 min",
)
async def test_everything_lands_once_after_the_servers_disk_was_full(
    small_postgres: tuple[Server, small_disk.SmallDisk],
    play: Play,
    instances: int,
) -> None:
    server, disk = small_postgres
    with server.database() as url:
        async with play(url, instances) as scene:
            disk.fill()
            await scene.set_up.clock.sleep(FULL_S)
            disk.free()
            # Without room for its log it may have ended itself.
            await asyncio.to_thread(server.revive)


@never_in_time
@pytest.mark.fault(
    "the disk of a SQLite file is full, under a workload",
    holds="all land once, by git",
    within="2 min",
)
async def test_everything_lands_once_after_the_disk_of_a_sqlite_file_was_full(
    tmp_path: Path, play: Play
) -> None:
    needs.needs("mount")
    with small_disk.mounted(tmp_path / "disk", SQLITE_MEGABYTES) as disk:
        url = f"sqlite:///{disk.folder}/headgate.db"
        async with play(url, 1) as scene:
            disk.fill()
            await scene.set_up.clock.sleep(FULL_S)
            disk.free()


@long_only
@never_in_time
@pytest.mark.parametrize("kills", [0, 5])
@pytest.mark.fault(
    "`kill -9` and start, five times, under a workload",
    holds="all land once, by git",
    within="2 min",
)
async def test_everything_lands_once_after_a_service_over_sqlite_was_killed(
    tmp_path: Path, play: Play, kills: int
) -> None:
    async with play(f"sqlite:///{tmp_path}/headgate.db", 1) as scene:
        for _ in range(kills):
            await killed_and_started(scene)
