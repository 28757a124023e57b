"""The loop that claims rows and the tasks that own them: each row has one task until it is settled.

The rows are plain values; the time jumps to what is due next.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from service.database.claims import ClaimedRows
from service.errors import DatabaseUnavailable
from service.process.workers.flow import Flow, Work
from service.runtime import Runtime
from tests.harness.clock import FastClock

pytestmark = pytest.mark.jumping

READBACK_S = 10
AWAY = DatabaseUnavailable("The database is away.", retry_after_s=1)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing of this depends on the kind of database."""
    return sqlite_url


@pytest.fixture
async def clock() -> FastClock:
    """The time of the test's loop."""
    return FastClock(1)


@dataclass(frozen=True)
class Row:
    """A row that is due so many seconds after the beginning, and how long its work lasts."""

    id: int
    due_s: float = 0
    lasts_s: float = 0
    error: Exception | None = None


@dataclass
class Table:
    """Rows that a flow claims; what happened is noted with the second in which it did."""

    runtime: Runtime
    waiting: list[Row] = field(default_factory=list)
    at_once: int = 8
    looks: list[tuple[float, tuple[int, ...] | None]] = field(default_factory=list)
    """Claims, with the ids that tasks owned, if they were said."""
    done: list[tuple[float, int]] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    fail_claims: int = 0
    fail_settling: int = 0
    is_behind: bool = False
    given_back: int = 0

    def __post_init__(self) -> None:
        self.began_s = self.runtime.clock.monotonic_s()
        self.flow = Flow(self.runtime, self.work())

    def passed_s(self) -> float:
        return round(self.runtime.clock.monotonic_s() - self.began_s, 2)

    def work(self) -> Work[Row]:
        return Work("rows", self.at_once, self.claim, self.carry_out, self.interrupted, "ends")

    async def claim(
        self, runtime: Runtime, limit: int, owned: Collection[int] | None
    ) -> ClaimedRows[Row]:
        self.looks.append((self.passed_s(), None if owned is None else tuple(owned)))
        if self.fail_claims:
            self.fail_claims -= 1
            raise AWAY
        due = [row for row in self.waiting if row.due_s <= self.passed_s()][:limit]
        self.waiting = [row for row in self.waiting if row not in due]
        next_s = min((row.due_s for row in self.waiting), default=None)
        now = runtime.clock.now()
        next_due = None if next_s is None else now + timedelta(seconds=next_s - self.passed_s())
        return ClaimedRows(tuple(due), next_due, self.given_back, self.is_behind)

    async def carry_out(self, runtime: Runtime, row: Row) -> None:
        self.done.append((self.passed_s(), row.id))
        await runtime.clock.sleep(row.lasts_s)
        if row.error is not None:
            raise row.error

    async def interrupted(self, runtime: Runtime, row: Row, error: Exception) -> None:
        self.settled.append(self.passed_s())
        self.errors.append(error)
        if self.fail_settling:
            self.fail_settling -= 1
            raise AWAY

    def add(self, row: Row) -> None:
        """Store another row, and wake the flow."""
        self.waiting.append(row)
        self.runtime.wakeups.wake("rows")

    async def run(self, until_s: float, *moments: tuple[float, Callable[[], object]]) -> None:
        """Run the flow until this second; at each moment something happens."""

        async def time() -> None:
            for at_s, happen in (*moments, (until_s, self.flow.stop)):
                await self.runtime.clock.sleep(max(at_s - self.passed_s(), 0))
                happen()

        await asyncio.gather(time(), self.flow.run())


@pytest.fixture
def table(runtime: Runtime) -> Table:
    return Table(runtime)


@pytest.mark.fault(
    "a row is settled and claimed again before its task has ended",
    holds="it has no second task, and is given back when the first one ends",
    within="at once",
)
async def test_a_row_that_is_claimed_again_while_its_task_runs_is_given_back_at_its_end(
    table: Table,
):
    slow = Row(1, lasts_s=5)
    table.waiting = [slow]
    await table.run(9, (2, lambda: table.add(slow)))
    assert table.done == [(0, 1)]
    assert table.looks == [(0, ()), (2, None), (5, ())]


async def test_a_row_may_be_carried_out_again_when_its_task_has_ended(table: Table):
    quick = Row(1, lasts_s=1)
    table.waiting = [quick]
    await table.run(9, (2, lambda: table.add(quick)))
    assert table.done == [(0, 1), (2, 1)]


@pytest.mark.fault(
    "the database takes a claim and its answer is lost",
    holds="the claim is given back at once",
    within="0.5 s after the database is back",
)
async def test_after_a_claim_that_failed_the_next_one_says_which_rows_are_owned(table: Table):
    def go_away() -> None:
        table.fail_claims = 1
        table.add(Row(2))

    table.waiting = [Row(1, lasts_s=5)]
    await table.run(4, (1, lambda: table.add(Row(3, lasts_s=9))), (2, go_away))
    assert table.looks == [(0, ()), (1, None), (2, None), (2.5, (1, 3))]
    assert table.done == [(0, 1), (1, 3), (2.5, 2)]


async def test_claims_say_once_in_a_while_which_rows_are_owned(table: Table):
    table.waiting = [Row(1, lasts_s=60)]
    moments = [(at_s, lambda: table.runtime.wakeups.wake("rows")) for at_s in (3, 9.5, 10, 12, 21)]
    await table.run(30, *moments)
    assert table.looks == [(0, ()), (3, None), (9.5, None), (10, (1,)), (12, None), (21, (1,))]


async def test_while_claims_fail_the_pauses_grow_and_begin_anew_afterwards(table: Table):
    def go_away(times: int) -> None:
        table.fail_claims = times
        table.runtime.wakeups.wake("rows")

    await table.run(60, (1, lambda: go_away(6)), (40, lambda: go_away(1)))
    assert [at_s for at_s, _ in table.looks] == [
        *(0, 1, 1.5, 2.5, 4.5, 8.5, 13.5, 18.5),
        *(40, 40.5),
    ]


@pytest.mark.fault(
    "the database is away when work has ended by an error",
    holds="the row is settled by what ended it, as soon as the database is back",
    within="15 s",
)
async def test_a_row_is_settled_once_the_database_is_back(table: Table):
    mistake = ValueError("a mistake")
    table.waiting = [Row(1, error=mistake)]
    table.fail_settling = 8
    await table.run(70)
    assert table.settled == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 30.5, 45.5, 60.5]
    assert table.errors == [mistake] * 9


async def test_a_row_that_broke_is_settled_once_and_the_flow_looks_again(table: Table):
    table.waiting = [Row(1, lasts_s=1, error=ValueError("a mistake"))]
    await table.run(5)
    assert table.settled == [1]
    assert [at_s for at_s, _ in table.looks] == [0, 1]


async def test_a_stop_waits_for_what_is_running_and_claims_nothing_more(table: Table):
    table.waiting = [Row(1, lasts_s=30)]
    await table.run(2, (1, lambda: table.waiting.append(Row(2))))
    assert table.passed_s() == 30
    assert table.done == [(0, 1)]


async def test_a_stop_ends_the_pause_of_a_loop_whose_claims_fail(table: Table):
    table.fail_claims = 99
    await table.run(10)
    assert table.passed_s() == 10


async def test_what_is_abandoned_is_not_settled(table: Table):
    table.waiting = [Row(1, lasts_s=30)]
    running = asyncio.create_task(table.flow.run())
    await table.runtime.clock.sleep(1)
    await table.flow.abandon()
    table.flow.stop()
    await running
    assert (table.passed_s(), table.settled) == (1, [])


async def test_no_more_rows_are_claimed_than_there_are_places(runtime: Runtime):
    table = Table(runtime, [Row(number, lasts_s=3) for number in range(5)], at_once=2)
    await table.run(12)
    assert [at_s for at_s, _ in table.done] == [0, 0, 3, 3, 6]
    assert {at_s for at_s, _ in table.looks} <= {0, 3, 6, 9}


async def test_a_full_flow_looks_at_its_places_now_and_then_without_asking(runtime: Runtime):
    table = Table(runtime, [Row(1, lasts_s=7)], at_once=1)
    await table.run(6)
    assert [at_s for at_s, _ in table.looks] == [0]


async def test_a_row_that_was_stored_during_a_claim_is_found_at_once(table: Table):
    waiting = Row(1)
    claim = table.claim

    async def claim_slowly(
        runtime: Runtime, limit: int, owned: Collection[int] | None
    ) -> ClaimedRows[Row]:
        claimed = await claim(runtime, limit, owned)
        if len(table.looks) == 1:
            table.add(waiting)
        return claimed

    table.flow = Flow(table.runtime, replace(table.work(), claim=claim_slowly))
    await table.run(3)
    assert table.done == [(0, 1)]


async def test_a_row_is_claimed_when_it_is_due(table: Table):
    table.waiting = [Row(1, due_s=7.25)]
    await table.run(20)
    assert table.done == [(7.25, 1)]
    assert [at_s for at_s, _ in table.looks] == [0, 7.25]


async def test_the_end_of_a_row_wakes_the_flow_only_if_others_may_wait_for_it(table: Table):
    table.waiting = [Row(1, lasts_s=2)]
    await table.run(5)
    assert [at_s for at_s, _ in table.looks] == [0]
    behind = Table(table.runtime, [Row(1, lasts_s=2)], is_behind=True)
    await behind.run(5)
    assert [at_s for at_s, _ in behind.looks] == [0, 2]


async def test_full_claims_follow_each_other_without_a_pause(runtime: Runtime):
    table = Table(runtime, [Row(number) for number in range(6)], at_once=2)
    await table.run(3)
    assert [at_s for at_s, _ in table.done] == [0] * 6
    assert {at_s for at_s, _ in table.looks} == {0}


async def test_a_drain_carries_out_all_that_is_due_in_rounds(runtime: Runtime):
    table = Table(runtime, [Row(number, lasts_s=1) for number in range(5)], at_once=2)
    assert await table.flow.drain()
    assert [number for _, number in table.done] == [0, 1, 2, 3, 4]
    assert table.passed_s() == 3
    assert not await table.flow.drain()


async def test_claims_that_were_given_back_are_logged(table: Table):
    table.waiting = [Row(1)]
    with capture_logs() as logs:
        await table.run(1)
    assert logs == []
    table.flow, table.given_back = Flow(table.runtime, table.work()), 2
    with capture_logs() as logs:
        await table.run(2)
    assert [(line["event"], line["rows"]) for line in logs] == [("claims_given_back", 2)]
