"""A runtime over a real store, without a provider: what refusals and status pages need."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.clock import RandomIds
from service.crash_points import NoCrashes
from service.database.database import open_store
from service.http.health import Readiness
from service.runtime import Options, Runtime
from service.vocabulary import SYSTEM, Role
from tests.api.wire import HandClock
from tests.harness import databases
from tests.harness.runtimes import a_runtime


class NotedCrashPoints(NoCrashes):
    """Remembers what was passed."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def reach(self, name: str) -> None:
        self.reached.append(name)


@pytest.fixture
def clock() -> HandClock:
    """Time, in the test's hand."""
    return HandClock()


@pytest.fixture
async def runtime(tmp_path: Path, clock: HandClock) -> AsyncIterator[Runtime]:
    """The parts, with a database of their own."""
    crash_points, ids = NotedCrashPoints(), RandomIds()
    url = databases.sqlite_at(tmp_path / "headgate.db")
    store = await open_store(url, clock=clock, ids=ids, crash_points=crash_points)
    try:
        yield a_runtime(
            store,
            clock,
            crash_points=crash_points,
            options=Options(version="0.0.7", public_url="https://queue.example.org"),
        )
    finally:
        await store.close()


@pytest.fixture
def readiness() -> Readiness:
    """A recovery that is over."""
    ready = Readiness()
    ready.mark("recovery", "ok")
    return ready


@pytest.fixture
async def admin(runtime: Runtime) -> str:
    """The secret of an admin's token."""
    wish = TokenRequest("github.com", "octo", "ops", Role.ADMIN)
    return (await tokens.create_token(runtime, wish, SYSTEM)).secret
