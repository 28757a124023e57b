"""Faults of the database inside one process: a runner around the store's own.

Each write of the story has a number. A plan names the writes at which the database fails, and
how; a crash point can take the whole database away for a while.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from service.crash_points import NoCrashes
from service.database.claims import ClaimedRows
from service.database.database import AROUND_COMMIT, Runner, Store
from service.database.outbox import ClaimedEffect
from service.errors import DatabaseUnavailable

HANG_S = 0.3
"""How long a write that hangs takes until its time limit ends it, in seconds of this machine."""


class Fault(StrEnum):
    """What happens to a write: it fails, its answer is lost, or it hangs first."""

    FAILS = "fails"
    ANSWER_LOST = "answer_lost"
    HANGS = "hangs"
    HANGS_AND_COMMITS = "hangs_and_commits"


COMMITS = {Fault.ANSWER_LOST, Fault.HANGS_AND_COMMITS}
HANGS = {Fault.HANGS, Fault.HANGS_AND_COMMITS}


def away() -> DatabaseUnavailable:
    """The error of the store while its database cannot be used."""
    return DatabaseUnavailable("The database is away, as planned.", retry_after_s=1)


@dataclass(slots=True)
class Faulty:
    """A runner whose writes and reads go wrong as planned; anything else is the inner one's."""

    inner: Runner
    plan: dict[int, Fault] = field(default_factory=dict)
    is_away: Callable[[], bool] = field(default=lambda: False)
    writes: int = 0
    struck: list[int] = field(default_factory=list)
    claims_to_fail: int = 0
    claims_to_lose: int = 0
    turns_to_lose: int = 0
    kinds_to_fail: Counter[str] = field(default_factory=Counter)
    """How many more writes of a kind of `database.AROUND_COMMIT` fail."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def write(
        self, call: Callable[[Connection], Any], around_commit: tuple[str, str] | None
    ) -> Any:
        """Write, or fail as planned."""
        self.writes += 1
        fault = self.plan.get(self.writes)
        if fault is not None:
            self.struck.append(self.writes)
            if fault in HANGS:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), HANG_S)
            if fault in COMMITS:
                await self.inner.write(call, around_commit)
            raise away()
        if self.is_away() or self._kind_fails(around_commit):
            raise away()
        value = await self.inner.write(self._claim_fails(call), around_commit)
        if self.turns_to_lose and around_commit == AROUND_COMMIT["turn"]:
            self.turns_to_lose -= 1
            self.struck.append(self.writes)
            raise away()
        if self.claims_to_lose and is_claim(value) and value.rows:
            self.claims_to_lose -= 1
            raise away()
        return value

    def lose_next_turn(self) -> None:
        """Lose the answer to the next turn, which is committed."""
        self.turns_to_lose = 1

    def _kind_fails(self, around_commit: tuple[str, str] | None) -> bool:
        for kind, names in AROUND_COMMIT.items():
            if names == around_commit and self.kinds_to_fail[kind] > 0:
                self.kinds_to_fail[kind] -= 1
                return True
        return False

    def _claim_fails(self, call: Callable[[Connection], Any]) -> Callable[[Connection], Any]:
        """Let a claim of effects fail before its commit, as often as planned."""

        def failing(session: Connection) -> Any:
            value = call(session)
            if self.claims_to_fail and is_claim(value):
                self.claims_to_fail -= 1
                raise away()
            return value

        return failing if self.claims_to_fail else call

    async def read(self, call: Callable[[Connection], Any]) -> Any:
        """Read, unless the database is away."""
        if self.is_away():
            raise away()
        return await self.inner.read(call)


def is_claim(value: object) -> bool:
    """Whether a write returned claimed effects, or that there are none to claim."""
    if not isinstance(value, ClaimedRows):
        return False
    return all(isinstance(each, ClaimedEffect) for each in value.rows)


def put_between(store: Store) -> Faulty:
    """Put faults between a store and its database; none is planned yet."""
    faulty = Faulty(store.runner)
    store.runner = faulty
    return faulty


@dataclass(slots=True)
class Moment(NoCrashes):
    """A crash point that calls `then` when the story first passes `name`."""

    name: str
    then: Callable[[], None] = field(default=lambda: None)
    passes: int = 0

    def reach(self, name: str) -> None:
        """Notice the moment."""
        if name == self.name:
            self.passes += 1
            if self.passes == 1:
                self.then()
