"""Recorded deliveries among the life of a queue: nothing raises, stalls or is merged wrongly.

A delivery is only a hint, so those of another queue must change nothing of this one's outcome
(docs/design/provider.md 1). Each story is a queue with three pull requests amid the deliveries of
some cases; `make soak` plays all cases in all orders.
"""

import itertools
import random

import pytest
from sqlalchemy import select

from service.database.database import Tx
from service.database.tables_deliveries import InboxRow
from tests.harness.world import World
from tests.recorded import recordings, replaying

RECORDED = recordings.of_2022()
CASES = [replaying.deliveries_of(case) for case in RECORDED.cases().values()]
CASES_EACH = 10
BEFORE = 20
"""So many deliveries come before the first `/merge`."""
ORDERS = ("recorded", "shuffled", "doubled")
PLAYED = {(0, "recorded", True), (70, "shuffled", False), (140, "doubled", True)}
STORIES = [
    pytest.param(*story, marks=() if story in PLAYED else pytest.mark.soak)
    for story in itertools.product(range(0, len(CASES), CASES_EACH), ORDERS, (True, False))
]


@pytest.mark.fault(
    "deliveries as GitHub really sent them, late, in another order, or twice",
    holds="each is answered, the queue lands what it would have landed, and comes to rest",
    within="20 minutes",
)
@pytest.mark.parametrize(("first", "order", "is_own"), STORIES)
async def test_a_queue_amid_recorded_deliveries_lands_everything(
    world: World, first: int, order: str, is_own: bool
) -> None:
    sent = [one for case in CASES[first : first + CASES_EACH] for one in case]
    if order == "shuffled":
        sent = replaying.in_any_order(sent, seed=first)
    if order == "doubled":
        sent = list(replaying.doubled(sent))
    numbers = [await world.open() for _ in range(3)]
    await world.make_queue()
    stage, chance = replaying.Stage(world, RECORDED, numbers, is_own), random.Random(first)
    statuses = await replaying.deliver(stage, sent[:BEFORE], chance)
    for number in numbers:
        await world.comment("/merge", number)
    statuses += await replaying.deliver(stage, sent[BEFORE:], chance)
    await world.settle()
    assert set(statuses) <= ({200, 202} if order == "doubled" else {202})
    assert await world.runtime.store.read(troubled) == []
    assert [await world.state(number) for number in numbers] == ["MERGED"] * 3
    assert sorted(await world.merged()) == numbers
    assert world.open_pulls() == []


def troubled(session: Tx) -> list[tuple[str, str, int]]:
    """Deliveries that were parked, or that a second attempt was needed for."""
    inbox = InboxRow.__table__
    asked = select(inbox.c.event, inbox.c.state, inbox.c.attempts)
    wanted = asked.where((inbox.c.state == "poisoned") | (inbox.c.attempts > 1))
    return [(row.event, row.state, row.attempts) for row in session.execute(wanted)]
