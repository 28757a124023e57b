"""The world of a story, as fixtures, and the time in which stories are played."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from multiprocessing import forkserver
from pathlib import Path

import pytest

from bot.sandbox import auth
from tests.harness import audited, history, published
from tests.harness.clock import JumpingLoop
from tests.harness.world import REPO, World, WorldOptions, living

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    """Play stories in a loop that waits for nothing: what is due next comes at once."""
    names: list[str] = getattr(item, "fixturenames", [])
    if "world_options" in names or item.get_closest_marker("jumping") is not None:
        return {"jumping": JumpingLoop}
    return {"real": asyncio.SelectorEventLoop}


@pytest.hookimpl(optionalhook=True)
def pytest_prepare_workers() -> None:
    """Read GitHub's descriptions, make the key of Apps, start the server that forks processes."""
    published.read_all()
    auth.private_key()
    if "tests.harness.processes" in sys.modules:
        forkserver.ensure_running()


@pytest.fixture
def world_options() -> WorldOptions:
    """How the world of a test begins; a test module may say it otherwise."""
    return WorldOptions()


@pytest.fixture
async def world(
    tmp_path: Path, world_options: WorldOptions, request: pytest.FixtureRequest
) -> AsyncIterator[World]:
    """Service and sandbox in one process, meeting over HTTP.

    A story's end breaks no promise, unless the story is about a broken one.
    """
    async with living(tmp_path, world_options) as made:
        yield made
        if request.node.get_closest_marker("breaks_promises") is not None:
            return
        await made.settle()
        assert await history.broken_promises(made.sandbox, made.runtime.store, REPO) == []
        assert await audited.faults_of_story(made) == []
