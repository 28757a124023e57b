"""One browser and one service for all tests here: they share an event loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.chromium import chromium
from tests.browser.gallery import Gallery, gallery
from tests.harness import databases, needs


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
