"""Deliveries of one repository that only report checks go through one turn, which settles them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from sqlalchemy import select

from service.accounts import repositories
from service.database import inbox
from service.database.database import Tx
from service.database.inbox import ClaimedLane
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import pull_requests, queues, turn
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.process import deliveries
from service.process.workers.supervisor import Workers
from service.provider.errors import NotPermitted, Unavailable
from service.provider.signals import AccessChanged, CheckReported, Delivery, News, Signal, Where
from service.provider.values import Checks
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef, Sha
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock

pytestmark = pytest.mark.each_database

PULL_REQUESTS = 8
OTHER = "other"


class Provider(ValuesProvider):
    """Answers at once; reads of some commits end with an error."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: dict[Sha, Exception] = {}
        self.reads: list[tuple[Sha, ...]] = []

    async def checks_of_many(
        self, repo: RepoRef, shas: Sequence[Sha], *, skipped_pass: bool
    ) -> Mapping[Sha, Checks]:
        self.reads.append(tuple(shas))
        for sha in shas:
            if sha in self.fails:
                raise self.fails[sha]
        return await super().checks_of_many(repo, shas, skipped_pass=skipped_pass)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@dataclass
class Bench:
    """A queue with a pull request under test on each commit, none of which is decided."""

    runtime: Runtime
    provider: Provider
    clock: WaitingClock
    queue: QueueRef
    where: Where
    shas: list[Sha] = field(default_factory=list)
    sent: int = 0

    async def send(self, *shas: str) -> None:
        """Deliver a report on each commit; a word in its place is another webhook."""
        for sha in shas:
            self.sent += 1
            now = self.runtime.clock.now()
            delivery = Delivery(
                self.where.ref.host, f"guid-{self.sent}", "check_run", None, "1", sha.encode(), now
            )
            assert await deliveries.accept(self.runtime, delivery)

    async def claim(self) -> ClaimedLane:
        (lane,) = (await deliveries.claim(self.runtime, 8)).rows
        return lane

    async def take_up(self) -> None:
        await deliveries.take_up(self.runtime, await self.claim())

    async def passed(self) -> set[Sha]:
        """The commits whose pull requests have passed."""
        value = await turn.value(self.runtime, self.queue.id)
        runs = {run.id: run.sha for run in value.runs.values()}
        return {
            sha
            for entry in value.entries.values()
            if entry.state is EntryState.TESTS_PASSED
            and (sha := runs[entry.verified_by or ""]) is not None
        }

    async def states(self) -> list[tuple[str, int]]:
        """State and counted attempts of each delivery."""
        table = inbox.inbox
        chosen = select(table.c.state, table.c.attempts).order_by(table.c.id)

        def read(session: Tx) -> list[tuple[str, int]]:
            return [(row.state, row.attempts) for row in session.execute(chosen)]

        return await self.runtime.store.read(read)

    async def version(self) -> int:
        return (await turn.value(self.runtime, self.queue.id)).version


@pytest.fixture
async def bench(runtime: Runtime, provider: Provider, clock: WaitingClock) -> Bench:
    fresh = await provider.repository(provider.ref)
    where = Where(fresh.id, fresh.ref)

    def translate(delivery: Delivery) -> tuple[Signal, ...]:
        if delivery.body == OTHER.encode():
            return (AccessChanged(where.ref.host, "999", suspended=False),)
        if not delivery.body:
            raise KeyError("a mistake of ours")
        return (CheckReported(where, Sha(delivery.body.decode()), News.PASSED),)

    runtime = replace(runtime, translators={where.ref.host: translate})
    record = await runtime.store.run(repositories.upsert, fresh)
    made = await queues.create(
        runtime, record, "main", QueueRequest({"concurrency": PULL_REQUESTS}), SYSTEM
    )
    for number in range(1, PULL_REQUESTS + 1):
        await pull_requests.submit(runtime, made.queue, number, SubmitOptions(), SYSTEM)
    await Workers(runtime).drain()
    await queues.set_state(runtime, made.queue, QueueState.PAUSED, None, Requester(SYSTEM))
    value = await turn.value(runtime, made.queue.id)
    shas = [run.sha for run in value.runs.values() if run.sha is not None]
    assert len(shas) == PULL_REQUESTS
    provider.green.update(shas)
    provider.reads.clear()
    await clock.sleep(CheckReadScheduler.JOINED.total_seconds())
    return Bench(runtime, provider, clock, made.queue, where, shas)


DONE = ("done", 0)


async def test_reports_that_wait_are_read_at_once_and_settled_in_one_turn(bench: Bench):
    before = await bench.version()
    await bench.send(*bench.shas)
    await bench.take_up()
    assert [set(read) for read in bench.provider.reads] == [set(bench.shas)]
    assert await bench.passed() == set(bench.shas)
    assert await bench.version() == before + 1
    assert await bench.states() == [DONE] * len(bench.shas)


async def test_what_comes_meanwhile_follows_in_the_same_claim(bench: Bench):
    await bench.send(*bench.shas[:2])
    lane = await bench.claim()
    await bench.send(*bench.shas[2:])
    await deliveries.take_up(bench.runtime, lane)
    assert [len(read) for read in bench.provider.reads] == [2, len(bench.shas) - 2]
    assert await bench.states() == [DONE] * len(bench.shas)
    assert (await deliveries.claim(bench.runtime, 8)).next_due is None


async def test_other_webhooks_keep_their_place_between_reports(bench: Bench):
    first, second, third, *_ = bench.shas
    await bench.send(first, second, OTHER, third)
    await bench.take_up()
    assert [len(read) for read in bench.provider.reads] == [2, 1]
    assert await bench.states() == [DONE] * 4


@pytest.mark.fault(
    "one of many webhooks that are worked on together cannot be worked on",
    holds="all others are decided at once, no attempt at them is counted, and it is parked",
    within="its five attempts",
)
async def test_a_report_that_cannot_be_read_spoils_no_other(bench: Bench, clock: WaitingClock):
    bad = bench.shas[5]
    bench.provider.fails[bad] = NotPermitted("Resource not accessible by integration.")
    await bench.send(*bench.shas)
    await bench.take_up()
    assert await bench.passed() == set(bench.shas[:5])
    assert await bench.states() == [*[DONE] * 5, ("open", 1), *[("open", 0)] * 2]
    for _ in range(deliveries.ATTEMPTS_MAX - 1):
        assert (await deliveries.claim(bench.runtime, 8)).rows == ()
        await clock.sleep(60)
        await bench.take_up()
    assert await bench.passed() == set(bench.shas) - {bad}
    assert await bench.states() == [*[DONE] * 5, ("poisoned", 4), *[DONE] * 2]


async def test_a_mistake_of_ours_spoils_no_other(bench: Bench, clock: WaitingClock):
    bad = bench.shas[0]
    bench.provider.fails[bad] = KeyError("a mistake of ours")
    await bench.send(*bench.shas)
    for _ in range(deliveries.ATTEMPTS_MAX):
        await bench.take_up()
        await clock.sleep(60)
    assert await bench.passed() == set(bench.shas) - {bad}
    assert (await bench.states())[0][0] == "poisoned"


async def test_while_the_provider_is_away_all_wait_for_the_first_one(
    bench: Bench, clock: WaitingClock
):
    away = Unavailable("The provider is away.", clock.now())
    bench.provider.fails = dict.fromkeys(bench.shas, away)
    await bench.send(*bench.shas)
    await bench.take_up()
    assert len(bench.provider.reads) == 1
    assert {state for state, _ in await bench.states()} == {"open"}
    bench.provider.fails = {}
    await clock.sleep(60)
    await bench.take_up()
    assert await bench.passed() == set(bench.shas)


@pytest.mark.fault(
    "the provider is away for more than a day",
    holds="one that is parked takes none of those that were read with it along",
    within="-",
)
async def test_one_that_has_waited_too_long_leaves_the_others_in_their_order(
    bench: Bench, clock: WaitingClock
):
    away = Unavailable("The provider is away.", clock.now())
    bench.provider.fails = dict.fromkeys(bench.shas, away)
    await bench.send(*bench.shas, OTHER)
    pause_s = deliveries.LATEST.total_seconds()
    for _ in range(deliveries.ATTEMPTS_MAX):
        await bench.take_up()
        await clock.sleep(pause_s)
    await clock.sleep(deliveries.WAITS_FOR.total_seconds())
    for _ in range(deliveries.ATTEMPTS_MAX - 1):
        await bench.take_up()
        await clock.sleep(pause_s)
    assert {state for state, _ in await bench.states()} == {"open"}
    await bench.take_up()
    states = [state for state, _ in await bench.states()]
    assert states == ["poisoned", *["open"] * len(bench.shas)]
    bench.provider.fails = {}
    await clock.sleep(60)
    await bench.take_up()
    assert await bench.passed() == set(bench.shas[1:])
    assert [state for state, _ in await bench.states()] == ["poisoned", *["done"] * len(bench.shas)]


async def test_reports_on_unknown_commits_are_settled(bench: Bench):
    await bench.send(*("0" * 39 + str(number) for number in range(5)))
    before = await bench.version()
    await bench.take_up()
    assert bench.provider.reads == []
    assert await bench.states() == [DONE] * 5
    assert await bench.version() == before
