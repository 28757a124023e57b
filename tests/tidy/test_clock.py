"""The time of stories jumps to what is due next, and waits for what works meanwhile."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from service.clock import RandomIds
from service.crash_points import NoCrashes
from service.database import database
from tests.harness.clock import FastClock, JumpingLoop

pytestmark = pytest.mark.jumping

A_DAY_S = 86_400.0
SLEEPER = (sys.executable, "-c", "import time; time.sleep({})")


def sleeper(seconds: float) -> list[str]:
    """A command that sleeps for so long, in seconds of this machine."""
    return [part.format(seconds) for part in SLEEPER]


async def test_a_wait_without_work_takes_no_time_of_the_machine() -> None:
    loop, began_s = asyncio.get_running_loop(), time.monotonic()
    before_s = loop.time()
    await FastClock(1).sleep(A_DAY_S)
    assert loop.time() - before_s == pytest.approx(A_DAY_S)
    assert time.monotonic() - began_s < A_DAY_S / 1000


async def test_what_is_due_first_comes_first() -> None:
    order: list[int] = []

    async def after(seconds: int) -> None:
        await FastClock(1).sleep(seconds)
        order.append(seconds)

    await asyncio.gather(*(after(seconds) for seconds in (300, 1, 20)))
    assert order == [1, 20, 300]


async def test_a_timer_waits_for_a_child_and_for_a_thread_that_work() -> None:
    child = await asyncio.create_subprocess_exec(*sleeper(0.3))
    async with asyncio.timeout(A_DAY_S):
        assert await child.wait() == 0
    async with asyncio.timeout(A_DAY_S):
        assert await asyncio.to_thread(sum, range(3_000_000)) > 0


async def test_a_timer_waits_for_a_thread_that_itself_waits_for_something() -> None:
    """As one does for the interpreter, or for the answer of a database server."""
    async with asyncio.timeout(A_DAY_S):
        await asyncio.to_thread(time.sleep, 0.3)


async def test_a_timer_waits_for_a_write(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    clock, crash_points = FastClock(1), NoCrashes()
    store = await database.open_store(url, clock=clock, ids=RandomIds(), crash_points=crash_points)
    before_s = asyncio.get_running_loop().time()
    async with asyncio.timeout(A_DAY_S):
        await store.run(lambda _: Event().wait(0.3))
    assert asyncio.get_running_loop().time() == before_s
    await store.close()


async def test_a_child_that_never_ends_holds_no_timer_for_longer_than_it_is() -> None:
    child = await asyncio.create_subprocess_exec(*sleeper(A_DAY_S))
    began_s = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await child.wait()
    assert time.monotonic() - began_s >= 0.3
    child.kill()
    await child.wait()


def test_a_child_from_before_holds_no_timer() -> None:
    async def wait() -> None:
        await FastClock(1).sleep(A_DAY_S)

    with subprocess.Popen(sleeper(A_DAY_S)) as child:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(wait())
        assert child.poll() is None
        child.kill()
