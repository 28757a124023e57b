"""Attacks that would stop the queue for good by a short outage of the database."""

from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from tests.adversary.judge import landed_on
from tests.harness.database_faults import Faulty, Moment, put_between
from tests.harness.world import World, WorldOptions

OUTAGE_S = 12.0
"""World seconds."""
SOON_S = 400.0


@pytest.fixture
def moment() -> Moment:
    """The point of the story at which the database fails; each test names its own."""
    return Moment("")


@pytest.fixture
def world_options(moment: Moment) -> WorldOptions:
    return WorldOptions(crash_points=moment)


@pytest.fixture
async def faulty(world: World) -> Faulty:
    """The place between the service and its database."""
    return put_between(world.runtime.store)


async def ready(world: World) -> int:
    """A pull request whose own checks have passed."""
    number = await world.open()
    await world.settle()
    return number


async def lands_once(world: World, *numbers: int) -> None:
    """Wait until all are merged and the world rests; each has landed once."""

    async def are_merged() -> bool:
        return set(numbers) <= set(await world.merged())

    await world.until(are_merged, within_s=SOON_S)
    await world.settle()
    assert len(await landed_on(world)) == len(numbers)


def outage(world: World, faulty: Faulty) -> Callable[[], None]:
    """What begins an outage of the database."""

    def begin() -> None:
        until = world.clock.monotonic_s() + OUTAGE_S
        faulty.is_away = lambda: world.clock.monotonic_s() < until

    return begin


def is_over(faulty: Faulty) -> Callable[[], Awaitable[bool]]:
    """Whether the database can be used again."""

    async def over() -> bool:
        return not faulty.is_away()

    return over


@pytest.mark.fault(
    "the database is away for 12 s while a test branch is built",
    holds="all land once",
    within="400 s",
)
async def test_an_outage_while_a_test_branch_is_built_leaves_no_build_behind(
    world: World, faulty: Faulty, moment: Moment
) -> None:
    """Hurts everybody in the queue: the build stays `sent` for ever and nothing is tested."""
    one, other = await ready(world), await ready(world)
    moment.name, moment.then = "act.build.before_send", outage(world, faulty)
    await world.comment("/merge", on=one)
    await world.comment("/merge", on=other)
    await world.until(lambda: _passed(moment))
    await world.until(is_over(faulty))
    await lands_once(world, one, other)


@pytest.mark.fault(
    "the database is away for 12 s during a merge call",
    holds="it lands once",
    within="400 s",
)
async def test_an_outage_while_the_merge_call_is_under_way_leaves_no_landing_behind(
    world: World, faulty: Faulty, moment: Moment
) -> None:
    """Hurts everybody in the queue: the landing stays `sent`, cancel and pause wait in vain."""
    number = await ready(world)
    await world.make_queue(merge_method="SQUASH")
    moment.name, moment.then = "act.land.after_send", outage(world, faulty)
    await world.comment("/merge", on=number)
    await world.until(lambda: _passed(moment))
    await world.until(is_over(faulty))
    await lands_once(world, number)


async def _passed(moment: Moment) -> bool:
    return moment.passes > 0


@pytest.mark.fault(
    "six claims of effects fail",
    holds="no effect under way is cut off",
    within="400 s",
)
async def test_a_claim_that_fails_cancels_no_effect_under_way(
    world: World, faulty: Faulty, moment: Moment
) -> None:
    """Hurts everybody in the queue: a merge call is cut off by a question beside it."""
    number = await ready(world)

    def no_claims() -> None:
        faulty.claims_to_fail = 6

    moment.name, moment.then = "act.build.before_send", no_claims
    await world.comment("/merge", on=number)
    await lands_once(world, number)
    assert faulty.claims_to_fail == 0
    assert moment.passes == 1


@pytest.mark.fault(
    "the answers to three claims are lost",
    holds="each claim is found again",
    within="400 s",
)
async def test_a_claim_whose_answer_is_lost_is_found_again(world: World, faulty: Faulty) -> None:
    """Hurts everybody in the queue: an effect is claimed, and no task knows of it."""
    number = await ready(world)
    faulty.claims_to_lose = 3
    await world.comment("/merge", on=number)
    await lands_once(world, number)
    assert faulty.claims_to_lose == 0


@pytest.mark.fault(
    "the record of a landing is committed and its answer lost",
    holds="one merge call",
    within="400 s",
)
async def test_a_landing_whose_record_is_answered_by_no_database_is_not_sent_twice(
    world: World, faulty: Faulty, moment: Moment
) -> None:
    """Hurts everybody who builds main: the merge is recorded, and made once more."""
    number = await ready(world)
    await world.make_queue(merge_method="SQUASH")

    def lose() -> None:
        faulty.lose_next_turn()

    moment.name, moment.then = "act.land.before_settle", lose
    await world.comment("/merge", on=number)
    await lands_once(world, number)
    calls = [
        call
        for call in world.sandbox.world.calls
        if call["method"] == "PUT" and str(call["path"]).endswith("/merge")
    ]
    assert len(calls) == 1
    assert faulty.struck


@pytest.mark.fault(
    "eight turns fail",
    holds="no command is lost",
    within="400 s",
)
async def test_a_database_that_fails_now_and_then_loses_no_command(
    world: World, faulty: Faulty
) -> None:
    """Hurts whoever commented: after five failures the delivery is parked, and unheard."""
    number = await ready(world)
    await world.make_queue()
    faulty.kinds_to_fail["turn"] = 8
    await world.comment("/merge", on=number)
    await lands_once(world, number)
    assert faulty.kinds_to_fail["turn"] == 0


async def test_readiness_is_denied_while_nothing_can_be_written(
    world: World, faulty: Faulty
) -> None:
    """Hurts whoever deploys: the balancer sends every request to the one that cannot answer."""
    async with aiohttp.ClientSession(world.url) as http:

        async def answers(status: int) -> bool:
            async with http.get("/readyz") as ready, http.get("/healthz") as alive:
                assert alive.status == 200
                return ready.status == status

        await world.until(lambda: answers(200))
        faulty.is_away = lambda: True
        await world.until(lambda: answers(503))
        faulty.is_away = lambda: False
        await world.until(lambda: answers(200))
