"""The world's time: jobs in order, whoever owns the clock."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from bot.sandbox import timeline as timelines
from bot.sandbox.app import SandboxOptions, running
from bot.sandbox.timeline import ManualClock, NeverSettles, RunningClock, Timeline
from tests.sandbox.client import REPO

START = datetime(2026, 1, 1, tzinfo=UTC)
STOPS_WITHIN_S = 60


@pytest.fixture
def line():
    return Timeline(ManualClock(START))


def note(line, seen: list, name, seconds):
    async def act():
        seen.append((name, (line.now() - START).total_seconds()))

    line.later(seconds, name, act)


async def test_jobs_are_done_by_time_and_then_in_the_order_they_came(line):
    seen: list[tuple[str, float]] = []
    for name, seconds in (("late", 5), ("first", 1), ("second", 1)):
        note(line, seen, name, seconds)
    assert line.next_due() == START + timedelta(seconds=1)
    assert line.waiting() == ["first", "second", "late"]
    assert await line.settle() == 3
    assert seen == [("first", 1), ("second", 1), ("late", 5)]


async def test_only_what_is_due_is_done(line):
    seen: list[tuple[str, float]] = []
    note(line, seen, "soon", 1)
    note(line, seen, "late", 5)
    assert await line.run_due() == 0
    line.advance(2)
    assert await line.run_due() == 1
    assert line.waiting() == ["late"]


async def test_a_world_that_never_rests_names_what_it_waits_for(line, monkeypatch):
    monkeypatch.setattr(timelines, "SETTLE_JOBS_MAX", 100)

    async def again():
        line.later(1, "a thing that repeats", again)

    await again()
    with pytest.raises(NeverSettles, match="a thing that repeats"):
        await line.settle()


async def test_a_running_clock_goes_at_its_speed_and_never_jumps_back():
    clock = RunningClock(speed=1000)
    first = clock.now()
    clock.advance(3600)
    jumped = clock.now()
    assert (jumped - first).total_seconds() >= 3600
    clock.change_speed(1)
    assert clock.now() >= jumped


async def test_a_running_world_does_its_jobs_by_itself():
    async with running(SandboxOptions(speed=1000)) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        done = asyncio.Event()

        async def act():
            done.set()

        sandbox.world.timeline.later(30, "a job", act)
        await asyncio.wait_for(done.wait(), 60)
        opened = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
        await sandbox.settle()
        pull = sandbox.repository(REPO).issues[opened["number"]].pull
        assert pull is not None
        assert pull.mergeable is True


async def test_a_world_that_is_cancelled_in_the_tick_in_which_it_was_woken_stops(line):
    begun = asyncio.Event()

    async def act():
        begun.set()

    line.later(0, "a job", act)
    turning = asyncio.create_task(line.run())
    await begun.wait()
    line.later(1, "another job", act)
    turning.cancel()
    await asyncio.wait({turning}, timeout=STOPS_WITHIN_S)
    assert turning.cancelled()


async def test_an_error_of_a_job_is_reported_at_once_and_stops_no_other(line):
    done, told = asyncio.Event(), asyncio.Queue[str]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, about: told.put_nowait(about["message"]))

    async def breaks():
        raise OSError("the disk is full")

    async def act():
        done.set()

    line.later(0, "CI check unit of octo/widgets", breaks)
    turning = asyncio.create_task(line.run())
    async with asyncio.timeout(STOPS_WITHIN_S):
        assert await told.get() == "CI check unit of octo/widgets failed"
        line.later(0, "another job", act)
        await done.wait()
    turning.cancel()


async def test_a_test_may_bring_the_clock_of_the_service():
    clock = ManualClock(START)
    async with running(SandboxOptions(clock=clock)) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
        line = sandbox.world.timeline
        assert await line.run_due() == 0
        due = line.next_due()
        assert due == START + timedelta(seconds=1)
        clock.advance(1)
        assert await line.run_due() == 1
        assert line.next_due() is None
        assert sandbox.world.now() == START + timedelta(seconds=1)
