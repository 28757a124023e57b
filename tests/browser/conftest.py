"""One browser and one service for all tests here: they share an event loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.chromium import chromium
from tests.browser.gallery import Gallery, gallery
from tests.dashboard.conftest import ALICE
from tests.harness import databases, needs
from tests.harness.machine import free_port
from tests.harness.world import CI, World, WorldOptions, living

CI_S = 60
"""How long CI takes in that world, so that people see it test; two seconds of ours."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The machine's Chromium."""
    needs.needs("chromium")
    needs.needs("assets")
    async with chromium() as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gallery]:
    """Pages with something on each."""
    folder: Path = tmp_path_factory.mktemp("gallery")
    store = await databases.opened_at(f"sqlite:///{folder}/gallery.db")
    async with gallery(store) as opened:
        yield opened
    await store.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lively(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A world to whose pages people sign in; its queue tests four pull requests together."""
    port = free_port()
    signed_in = {
        "port": port,
        "public_url": f"http://127.0.0.1:{port}",
        "dashboard_auth": "github",
        "admins": ALICE,
    }
    slow = CI.replace("seconds: 3", f"seconds: {CI_S}")
    options = WorldOptions(ci=slow, settings=signed_in)
    async with living(tmp_path_factory.mktemp("world"), options) as world:
        await world.settle()
        await world.make_queue(batch=True, batching_min_size=4, batching_max_wait_time_minutes=1)
        yield world
        await world.settle()
