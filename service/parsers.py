"""Run parsers of foreign bytes in processes of their own, each with a limit of time and memory.

Each job has its own process, so a file that takes too much ends that process and nothing else. A
tenant has at most two of the three places, and free places go to the waiting tenants in turn: a
tenant with many slow files delays itself. Which parsers run here: docs/design/security.md 8.
"""

import asyncio
import io
import pickle
import signal
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

import service
from service import parser_process
from service.clock import Clock
from service.errors import Overloaded
from service.parser_process import EXIT_NO_MEMORY, Job
from service.vocabulary import RepoRef

# Two cores are enough for the files of one tenant, and each place may take 1 GiB.
PLACES = 3
TENANT_PLACES = 2
WAIT_S = 30.0
RETRY_AFTER_S = 5
# The time limit counts computing alone; this one ends a process that does not get on.
ANSWER_S = 300.0
TROUBLE_CHARS_MAX = 2_000

# The process gets the code that runs here and nothing of the environment, where secrets are.
ENVIRONMENT = {"PYTHONPATH": str(Path(service.__file__).parents[1])}
# -P: code comes from there alone, never from the current folder.
# Not -m: what is defined in a main module is of no use to another process.
# Its hundreds of thousands of values go with its memory: to take them apart one by one would cost
# a tenth of its time.
PROGRAM = f"import os; from {parser_process.__name__} import main; os._exit(main())"
COMMAND = (sys.executable, "-P", "-c", PROGRAM)

Tenant = tuple[str, str]
"""Host and owner of a repository."""

log = structlog.get_logger()


class Stopped(Exception):
    """The parser did not end by itself; `why` completes a sentence: "took more than 5 s"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Parsers:
    """The places for parser processes of this process, shared by all tenants."""

    def __init__(self) -> None:
        self._running: Counter[Tenant] = Counter()
        # In the order in which tenants get the next free place.
        self._waiting: dict[Tenant, deque[asyncio.Future[None]]] = {}

    async def run(self, repo: RepoRef, job: Job, clock: Clock) -> Iterator[object]:
        """Return the pieces that a parser makes of a file of this repository, in order.

        The pieces are unpickled when they are asked for; many of them belong on a thread.
        Raises Overloaded after 30 s without a free place, Stopped.
        """
        async with self.place(repo, clock):
            return _pieces_of(await _answer_to(job))

    @asynccontextmanager
    async def place(self, repo: RepoRef, clock: Clock) -> AsyncIterator[None]:
        """Have one of the places as long as this lasts. Raises Overloaded after 30 s."""
        tenant = (repo.host, repo.owner.lower())
        await self._take(tenant, clock)
        try:
            yield
        finally:
            self._give_back(tenant)

    async def _take(self, tenant: Tenant, clock: Clock) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        self._admit()
        if turn.done():
            return
        timer = asyncio.ensure_future(clock.sleep(WAIT_S))
        is_taken = False
        try:
            await asyncio.wait({turn, timer}, return_when=asyncio.FIRST_COMPLETED)
            is_taken = turn.done()
        finally:
            timer.cancel()
            if not is_taken:
                self._leave(tenant, turn)
        if not is_taken:
            raise Overloaded("Too many files are being read.", retry_after_s=RETRY_AFTER_S)

    def _leave(self, tenant: Tenant, turn: "asyncio.Future[None]") -> None:
        """Give up waiting; a place that was given at this moment is free again."""
        if turn.done():
            self._give_back(tenant)
            return
        queue = self._waiting[tenant]
        queue.remove(turn)
        if not queue:
            del self._waiting[tenant]

    def _give_back(self, tenant: Tenant) -> None:
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        self._admit()

    def _admit(self) -> None:
        """Give the free places to those that wait, to one tenant after the other."""
        while self._running.total() < PLACES:
            tenants = (each for each in self._waiting if self._running[each] < TENANT_PLACES)
            tenant = next(tenants, None)
            if tenant is None:
                return
            queue = self._waiting.pop(tenant)
            queue.popleft().set_result(None)
            if queue:
                self._waiting[tenant] = queue
            self._running[tenant] += 1


async def _answer_to(job: Job) -> bytes:
    """Return what a process of its own wrote about a job. Raises Stopped."""
    sent = await asyncio.to_thread(pickle.dumps, job, pickle.HIGHEST_PROTOCOL)
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT
    )
    try:
        async with asyncio.timeout(ANSWER_S):
            said, trouble = await child.communicate(sent)
    except TimeoutError:
        raise Stopped(f"took more than {ANSWER_S:.0f} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode == 0:
        return said
    if child.returncode == -signal.SIGXCPU:
        raise Stopped(f"took more than {job.limits.computing_s} s")
    if child.returncode == EXIT_NO_MEMORY:
        raise Stopped(f"took more than {job.limits.memory_bytes >> 20} MiB of memory")
    words = trouble.decode(errors="replace")[-TROUBLE_CHARS_MAX:]
    # The process that reads foreign files died; what it read counts as unreadable.
    log.error("parser_failed", code=child.returncode, said=words)
    raise Stopped("failed")


def _pieces_of(said: bytes) -> Iterator[object]:
    """Return the pieces again: our own code pickled them a moment ago, from plain values."""
    source = io.BytesIO(said)
    while source.tell() < len(said):
        yield pickle.load(source)  # noqa: S301
