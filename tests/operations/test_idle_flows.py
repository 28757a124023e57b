"""When a flow asks the database for rows, and which flows a turn wakes."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from service.database import outbox
from service.database.claims import ClaimedRows
from service.database.outbox import ClaimedEffect, Lane, OutboxItem
from service.mergequeue.operations import pull_requests
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.process.workers import flow, flows
from service.process.workers.flow import Flow
from service.provider.values import Reply
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef
from tests.operations.conftest import WaitingClock

pytestmark = pytest.mark.each_database

LONG_S = 150.0
STORED_S = 21.0


class Moments(WaitingClock):
    """Time in which something happens once, and an end."""

    def __init__(self, end_s: float) -> None:
        super().__init__()
        self.end_s = end_s
        self.at_end: Callable[[], None] = lambda: None
        self.happens: Callable[[], Awaitable[None]] | None = None

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self.happens is not None and self.monotonic_s() >= STORED_S:
            happens, self.happens = self.happens, None
            await happens()
        if self.monotonic_s() >= self.end_s:
            self.at_end()


@pytest.fixture
def clock() -> Moments:
    """Some minutes."""
    return Moments(LONG_S)


async def looks(runtime: Runtime, clock: Moments) -> list[tuple[float, int]]:
    """Run the flow of notices to the end; when it claimed, and how many rows."""
    claims: list[tuple[float, int]] = []

    async def claim(
        runtime: Runtime, limit: int, owned: Collection[int] | None
    ) -> ClaimedRows[ClaimedEffect]:
        claimed = await flows.NOTICES.claim(runtime, limit, owned)
        claims.append((clock.monotonic_s(), len(claimed.rows)))
        return claimed

    watched = Flow(runtime, replace(flows.NOTICES, claim=claim))
    clock.at_end = watched.stop
    await watched.run()
    return claims


def a_reply(clock: WaitingClock) -> OutboxItem:
    text = Reply(7, "answer-7", "text")
    return OutboxItem(Lane.NOTICE, text.action_id, "reply", text, clock.now())


def period_of(runtime: Runtime) -> timedelta:
    """How often an idle flow looks: seldom where no other process stores rows."""
    return flow.POLL_ALONE if runtime.store.is_alone else flow.POLL


async def test_an_idle_flow_looks_seldom_where_no_other_process_stores_rows(
    runtime: Runtime, clock: Moments
) -> None:
    found = await looks(runtime, clock)
    assert {rows for _, rows in found} == {0}
    assert len(found) == pytest.approx(LONG_S / period_of(runtime).total_seconds(), abs=1)


async def test_what_another_process_stored_is_found_by_the_next_look(
    runtime: Runtime, clock: Moments, queue: QueueRef
) -> None:
    async def another_stores() -> None:
        reply = a_reply(clock)
        await runtime.store.run(outbox.append, queue.repository_id, queue.id, 0, [reply])

    clock.happens = another_stores
    found = await looks(runtime, clock)
    ((at_s, rows),) = [each for each in found if each[1]]
    assert rows == 1
    assert STORED_S <= at_s <= STORED_S + period_of(runtime).total_seconds()


async def test_a_flow_that_found_a_row_does_not_look_at_once_again(
    runtime: Runtime, clock: Moments, queue: QueueRef
) -> None:
    clock.end_s = 1.0
    reply = a_reply(clock)
    await runtime.store.run(outbox.append, queue.repository_id, queue.id, 0, [reply])
    assert await looks(runtime, clock) == [(0.0, 1)]


async def test_a_turn_wakes_only_the_lanes_for_which_it_stored_effects(
    runtime: Runtime, queue: QueueRef
) -> None:
    topics = sorted(set(outbox.TOPICS.values()))
    before = {topic: runtime.wakeups.version(topic) for topic in topics}
    known = len(await stored_lanes(runtime))
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    lanes = (await stored_lanes(runtime))[known:]
    assert lanes == [Lane.NOTICE]
    woken = [topic for topic in topics if runtime.wakeups.version(topic) != before[topic]]
    assert woken == [outbox.TOPICS[Lane.NOTICE]]


async def stored_lanes(runtime: Runtime) -> list[Lane]:
    """The lanes of all effects, oldest first."""
    rows = await runtime.store.read(lambda session: list(session.execute(_LANES)))
    return [Lane(row.lane) for row in rows]


_LANES = outbox.outbox.select().order_by(outbox.outbox.c.id)
