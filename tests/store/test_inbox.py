"""Deliveries: stored once, worked on in order of their lane."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import Connection

from service.database import inbox
from service.database.database import Store
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


def claimed(session: Connection, seconds: int = 100, limit: int = 8) -> list[str]:
    rows = inbox.claim(session, ME, NOW + seconds * SECOND, limit)
    return [row.delivery.id for row in rows]


def test_a_delivery_comes_back_as_it_came(session: Connection):
    accept_all(session, a_delivery(1))
    (row,) = inbox.claim(session, ME, NOW + MINUTE, 8)
    assert row.delivery == a_delivery(1)
    assert (row.lane, row.attempts) == ("github.test/101", 1)


def test_a_delivery_without_a_repository_has_the_lane_of_its_host(session: Connection):
    accept_all(session, replace(a_delivery(1, None), action=None))
    (row,) = inbox.claim(session, ME, NOW + MINUTE, 8)
    assert row.delivery == replace(a_delivery(1, None), action=None)
    assert row.lane == "github.test/"


def test_a_known_delivery_is_not_stored_again(session: Connection):
    accept_all(session, a_delivery(1))
    assert not inbox.accept(session, replace(a_delivery(1), body=b"other"))
    assert inbox.accept(session, replace(a_delivery(1), host="other.test"))
    (row, _) = inbox.claim(session, ME, NOW + MINUTE, 8)
    assert row.delivery == a_delivery(1)


def test_what_came_in_is_known_whatever_became_of_it(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2), a_delivery(3))
    inbox.settle(session, 1, "done")
    inbox.poison(session, 2, "stopped us")
    asked = [f"guid-{number}" for number in range(3000)]
    assert inbox.stored_ids(session, "github.test", asked) == {"guid-1", "guid-2", "guid-3"}
    assert inbox.stored_ids(session, "other.test", asked) == frozenset()
    assert inbox.stored_ids(session, "github.test", []) == frozenset()


async def test_of_many_at_once_exactly_one_is_stored(store: Store):
    stored = await asyncio.gather(
        *(store.run_kind("accept", inbox.accept, a_delivery(1)) for _ in range(30))
    )
    assert stored.count(True) == 1
    assert len(await store.run(inbox.claim, ME, NOW + MINUTE, 8)) == 1


def test_a_lane_gives_only_its_oldest(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2), a_delivery(3, "7"), a_delivery(4, None))
    assert claimed(session) == ["guid-1", "guid-3", "guid-4"]


def test_at_most_the_limit_is_given_oldest_first(session: Connection):
    accept_all(session, *(a_delivery(number, f"lane-{9 - number}") for number in range(5)))
    assert claimed(session, limit=2) == ["guid-0", "guid-1"]
    assert claimed(session, limit=2) == ["guid-2", "guid-3"]


def test_a_taken_delivery_holds_its_lane_until_it_is_settled(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    (first,) = inbox.claim(session, ME, NOW + MINUTE, 8)
    assert claimed(session, seconds=61) == []
    inbox.settle(session, first.id, "ignored")
    assert claimed(session, seconds=61) == ["guid-2"]


def test_a_delivery_that_takes_long_is_taken_by_no_other_worker(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    assert claimed(session, seconds=10) == ["guid-1"]
    for minutes in (1, 10, 59):
        assert inbox.claim(session, "another", NOW + minutes * MINUTE, 8) == ()


def test_a_delivery_is_free_again_after_an_hour(session: Connection):
    accept_all(session, a_delivery(1))
    assert claimed(session, seconds=10) == ["guid-1"]
    assert claimed(session, seconds=3609) == []
    (row,) = inbox.claim(session, ME, NOW + 3610 * SECOND, 8)
    assert row.attempts == 2


def test_what_is_claimed_stays_with_the_living_and_leaves_the_dead(session: Connection):
    accept_all(session, a_delivery(1))
    assert claimed(session, seconds=10) == ["guid-1"]
    assert inbox.release(session, ["another", ME]) == 0
    assert claimed(session, seconds=11) == []
    assert inbox.release(session, ["another"]) == 1
    assert claimed(session, seconds=11) == ["guid-1"]
    assert inbox.release(session, []) == 1


def test_a_delivery_that_failed_waits_and_its_lane_with_it(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    (row,) = inbox.claim(session, ME, NOW + MINUTE, 8)
    inbox.retry(session, row.id, NOW + 2 * MINUTE, "no answer " * 100)
    assert claimed(session, seconds=119) == []
    assert claimed(session, seconds=120) == ["guid-1"]


def test_a_poisoned_delivery_is_parked_and_its_lane_goes_on(session: Connection):
    accept_all(session, a_delivery(1), a_delivery(2))
    (row,) = inbox.claim(session, ME, NOW + MINUTE, 8)
    assert inbox.parked(session) == 0
    inbox.poison(session, row.id, "KeyError")
    assert inbox.parked(session) == 1
    assert claimed(session) == ["guid-2"]


def test_what_is_settled_stays_settled(session: Connection):
    accept_all(session, a_delivery(1))
    (row,) = inbox.claim(session, ME, NOW + MINUTE, 8)
    inbox.settle(session, row.id, "done")
    inbox.retry(session, row.id, NOW, "late")
    inbox.poison(session, row.id, "late")
    assert claimed(session) == []
    assert inbox.parked(session) == 0
    assert not inbox.accept(session, a_delivery(1))


async def test_two_workers_never_take_the_same(store: Store):
    await store.run(accept_all, *(a_delivery(number, str(number)) for number in range(20)))
    taken = await asyncio.gather(*(store.run(claimed, 100, 3) for _ in range(20)))
    everything = [each for group in taken for each in group]
    assert len(everything) == len(set(everything)) > 0


def test_the_next_delivery_is_due_when_the_first_of_a_lane_may_be_claimed(session: Connection):
    assert inbox.next_due(session) is None
    accept_all(session, a_delivery(5), a_delivery(1), a_delivery(3, "102"))
    # The older one of the same lane comes first, whenever it was received.
    assert inbox.next_due(session) == NOW + 3 * SECOND
    rows = inbox.claim(session, ME, NOW + 9 * SECOND, 1)
    assert [row.delivery.id for row in rows] == ["guid-5"]
    assert inbox.next_due(session) == NOW + 3 * SECOND
    (other,) = inbox.claim(session, ME, NOW + 9 * SECOND, 8)
    assert inbox.next_due(session) == NOW + 9 * SECOND + inbox.CLAIM
    inbox.retry(session, other.id, NOW + 40 * SECOND, "away")
    assert inbox.next_due(session) == NOW + 40 * SECOND
    inbox.settle(session, other.id, "")
    inbox.settle(session, rows[0].id, "")
    assert inbox.next_due(session) == NOW + 1 * SECOND
