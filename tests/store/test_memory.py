"""What is only in memory: newest values, and wake-ups."""

import asyncio
from dataclasses import replace

import pytest

from service.database.wakeups import Wakeups
from service.mergequeue.store.cache import QUEUES_MAX, QueueCache
from tests.harness.databases import SetClock
from tests.store.conftest import a_queue


def a_value(queue_id: int, version: int):
    return replace(a_queue(), id=queue_id, version=version)


def test_the_cache_gives_exactly_the_version_that_was_read():
    cache = QueueCache()
    value = a_value(1, 4)
    cache.put(value)
    assert cache.get(1, 4) is value
    assert cache.get(1, 5) is None
    assert cache.get(2, 4) is None
    assert cache.newest(1) is value
    assert cache.newest(2) is None


def test_a_late_older_value_does_not_replace_a_newer_one():
    cache = QueueCache()
    cache.put(a_value(1, 5))
    cache.put(a_value(1, 4))
    assert cache.newest(1) == a_value(1, 5)


def test_a_dropped_value_is_gone_and_may_come_back_older():
    cache = QueueCache()
    cache.put(a_value(1, 5))
    cache.drop(1)
    cache.drop(1)
    assert cache.newest(1) is None
    cache.put(a_value(1, 4))
    assert cache.newest(1) == a_value(1, 4)


def test_the_least_recently_used_value_goes_first():
    cache = QueueCache()
    for queue_id in range(QUEUES_MAX):
        cache.put(a_value(queue_id, 1))
    cache.get(0, 1)
    cache.put(a_value(QUEUES_MAX, 1))
    assert cache.newest(0) is not None
    assert cache.newest(1) is None
    assert cache.newest(QUEUES_MAX) is not None


class Patient(SetClock):
    """A clock on which waiting never ends."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


async def test_a_wake_up_before_the_wait_is_not_lost():
    wakeups = Wakeups(Patient())
    assert wakeups.version("outbox") == 0
    wakeups.wake("outbox")
    assert await wakeups.wait("outbox", 0, 60) == 1
    assert wakeups.version("outbox") == 1


async def test_everybody_who_waits_for_the_topic_is_woken_and_nobody_else():
    wakeups = Wakeups(Patient())
    waiting = [asyncio.ensure_future(wakeups.wait("queue/1", 0, 60)) for _ in range(3)]
    other = asyncio.ensure_future(wakeups.wait("queue/2", 0, 60))
    await asyncio.sleep(0)
    wakeups.wake("queue/1")
    wakeups.wake("queue/1")
    assert await asyncio.gather(*waiting) == [2, 2, 2]
    assert not other.done()
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_a_wait_ends_in_time_without_a_wake_up():
    clock = SetClock()
    began = clock.now()
    assert await Wakeups(clock).wait("outbox", 0, 30) == 0
    assert (clock.now() - began).total_seconds() == 30


async def test_a_waiter_that_gives_up_is_forgotten():
    wakeups = Wakeups(Patient())
    waiting = asyncio.ensure_future(wakeups.wait("outbox", 0, 60))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    wakeups.wake("outbox")
    assert await wakeups.wait("outbox", 0, 60) == 1
