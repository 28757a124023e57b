"""What stands under a stamp, and is found anew when the stamp is another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import Connection

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Renewal(Generic[S, T]):
    """What is known with its stamp, None without any; how to ask for the stamp, and to find it."""

    known: tuple[object, T] | None
    stamp: Callable[[Connection], S]
    find: Callable[[Connection, S], T]

    def made(self, session: Connection) -> tuple[object, T]:
        """The present stamp and what is found under it: what is known if that is its stamp."""
        present = self.stamp(session)
        if self.known is not None and self.known[0] == present:
            return self.known
        return present, self.find(session, present)
