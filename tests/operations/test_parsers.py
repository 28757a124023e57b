"""Processes that read foreign bytes: their limits, and the share of each tenant."""

import asyncio
import signal
import sys

import pytest

from service import parsers
from service.errors import Overloaded
from service.parser_process import Job, Limits
from service.parsers import Parsers, Stopped
from service.vocabulary import RepoRef
from tests.harness import parser_jobs

OURS = RepoRef("github.test", "octo", "widgets")
THEIRS = RepoRef("github.test", "Evil", "thing")
AMPLE = Limits(computing_s=20, memory_bytes=1 << 30)


def asked(parse, *arguments, limits=AMPLE):
    return Job(parse, arguments, limits)


GOOD = asked(parser_jobs.repeated, "words", 3)
SLOW = asked(parser_jobs.never_ending)


@pytest.fixture
def places() -> Parsers:
    return Parsers()


async def begun(places, repo, job, clock):
    """A job of which the process runs, or that waits for a place."""
    task = asyncio.ensure_future(places.run(repo, job, clock))
    await asyncio.sleep(0)
    return task


async def ended(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_pieces_come_back_in_order(places, clock):
    assert list(await places.run(OURS, GOOD, clock)) == ["words"] * 3
    assert clock.waits == []


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (asked(parser_jobs.never_ending, limits=Limits(1, 1 << 30)), "took more than 1 s"),
        (asked(parser_jobs.hungry, limits=Limits(20, 128 << 20)), "took more than 128 MiB of"),
        (asked(parser_jobs.broken), "failed"),
        (asked(parser_jobs.killed), "failed"),
    ],
)
async def test_a_job_that_takes_too_much_ends_alone_and_the_next_one_runs(places, clock, job, why):
    with pytest.raises(Stopped, match=why):
        await places.run(THEIRS, job, clock)
    assert list(await places.run(THEIRS, GOOD, clock)) == ["words"] * 3


async def test_processes_that_were_killed_are_replaced(places, clock):
    for _ in range(parsers.PLACES + 1):
        with pytest.raises(Stopped):
            await places.run(THEIRS, asked(parser_jobs.killed), clock)
    assert list(await places.run(OURS, GOOD, clock)) == ["words"] * 3
    assert clock.waits == []


async def test_a_tenant_with_slow_files_delays_itself_alone(places, clock):
    slow = [await begun(places, THEIRS, SLOW, clock) for _ in range(parsers.TENANT_PLACES)]
    with pytest.raises(Overloaded) as full:
        await places.run(RepoRef(THEIRS.host, "evil", "another"), GOOD, clock)
    assert (clock.waits, full.value.retry_after_s) == ([parsers.WAIT_S], parsers.RETRY_AFTER_S)
    assert list(await places.run(OURS, GOOD, clock)) == ["words"] * 3
    assert not any(task.done() for task in slow)
    await ended(*slow)
    assert list(await places.run(THEIRS, GOOD, clock)) == ["words"] * 3


async def test_tenants_get_free_places_in_turn(places):
    clock = NeverLate()
    held = [places.place(owner, clock) for owner in (OURS, OURS, THEIRS)]
    for place in held:
        await place.__aenter__()
    order = []

    async def wait(owner, name):
        async with places.place(RepoRef(OURS.host, owner, "any"), clock):
            order.append(name)

    waiting = [
        asyncio.ensure_future(wait(owner, f"{owner} {n}"))
        for owner, n in [("evil", 1), ("evil", 2), ("evil", 3), ("third", 1), ("fourth", 1)]
    ]
    await asyncio.sleep(0)
    assert order == []
    await held[2].__aexit__(None, None, None)
    await asyncio.gather(*waiting)
    assert order == ["evil 1", "third 1", "fourth 1", "evil 2", "evil 3"]
    for place in held[:2]:
        await place.__aexit__(None, None, None)


class NeverLate:
    """A clock that does not move."""

    async def sleep(self, seconds):
        await asyncio.Event().wait()


async def test_one_who_waits_no_longer_takes_no_place(places):
    clock = NeverLate()
    slow = [await begun(places, OURS, SLOW, clock) for _ in range(parsers.TENANT_PLACES + 1)]
    await ended(slow[-1])
    assert list(await places.run(THEIRS, GOOD, clock)) == ["words"] * 3
    await ended(*slow)
    assert list(await places.run(OURS, GOOD, clock)) == ["words"] * 3


async def test_the_process_sees_no_secret_and_writes_no_file(places, clock, tmp_path):
    (seen,) = await places.run(OURS, asked(parser_jobs.environment), clock)
    assert set(seen) <= {"PYTHONPATH", "LC_CTYPE"}
    with pytest.raises(Stopped):
        await places.run(OURS, asked(parser_jobs.writing, str(tmp_path / "a")), clock)
    assert not (tmp_path / "a").exists() or (tmp_path / "a").stat().st_size == 0


async def test_a_job_that_is_given_up_ends_its_process_and_gives_its_place_back(
    places, clock, monkeypatch
):
    monkeypatch.setattr(parsers, "COMMAND", (sys.executable, "-c", "import signal; signal.pause()"))
    started = asyncio.Event()
    children = []
    spawn = asyncio.create_subprocess_exec

    async def noted(*command, **more):
        children.append(await spawn(*command, **more))
        started.set()
        return children[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    reading = asyncio.ensure_future(places.run(OURS, GOOD, clock))
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert children[0].returncode == -signal.SIGKILL
    monkeypatch.undo()
    assert list(await places.run(OURS, GOOD, clock)) == ["words"] * 3
