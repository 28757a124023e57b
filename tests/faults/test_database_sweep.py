"""Each write of a merge's story fails once, in every way a database can fail.

The story ends the same each time: merged once, nothing left over. `make test` strikes a few
writes, chosen by a seed, in one world, the first of them in the world's first merge, which makes
the queue; `make soak ROWS=faults` strikes each write of a first merge.
"""

import os
import random
from pathlib import Path

import pytest

from tests.adversary.judge import landed_on
from tests.harness.database_faults import Fault, Faulty, put_between
from tests.harness.world import World, WorldOptions, living

IS_LONG = os.environ.get("HEADGATE_FAULTS") == "long"
WRITES = 200
"""More than the story has, which is about 170: those that it never reaches strike nothing."""
CASES = [(number, fault) for number in range(1, WRITES + 1) for fault in Fault]
MERGED_WITHIN_S = 900.0
"""World seconds: the first command in a repository without a queue is found within ten minutes
if its delivery could not be stored."""
SEED = 20261122
SHORT = 3
EARLY = 25
"""Every story has so many writes."""


async def struck(world: World, faulty: Faulty, number: int, fault: Fault) -> int:
    """A pull request lands once although this write of its story goes wrong.

    Return how many writes there were until it was merged.
    """
    pull = await world.open()
    await world.settle()
    before = len(await landed_on(world))
    faulty.writes, faulty.struck, faulty.plan = 0, [], {number: fault}
    await world.comment("/merge", on=pull)

    async def is_merged() -> bool:
        return pull in await world.merged()

    await world.until(is_merged, within_s=MERGED_WITHIN_S)
    writes, faulty.plan = faulty.writes, {}
    await world.settle()
    assert len(await landed_on(world)) == before + 1
    assert not [name for name in world.branches() if name.startswith("headgate/")]
    assert faulty.struck == [number] or writes < number
    return writes


async def test_a_few_writes_that_fail_change_nothing_in_the_end(tmp_path: Path) -> None:
    chosen = random.Random(SEED).sample([case for case in CASES if case[0] <= EARLY], SHORT)
    async with living(tmp_path, WorldOptions()) as world:
        faulty = put_between(world.runtime.store)
        for number, fault in chosen:
            await struck(world, faulty, number, fault)
            assert faulty.struck == [number]


@pytest.mark.parametrize(("number", "fault"), CASES if IS_LONG else [])
@pytest.mark.fault(
    "each write of a first merge fails, is lost or hangs, one at a time",
    holds="it lands once",
    within="1,601 cases",
)
async def test_a_write_that_fails_changes_nothing_in_the_end(
    number: int, fault: Fault, database_url: str, tmp_path: Path
) -> None:
    async with living(tmp_path, WorldOptions(database_url=database_url)) as world:
        await struck(world, put_between(world.runtime.store), number, fault)
