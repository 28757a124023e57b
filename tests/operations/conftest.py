"""A runtime over both databases, a provider made of values, time that only waiting moves."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from service.accounts import repositories
from service.database.database import Store
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef
from tests.harness.runtimes import a_runtime
from tests.harness.values import ValuesProvider
from tests.provider.stage import Stage, on_sandbox


class WaitingClock:
    """Time that stands still until somebody waits; `waits` are the spans in seconds."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._passed_s = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 14, tzinfo=UTC) + timedelta(seconds=self._passed_s)

    def monotonic_s(self) -> float:
        return self._passed_s

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._passed_s += seconds


@pytest.fixture
def clock() -> WaitingClock:
    """Time."""
    return WaitingClock()


@pytest.fixture
def provider() -> ValuesProvider:
    """The provider of the runtime's only host."""
    return ValuesProvider()


@pytest.fixture
def runtime(store: Store, clock: WaitingClock, provider: ValuesProvider) -> Runtime:
    """The parts of a process."""
    return a_runtime(store, clock, {provider.ref.host: provider})


@pytest.fixture
async def queue(runtime: Runtime, provider: ValuesProvider) -> QueueRef:
    """The paused queue of `main`."""
    fresh = await provider.repository(provider.ref)
    record = await runtime.store.run(repositories.upsert, fresh)
    await queues.create(runtime, record, "main", QueueRequest({}, QueueState.PAUSED), SYSTEM)
    (found,) = await runtime.store.read(stored_queues.all_queues)
    return found


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_sandbox() as made:
        yield made
