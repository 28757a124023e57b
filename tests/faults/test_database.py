"""The database goes away while effects are on their way: each is settled once it is back."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from service.errors import DatabaseUnavailable
from service.mergequeue.engine.inputs import Configure
from service.mergequeue.operations import turn
from service.vocabulary import SYSTEM
from tests.adversary.judge import landed_on
from tests.harness.database_faults import Moment, put_between
from tests.harness.world import World, WorldOptions, living

IS_LONG = os.environ.get("HEADGATE_FAULTS") == "long"
MOMENTS = (
    "effect.before_done",
    "act.build.before_send",
    "act.build.after_send",
    "act.land.before_send",
    "act.land.after_send",
    "act.tell.after_send",
    "landing.after_permit",
    "hook.before_answer",
)
OUTAGE_S = 12.0
"""World seconds."""


async def ready(world: World) -> int:
    """A pull request whose own checks have passed."""
    number = await world.open()
    await world.settle()
    return number


def goes_away(world: World, moment: Moment) -> Callable[[], Awaitable[bool]]:
    """Let the database be away for a while from the moment on; return whether that is over."""
    faulty = put_between(world.runtime.store)
    until: list[float] = []
    moment.then = lambda: until.append(world.clock.monotonic_s() + OUTAGE_S)
    faulty.is_away = lambda: bool(until) and world.clock.monotonic_s() < until[0]

    async def is_over() -> bool:
        return bool(until) and not faulty.is_away()

    return is_over


@pytest.mark.parametrize("name", MOMENTS if IS_LONG else MOMENTS[:1])
@pytest.mark.fault(
    "the database is away in the middle of an effect",
    holds="it lands once",
    within="20 min",
)
async def test_an_outage_in_the_middle_of_an_effect_stops_nothing_for_good(
    name: str, database_url: str, tmp_path: Path
) -> None:
    moment = Moment(name)
    options = WorldOptions(crash_points=moment, database_url=database_url)
    async with living(tmp_path, options) as world:
        number = await ready(world)
        moment.passes = 0
        back = goes_away(world, moment)
        await world.comment("/merge", on=number)
        await world.until(lambda: merged(world, number), within_s=300)
        await world.until(back)
        await world.settle()
        assert moment.passes
        assert len(await landed_on(world)) == 1


async def merged(world: World, number: int) -> bool:
    """Whether the sandbox shows it as merged."""
    return number in await world.merged()


@pytest.mark.fault(
    "a turn is committed and its answer lost",
    holds="its value is known at once",
    within="at once",
)
async def test_a_turn_that_is_committed_although_it_failed_is_known_at_once(
    database_url: str, tmp_path: Path
) -> None:
    async with living(tmp_path, WorldOptions(database_url=database_url)) as world:
        await world.make_queue(concurrency=2)
        before = await world.value()
        put_between(world.runtime.store).lose_next_turn()
        with pytest.raises(DatabaseUnavailable):
            await turn.take(world.runtime, before.id, [Configure({"concurrency": 3}, SYSTEM)])
        assert (await world.value()).config.concurrency == 3
