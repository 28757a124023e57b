"""Which attempts are taken up first: fair between organizations, then by their time."""

from contextlib import suppress
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from service.accounts.store import access
from service.notifications.store import notifications, subscribers
from service.notifications.store.notifications import Attempt, Message
from service.notifications.store.subscribers import Endpoint
from tests.harness import databases
from tests.store.conftest import ME, NOW

SECOND = timedelta(seconds=1)


def told(session: Connection, org_id: int, endpoint: str, messages: int, *, after_s: int) -> None:
    """An endpoint with messages that became due so long after now."""
    wish = Endpoint(
        id=endpoint,
        org_id=org_id,
        url="https://example.org/",
        events=("*",),
        repositories=None,
        description="",
        secret=b"",
        created_at=NOW,
    )
    subscribers.create(session, wish)
    at = NOW + after_s * SECOND
    for n in range(messages):
        message = Message(f"{endpoint}-{n}", org_id, "queue.held", at, "{}")
        notifications.append(session, message, [endpoint], at)


@pytest.fixture
def organizations(session: Connection) -> tuple[int, int]:
    """Two of them."""
    octo = access.ensure_organization(session, "github.com", "1", "octo")
    initech = access.ensure_organization(session, "github.com", "2", "initech")
    return octo.id, initech.id


def test_slow_receivers_of_one_organization_take_no_place_from_another(
    session: Connection, organizations: tuple[int, int]
):
    octo, initech = organizations
    for n in range(20):
        told(session, octo, f"slow-{n}", 8, after_s=n)
    told(session, initech, "quick", 1, after_s=60)
    later = NOW + 61 * SECOND
    # Until the other one has anything to say, every place is theirs.
    assert len(notifications.claim(session, ME, NOW + 30 * SECOND, 60)) == 60
    (taken,) = notifications.claim(session, ME, later, 1)
    assert taken.endpoint == "quick"
    assert {each.endpoint for each in notifications.claim(session, ME, later, 3)} <= {
        f"slow-{n}" for n in range(20)
    }


def test_two_instances_together_take_four_of_one_endpoint(postgres_url: str):
    with databases.connected(postgres_url) as one, databases.connected(postgres_url) as other:
        octo = access.ensure_organization(one, "github.com", "1", "octo")
        for statements in range(6):
            told(one, octo.id, f"slow-{statements}", 9, after_s=0)
            one.commit()
            taken = claimed_by_two(one, other, statements)
            assert len({attempt.id for attempt in taken}) == len(taken) == 4


def claimed_by_two(one: Connection, other: Connection, statements: int) -> list[Attempt]:
    """What two claim, the other one as soon as the one has made so many statements."""
    taken: list[Attempt] = []
    left = count(statements, -1)

    def claim_meanwhile(*_: object) -> None:
        if next(left) == 0:
            # It would wait until the one commits, and here gives way instead.
            with suppress(OperationalError), other.begin():
                other.exec_driver_sql("SET LOCAL lock_timeout = '20ms'")
                taken.extend(notifications.claim(other, "other", NOW, 64))

    event.listen(one, "after_cursor_execute", claim_meanwhile)
    taken.extend(notifications.claim(one, ME, NOW, 64))
    event.remove(one, "after_cursor_execute", claim_meanwhile)
    one.commit()
    with other.begin():
        taken.extend(notifications.claim(other, "other", NOW, 64))
    return taken


LANES = [("a", 1), ("b", 1), ("c", 2), ("gone", None)]


@pytest.mark.parametrize(
    ("under_way", "of_organization", "limit", "shares"),
    [
        ({}, {}, 100, {"a": 4, "c": 4, "gone": 4, "b": 4}),
        ({}, {}, 3, {"a": 1, "c": 1, "gone": 1}),
        ({}, {}, 4, {"a": 2, "c": 1, "gone": 1}),
        ({"a": 4}, {1: 4}, 2, {"c": 1, "gone": 1}),
        ({"a": 4}, {1: 4}, 9, {"c": 4, "gone": 4, "b": 1}),
        ({"a": 3, "c": 4}, {1: 3, 2: 4}, 100, {"gone": 4, "a": 1, "b": 4}),
        ({"a": 4, "b": 4, "c": 4, "gone": 4}, {}, 100, {}),
        ({}, {}, 0, {}),
    ],
)
def test_places_go_to_whoever_has_the_fewest(under_way, of_organization, limit, shares):
    assert notifications.shares_of(LANES, under_way, of_organization, limit) == shares
