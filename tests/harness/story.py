"""The world of a story, as fixtures."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness import history
from tests.harness.world import REPO, World, WorldOptions, living


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
