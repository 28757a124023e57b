"""What a flow does when a row has ended, in time that jumps to what is due next."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from service.database import outbox
from service.database.claims import ClaimedRows
from service.database.outbox import ClaimedEffect, Lane, OutboxItem, OutboxState
from service.process.workers import flows
from service.process.workers.flow import Flow, Work
from service.provider.values import Reply
from service.runtime import Runtime
from service.vocabulary import QueueRef
from tests.harness.clock import FastClock

pytestmark = [pytest.mark.each_database, pytest.mark.jumping]

LASTS_S = 3
END_S = 5
Done = list[tuple[int, str]]
"""What was begun: after how many seconds, and its key."""


@pytest.fixture
async def clock() -> FastClock:
    """The time of the test's loop."""
    return FastClock(1)


class Flows:
    """Flows of some lanes, which carry out everything in three seconds."""

    def __init__(self, runtime: Runtime, queue: QueueRef) -> None:
        self.runtime, self.queue = runtime, queue
        self.began_s = runtime.clock.monotonic_s()
        self.done: Done = []
        self.looks: list[int] = []
        self.meanwhile: dict[str, Callable[[], Awaitable[None]]] = {}

    def passed_s(self) -> int:
        """Seconds since the beginning."""
        return round(self.runtime.clock.monotonic_s() - self.began_s)

    async def store(self, lane: Lane, key: str, **more: Any) -> None:
        """Store an effect, and wake its lane."""
        now = self.runtime.clock.now()
        effect = Reply(7, key, "text")
        item = replace(OutboxItem(lane, key, "reply", effect, now), **more)
        place = (self.queue.repository_id, self.queue.id, 0)
        await self.runtime.store.run(outbox.append, *place, [item])
        outbox.wake(self.runtime.wakeups, (lane,))

    async def carry_out(self, runtime: Runtime, row: ClaimedEffect) -> None:
        """Do the work of a row, and what happens meanwhile."""
        self.done.append((self.passed_s(), row.key))
        meanwhile = self.meanwhile.pop(row.key, None)
        if meanwhile is not None:
            await meanwhile()
        await runtime.clock.sleep(LASTS_S)
        await runtime.store.run(outbox.settle, [row.id], OutboxState.DONE)

    def watched(self, work: Work[ClaimedEffect]) -> Flow[ClaimedEffect]:
        """The flow of a lane."""

        async def claim(
            runtime: Runtime, limit: int, owned: Collection[int] | None
        ) -> ClaimedRows[ClaimedEffect]:
            self.looks.append(self.passed_s())
            return await work.claim(runtime, limit, owned)

        return Flow(self.runtime, replace(work, claim=claim, carry_out=self.carry_out))

    async def run(self, *works: Work[ClaimedEffect]) -> Done:
        """Run the flows for a while."""
        running = [self.watched(each) for each in works]

        async def stop() -> None:
            await self.runtime.clock.sleep(END_S)
            for each in running:
                each.stop()

        await asyncio.gather(stop(), *(each.run() for each in running))
        return self.done


@pytest.fixture
def played(runtime: Runtime, queue: QueueRef) -> Flows:
    """Flows that have not begun."""
    return Flows(runtime, queue)


async def test_the_end_of_a_row_for_which_no_other_waits_causes_no_look(played: Flows) -> None:
    await played.store(Lane.NOTICE, "alone")
    assert await played.run(flows.NOTICES) == [(0, "alone")]
    # Another process may have stored a row that waits for this one.
    assert played.looks == [0] if played.runtime.store.is_alone else [0, LASTS_S]


async def test_what_waits_for_the_end_of_a_row_begins_with_it(played: Flows) -> None:
    async def store_second() -> None:
        await played.store(Lane.NOTICE, "second", supersede_key="spot")

    played.meanwhile["first"] = store_second
    await played.store(Lane.NOTICE, "first", supersede_key="spot")
    assert await played.run(flows.NOTICES) == [(0, "first"), (LASTS_S, "second")]


async def test_a_control_effect_begins_when_the_landing_of_its_run_has_ended(
    played: Flows,
) -> None:
    """The flow of one lane waits for the end of what the flow of another does."""
    await played.store(Lane.LANDING, "land", run="r1", kind=outbox.LAND)
    await played.store(Lane.CONTROL, "retire", run="r1")
    done = await played.run(flows.LANDINGS, flows.CONTROL)
    assert done == [(0, "land"), (LASTS_S, "retire")]


async def test_a_row_that_waits_for_a_free_place_begins_when_there_is_one(played: Flows) -> None:
    for key in ("first", "second"):
        await played.store(Lane.NOTICE, key)
    done = await played.run(replace(flows.NOTICES, at_once=1))
    assert done == [(0, "first"), (LASTS_S, "second")]


async def test_a_row_that_failed_is_tried_again_when_it_is_due(played: Flows) -> None:
    async def fail() -> None:
        raise ValueError("a mistake")

    played.meanwhile["flawed"] = fail
    await played.store(Lane.NOTICE, "flawed")
    assert await played.run(flows.NOTICES) == [(0, "flawed"), (1, "flawed")]
