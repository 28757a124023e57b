"""`python -m tests.age WAVES [DAYS] [rest|git]`: live, and show a line of figures for each wave."""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from tests.age import life
from tests.harness.clock import JumpingLoop
from tests.harness.world import living


async def _live(waves: int, days: float, method: str) -> None:
    options = life.options(method)
    with TemporaryDirectory() as name:
        async with living(Path(name), options) as world:
            await life.prepare(world)
            async for census in life.lived(world, Path(name), waves, days):
                print(json.dumps(asdict(census)), flush=True)


def main() -> None:
    """Live as the arguments say."""
    waves, days, method = [*sys.argv[1:], *("10", "25", "rest")[len(sys.argv) - 1 :]]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(_live(int(waves), float(days), method))


if __name__ == "__main__":
    main()
