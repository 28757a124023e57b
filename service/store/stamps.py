"""What stands under a stamp, and is found anew when the stamp is another."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

S = TypeVar("S")
T = TypeVar("T")


def renewed(
    session: Connection,
    known: tuple[object, T] | None,
    stamp: Callable[[Connection], S],
    find: Callable[[Connection, S], T],
) -> tuple[object, T]:
    """The present stamp and what is found under it, which is what is known under that stamp."""
    present = stamp(session)
    if known is not None and known[0] == present:
        return known
    return present, find(session, present)
