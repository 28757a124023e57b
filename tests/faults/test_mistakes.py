"""A mistake of our own in one piece of work: others go on, and it is tried again."""

from dataclasses import dataclass, field

import pytest

from service.mergequeue.engine.reasons import HoldReason
from tests.harness.world import World, WorldOptions


@dataclass
class Broken:
    """A crash point that raises at one point, as code with a mistake would, until it is mended."""

    name: str = ""
    times: int = field(default=0, init=False)

    def reach(self, name: str) -> None:
        """Pass, or raise as nobody expects it."""
        if name == self.name:
            self.times += 1
            raise KeyError(name)


@pytest.fixture
def mistake() -> Broken:
    """What is wrong with the service of this test."""
    return Broken()


@pytest.fixture
def world_options(mistake: Broken) -> WorldOptions:
    """A service with the mistake."""
    return WorldOptions(crash_points=mistake)


@pytest.mark.breaks_promises
@pytest.mark.fault(
    "a mistake of ours breaks every try of a landing",
    holds="fewer than 12 tries, then a hold by name; it lands once mended",
    within="1 h",
)
async def test_a_landing_that_breaks_holds_its_queue_by_name_and_lands_once_it_is_mended(
    world: World, mistake: Broken
) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue(merge_method="SQUASH")
    mistake.name = "act.land.before_send"
    await world.comment("/merge", on=number)

    async def is_held() -> bool:
        return bool((await world.value()).holds)

    await world.until(is_held, within_s=3600)
    (hold,) = (await world.value()).holds
    assert hold.reason is HoldReason.LANDING_UNRESOLVED
    assert mistake.times < 12
    mistake.name = ""

    async def has_landed() -> bool:
        return await world.state(number) == "MERGED"

    await world.until(has_landed, within_s=3600)
    assert (await world.value()).holds == ()


@pytest.mark.fault(
    "a mistake of ours breaks a delivery once",
    holds="it is done at the next try",
    within="20 min",
)
async def test_what_breaks_once_in_a_delivery_is_done_at_the_next_try(
    world: World, mistake: Broken
) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue(merge_method="SQUASH")
    mistake.name = "tx.turn.before_commit"
    await world.comment("/merge", on=number)

    async def has_broken() -> bool:
        return mistake.times > 0

    await world.until(has_broken)
    mistake.name = ""
    await world.settle()
    assert await world.state(number) == "MERGED"
