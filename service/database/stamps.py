"""Values that are valid while a stamp is unchanged, and are read again when it changes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import Connection

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Renewal(Generic[S, T]):
    """A known value with its stamp, if any; how to read the stamp, and how to read the value."""

    known: tuple[object, T] | None
    stamp: Callable[[Connection], S]
    find: Callable[[Connection, S], T]

    def made(self, session: Connection) -> tuple[object, T]:
        """Return the present stamp and its value: the known one if its stamp is unchanged."""
        present = self.stamp(session)
        if self.known is not None and self.known[0] == present:
            return self.known
        return present, self.find(session, present)
