"""Free what instances that are gone had claimed: effects, deliveries and notifications."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from service.database import inbox, instances, outbox
from service.database.instances import Departure
from service.notifications.store import notifications


@dataclass(frozen=True, slots=True)
class Freed:
    """The instances that are gone, and how many claims of theirs were freed."""

    gone: tuple[str, ...]
    effects: int
    deliveries: int
    notifications: int


def free_those_of_gone(session: Connection, me: str, now: datetime) -> Freed:
    """Forget instances that are gone and free their claims; effects being sent become unknown."""
    return _freed(session, instances.forget_gone(session, me, now))


def free_mine(session: Connection, me: str, now: datetime) -> Freed:
    """The same for `me`, whose work has ended."""
    return _freed(session, instances.forget_me(session, me, now))


def _freed(session: Connection, departure: Departure) -> Freed:
    return Freed(
        gone=departure.gone,
        effects=outbox.reopen_sent(session, departure.living),
        deliveries=inbox.release(session, departure.living),
        notifications=notifications.release(session, departure.living),
    )
