"""Deliveries: stored once, claimed by lanes, worked on in order of their lane."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from service.database import inbox, instances
from service.database.database import Store
from service.database.inbox import Accepted, ClaimedLane
from service.provider.signals import Delivery
from tests.store.conftest import ME, NOW

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def a_delivery(number: int, repository: str | None = "101") -> Delivery:
    """A delivery about a repository, received so many seconds from now."""
    return Delivery(
        host="github.test",
        id=f"guid-{number}",
        event="check_run",
        action="completed",
        repository_id=repository,
        body=b'{"n": %d}' % number,
        received_at=NOW + number * SECOND,
    )


def accept_all(session: Connection, *deliveries: Delivery) -> None:
    for delivery in deliveries:
        assert inbox.accept(session, delivery)


def claim(session: Connection, seconds: int = 100, limit: int = 8) -> tuple[ClaimedLane, ...]:
    return inbox.claim(session, ME, NOW + seconds * SECOND, limit)


def ids_of(claimed: Iterable[ClaimedLane]) -> list[list[str]]:
    """The deliveries of each claimed lane."""
    return [[row.delivery.id for row in lane.deliveries] for lane in claimed]


def claimed(session: Connection, seconds: int = 100, limit: int = 8) -> list[list[str]]:
    return ids_of(claim(session, seconds, limit))


def go_on(session: Connection, lane: ClaimedLane, seconds: int = 100) -> list[str]:
    """Settle what was claimed of a lane; what is claimed of it instead."""
    inbox.settle(session, [row.id for row in lane.deliveries], "done")
    following = inbox.proceed(session, lane, ME, NOW + seconds * SECOND)
    return [] if following is None else ids_of([following])[0]


def test_a_delivery_comes_back_as_it_came(session: Connection):
    accept_all(session, a_delivery(1))
    (lane,) = claim(session)
    (row,) = lane.deliveries
    assert (row.delivery, row.attempts) == (a_delivery(1), 1)


def test_a_delivery_without_a_repository_has_the_lane_of_its_host(session: Connection):
    accept_all(session, replace(a_delivery(1, None), action=None), a_delivery(2, None))
    (lane,) = claim(session)
    assert lane.deliveries[0].delivery == replace(a_delivery(1, None), action=None)
    assert ids_of([lane]) == [["guid-1", "guid-2"]]


def test_a_known_delivery_is_not_stored_again(session: Connection):
    accept_all(session, a_delivery(1))
    assert not inbox.accept(session, replace(a_delivery(1), body=b"other"))
    assert inbox.accept(session, replace(a_delivery(1), host="other.test"))
    (first, _) = claim(session)
    assert [row.delivery for row in first.deliveries] == [a_delivery(1)]


def test_what_came_in_is_known_whatever_became_of_it(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2), a_delivery(3))
    inbox.settle(session, [1], "done")
    inbox.poison(session, 2, "stopped us")
    asked = [f"guid-{number}" for number in range(3000)]
    assert inbox.stored_ids(session, "github.test", asked) == {"guid-1", "guid-2", "guid-3"}
    assert inbox.stored_ids(session, "github.test", ["guid-1", "guid-9"]) == {"guid-1"}
    assert inbox.stored_ids(session, "other.test", asked) == frozenset()
    assert inbox.stored_ids(session, "github.test", []) == frozenset()


async def test_of_many_at_once_exactly_one_is_stored(store: Store):
    stored = await asyncio.gather(
        *(store.run_kind("accept", inbox.accept, a_delivery(1)) for _ in range(30))
    )
    assert len(stored) - stored.count(None) == 1
    assert len(await store.run(inbox.claim, ME, NOW + MINUTE, 8)) == 1


def test_a_lane_gives_all_its_deliveries_in_order(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2), a_delivery(3, "7"), a_delivery(4, None))
    assert claimed(session) == [["guid-1", "guid-2"], ["guid-3"], ["guid-4"]]


def test_a_lane_gives_as_many_at_once_as_a_turn_takes(session: Connection):
    accept_all(session, *(a_delivery(number) for number in range(1, 70)))
    (lane,) = claim(session)
    assert len(lane.deliveries) == inbox.BUNCH_MAX
    assert lane.has_more
    assert go_on(session, lane) == [f"guid-{number}" for number in range(65, 70)]


def test_a_delivery_with_a_large_body_is_given_alone(session: Connection):
    small = replace(a_delivery(1), body=b"x" * inbox.SMALL_BYTES)
    large = replace(a_delivery(2), body=b"x" * (inbox.SMALL_BYTES + 1))
    accept_all(session, a_delivery(0), small, large, a_delivery(3))
    (lane,) = claim(session)
    assert ids_of([lane]) == [["guid-0", "guid-1"]]
    inbox.settle(session, [row.id for row in lane.deliveries], "")
    second = inbox.proceed(session, lane, ME, NOW + MINUTE)
    assert second is not None
    assert [row.delivery for row in second.deliveries] == [large]
    assert go_on(session, second) == ["guid-3"]


def test_at_most_so_many_lanes_are_given_longest_due_first(session: Connection):
    accept_all(session, *(a_delivery(number, f"lane-{9 - number}") for number in range(5)))
    assert claimed(session, limit=2) == [["guid-0"], ["guid-1"]]
    assert claimed(session, limit=2) == [["guid-2"], ["guid-3"]]


def test_what_comes_while_a_lane_is_worked_on_follows_its_deliveries(session: Connection):
    accept_all(session, a_delivery(1))
    (lane,) = claim(session)
    accepted = inbox.accept(session, a_delivery(2))
    assert accepted == Accepted(is_awaited=True)
    assert claimed(session) == []
    assert go_on(session, lane) == ["guid-2"]


def test_a_lane_whose_deliveries_are_settled_is_free_for_the_next_one(session: Connection):
    accept_all(session, a_delivery(1))
    (lane,) = claim(session)
    assert go_on(session, lane) == []
    assert inbox.next_due(session) is None
    assert inbox.accept(session, a_delivery(2)) == Accepted(is_awaited=False)
    assert claimed(session) == [["guid-2"]]


def test_a_lane_that_is_worked_on_long_is_taken_by_no_other_worker(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    assert claimed(session, seconds=10) == [["guid-1", "guid-2"]]
    for minutes in (1, 10, 59):
        assert inbox.claim(session, "another", NOW + minutes * MINUTE, 8) == ()


def test_a_lane_is_free_again_after_an_hour_of_the_databases_clock(session: Connection):
    accept_all(session, a_delivery(1))
    assert claimed(session, seconds=10) == [["guid-1"]]
    now = instances.time_of(session, NOW + 10 * SECOND)
    for after, count in ((3500 * SECOND, 0), (3700 * SECOND, 1)):
        assert inbox.release(session, [ME], now + after, thorough=False) == count
        assert claimed(session) == [["guid-1"]] * count


def test_what_is_claimed_stays_with_the_living_and_leaves_the_dead(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2, "7"))
    assert claimed(session, limit=1) == [["guid-1"]]
    assert inbox.claim(session, "another", NOW + MINUTE, 8)
    assert release(session, "another", ME) == 0
    assert claimed(session) == []
    assert release(session, "another") == 1
    assert claimed(session) == [["guid-1"]]
    assert release(session) == 2


def release(session: Connection, *living: str) -> int:
    return inbox.release(session, living, NOW, thorough=True)


def test_a_process_that_has_lost_its_lane_ends_nothing_of_the_one_that_has_it(
    session: Connection,
):
    accept_all(session, a_delivery(1))
    (lane,) = claim(session)
    release(session)
    (again,) = inbox.claim(session, "another", NOW + MINUTE, 8)
    assert inbox.proceed(session, lane, ME, NOW) is None
    inbox.give_back(session, ME, lane.id, NOW)
    assert inbox.claim(session, "a third", NOW + MINUTE, 8) == ()
    assert inbox.proceed(session, again, "another", NOW + MINUTE) is None
    assert inbox.next_due(session) is None


def test_a_delivery_that_failed_waits_and_its_lane_with_it(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    (lane,) = claim(session)
    put_off(session, lane, NOW + 2 * MINUTE)
    accept_all(session, a_delivery(3))
    assert claimed(session, seconds=119) == []
    (lane,) = claim(session, seconds=120)
    assert ids_of([lane]) == [["guid-1", "guid-2", "guid-3"]]
    assert [row.attempts for row in lane.deliveries] == [2, 1, 1]


def put_off(session: Connection, lane: ClaimedLane, until: datetime) -> None:
    """Have the first delivery of a lane wait."""
    inbox.retry(session, lane.deliveries[0].id, until, 1, "no answer " * 100)
    inbox.give_back(session, ME, lane.id, until)


def states(session: Connection) -> list[str]:
    """The states of all deliveries, oldest first."""
    rows = inbox.inbox
    return [*session.execute(select(rows.c.state).order_by(rows.c.id)).scalars()]


def test_a_poisoned_delivery_is_parked_and_its_lane_goes_on(session: Connection):
    accept_all(session, a_delivery(1))
    (lane,) = claim(session)
    inbox.poison(session, lane.deliveries[0].id, "KeyError")
    assert states(session) == ["poisoned"]
    accept_all(session, a_delivery(2))
    assert go_on(session, lane) == ["guid-2"]
    assert states(session) == ["poisoned", "open"]


def test_what_is_settled_stays_settled(session: Connection):
    accept_all(session, a_delivery(1))
    (lane,) = claim(session)
    (row,) = lane.deliveries
    inbox.settle(session, [row.id], "done")
    inbox.retry(session, row.id, NOW, 1, "late")
    inbox.poison(session, row.id, "late")
    assert go_on(session, lane) == []
    assert states(session) == ["done"]
    assert not inbox.accept(session, a_delivery(1))


async def test_two_workers_never_take_the_same(store: Store):
    await store.run(accept_all, *(a_delivery(number, str(number)) for number in range(20)))
    taken = await asyncio.gather(*(store.run(claimed, 100, 3) for _ in range(20)))
    everything = [each for group in taken for lane in group for each in lane]
    assert len(everything) == len(set(everything)) == 20


async def test_a_delivery_that_comes_while_its_lane_is_freed_is_lost_by_nobody(store: Store):
    worked: list[str] = []

    async def work() -> None:
        while len(worked) < 60:
            for lane in await store.run(claim):
                following: ClaimedLane | None = lane
                while following is not None:
                    worked.extend(ids_of([following])[0])
                    following = await store.run(end, following)

    def end(session: Connection, lane: ClaimedLane) -> ClaimedLane | None:
        inbox.settle(session, [row.id for row in lane.deliveries], "done")
        return inbox.proceed(session, lane, ME, NOW + 100 * SECOND)

    async def send(repository: int) -> None:
        for number in range(20):
            sent = a_delivery(100 * repository + number, str(repository))
            await store.run(accept_all, replace(sent, received_at=NOW))

    async with asyncio.timeout(30):
        await asyncio.gather(work(), work(), *(send(repository) for repository in range(3)))
    assert len(worked) == len(set(worked)) == 60


def test_the_next_delivery_is_due_when_the_first_of_a_free_lane_is(session: Connection):
    assert inbox.next_due(session) is None
    accept_all(session, a_delivery(5), a_delivery(1), a_delivery(3, "102"))
    # The older one of the same lane comes first, whenever it was received.
    assert inbox.next_due(session) == NOW + 3 * SECOND
    (lane,) = claim(session, seconds=4)
    assert ids_of([lane]) == [["guid-3"]]
    assert inbox.next_due(session) == NOW + 5 * SECOND
    put_off(session, lane, NOW + 40 * SECOND)
    (other,) = claim(session, seconds=9)
    assert ids_of([other]) == [["guid-5", "guid-1"]]
    assert inbox.next_due(session) == NOW + 40 * SECOND


def test_a_delivery_that_is_not_due_yet_ends_a_bunch(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(200), a_delivery(2))
    (lane,) = claim(session)
    assert ids_of([lane]) == [["guid-1"]]
    assert go_on(session, lane) == []
    assert inbox.next_due(session) == NOW + 200 * SECOND
    assert claimed(session, seconds=200) == [["guid-200", "guid-2"]]


def columns(session: Connection, number: int) -> tuple[str, str | None, int]:
    """State, note and attempts of a delivery."""
    table = inbox.inbox
    chosen = select(table.c.state, table.c.note, table.c.attempts)
    return tuple(session.execute(chosen.where(table.c.delivery_id == f"guid-{number}")).one())


def test_a_retry_changes_one_delivery_that_is_open(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2, "7"))
    (first, second) = claim(session)
    inbox.retry(session, first.deliveries[0].id, NOW, 1, "no answer")
    assert columns(session, 1) == ("open", "no answer", 1)
    assert columns(session, 2) == ("open", None, 0)
    inbox.settle(session, [second.deliveries[0].id], "done")
    inbox.retry(session, second.deliveries[0].id, NOW, 1, "late")
    assert columns(session, 2) == ("done", "done", 0)


def test_a_claim_that_no_task_owns_is_given_back(session: Connection):
    accept_all(session, *(a_delivery(number, str(number)) for number in range(1, 5)))
    (first, second) = claim(session, limit=2)
    inbox.claim(session, "another", NOW + MINUTE, 1)
    assert inbox.release_unowned(session, "a third", []) == 0
    assert inbox.release_unowned(session, ME, [first.id, second.id]) == 0
    assert inbox.release_unowned(session, ME, [first.id]) == 1
    assert inbox.release_unowned(session, ME, [first.id]) == 0
    assert claimed(session) == [["guid-2"], ["guid-4"]]


def test_lanes_that_must_wait_take_no_place_of_one_that_is_due(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2, "7"))
    (lane,) = claim(session, limit=1)
    put_off(session, lane, NOW + 10 * MINUTE)
    assert claimed(session, limit=1) == [["guid-2"]]


# What programs of schemas before 0018 do, which know no lanes: they claim the oldest open
# delivery of each repository in its own row.
OLDER_CLAIM = update(inbox.inbox).values(claimed_until=NOW + 60 * MINUTE, claimed_by="older")
OLDER_SETTLE = update(inbox.inbox).values(state="done", is_open=False, claimed_until=None)


def test_a_delivery_that_an_older_program_has_claimed_holds_its_lane(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    first = inbox.inbox.c.delivery_id == "guid-1"
    session.execute(OLDER_CLAIM.where(first))
    assert claimed(session) == []
    assert inbox.next_due(session) == NOW + 101 * SECOND
    assert claimed(session, seconds=102) == []
    assert held(session) == [True, False]
    session.execute(OLDER_SETTLE.where(first))
    assert claimed(session, seconds=104) == [["guid-2"]]


def test_a_lane_that_is_freed_keeps_what_an_older_program_has_claimed_in_it(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    for free in (
        lambda lane: inbox.give_back(session, ME, lane.id, NOW),
        lambda lane: inbox.release_unowned(session, ME, []),
        lambda lane: inbox.release(session, ["older"], NOW, thorough=False),
        lambda lane: inbox.release(session, ["older"], NOW, thorough=True),
    ):
        (lane,) = claim(session)
        session.execute(OLDER_CLAIM.where(inbox.inbox.c.delivery_id == "guid-1"))
        free(lane)
        assert held(session) == [True, False]
        session.execute(update(inbox.inbox).values(claimed_until=None))


def test_older_programs_see_what_is_claimed_and_what_is_free_again(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    (lane,) = claim(session)
    assert held(session) == [True, True]
    inbox.give_back(session, ME, lane.id, NOW)
    assert held(session) == [False, False]
    claim(session)
    inbox.release_unowned(session, ME, [])
    assert held(session) == [False, False]
    claim(session)
    inbox.release(session, [], NOW, thorough=False)
    assert held(session) == [False, False]


def held(session: Connection) -> list[bool]:
    """Whether each open delivery is claimed in its own row."""
    table = inbox.inbox
    rows = session.execute(select(table.c.claimed_until).order_by(table.c.id)).scalars()
    return [until is not None and until > NOW for until in rows]


def test_what_an_older_program_that_died_had_claimed_is_free_again(session: Connection):
    accept_all(session, a_delivery(1))
    session.execute(OLDER_CLAIM)
    assert inbox.release(session, ["older", ME], NOW, thorough=True) == 0
    assert inbox.release(session, [ME], NOW, thorough=True) == 1
    assert claimed(session) == [["guid-1"]]
    session.execute(update(inbox.inbox).values(claimed_by=None))
    assert inbox.release(session, [ME], NOW, thorough=True) == 1


def test_a_lane_whose_deliveries_an_older_program_has_settled_is_freed(session: Connection):
    accept_all(session, a_delivery(1))
    session.execute(OLDER_SETTLE)
    assert inbox.next_due(session) is not None
    assert claimed(session) == []
    assert inbox.next_due(session) is None
