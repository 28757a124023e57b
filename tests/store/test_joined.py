"""One question for all who wait, each answered by one that began after it asked."""

import asyncio
import gc
from collections.abc import Set

import pytest

from service.database.probes import Joined


class Asked:
    """A question that is answered when the test says so: by how often it was asked."""

    def __init__(self) -> None:
        self.about: list[set[str]] = []
        self.gate = asyncio.Event()

    async def ask(self, wants: Set[str]) -> int:
        self.about.append(set(wants))
        number = len(self.about)
        await self.gate.wait()
        if "trouble" in wants:
            raise RuntimeError("asked in vain")
        return number


async def started(joined: Joined[str, int], *wants: str) -> "asyncio.Task[int]":
    """Somebody who waits for an answer."""
    task = asyncio.create_task(joined.answer(*wants))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_who_comes_while_a_question_is_on_its_way_shares_the_next_one():
    asked = Asked()
    joined = Joined(asked.ask)
    tasks = [await started(joined, want) for want in ("a", "b", "c")]
    assert asked.about == [{"a"}]
    asked.gate.set()
    assert await asyncio.gather(*tasks) == [1, 2, 2]
    assert asked.about == [{"a"}, {"b", "c"}]
    assert await joined.answer() == 3


async def test_a_question_that_fails_fails_for_those_who_share_it_alone():
    asked = Asked()
    joined = Joined(asked.ask)
    first, *rest = [await started(joined, want) for want in ("trouble", "b", "c")]
    asked.gate.set()
    with pytest.raises(RuntimeError, match="in vain"):
        await first
    assert await asyncio.gather(*rest) == [2, 2]


async def test_who_stops_waiting_leaves_the_others_their_answer():
    asked = Asked()
    joined = Joined(asked.ask)
    _, impatient, patient = [await started(joined) for _ in range(3)]
    impatient.cancel()
    asked.gate.set()
    assert await patient == 2


async def test_a_question_that_fails_after_all_stopped_waiting_is_no_error_of_the_program():
    asked, unheard = Asked(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
    impatient = await started(Joined(asked.ask), "trouble")
    impatient.cancel()
    asked.gate.set()
    await asyncio.wait([impatient])
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert len(asked.about) == 1
    assert unheard == []
