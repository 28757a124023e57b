"""What processes of tests have when they are forked: all imports, and what a landing compiles."""

import asyncio
import gc
import tempfile
from pathlib import Path

from structlog.testing import capture_logs

from bot.cli import app, servers
from bot.sandbox import auth
from bot.sandbox.app import running
from tests.harness import statements
from tests.harness.clock import JumpingLoop
from tests.harness.world import World, WorldOptions, living

__all__ = ["app", "running", "servers"]


async def landed_once(folder: Path) -> None:
    """A pull request lands, so that statements, patterns and templates are compiled."""
    async with living(folder, WorldOptions(is_compared=False)) as world:
        await land(world)


async def land(world: World) -> None:
    """Ask for one and wait until all is done."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"


auth.private_key()
app.command_tree()
statements.pytest_configure()
with (
    tempfile.TemporaryDirectory() as name,
    asyncio.Runner(loop_factory=JumpingLoop) as runner,
    capture_logs(),
):
    runner.run(landed_once(Path(name)))
gc.freeze()
