"""What goes wrong, as the seed draws it: each history has some kinds of faults, some often."""

import random
import re
from collections.abc import Callable, Iterator
from enum import StrEnum

from bot.sandbox.faults import Fault, Faults
from bot.sandbox.records import Json


class Write(StrEnum):
    """What happens to a write."""

    FAILS = "fails"
    ANSWER_LOST = "answer lost"
    HANGS = "hangs"
    COMMITS_LATE = "commits late"


class DatabaseFaults:
    """The faults of one database."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_on = False
        self.rates: dict[Write, float] = {}
        self.read_rate = 0.0
        self.is_gone = False
        self.slow_s = 0.002

    def of_write(self, _: tuple[str, str] | None) -> Write | None:
        """What happens to the next write."""
        if not self.is_on:
            return None
        drawn = self.chance.random()
        for kind, rate in self.rates.items():
            if drawn < rate:
                return kind
            drawn -= rate
        return None

    def read_fails(self) -> bool:
        """Whether the next read fails."""
        return self.is_on and self.chance.random() < self.read_rate

    def is_away(self) -> bool:
        """Whether the database cannot be used now."""
        return self.is_on and self.is_gone

    def pause_s(self) -> float:
        """How long the next answer takes."""
        return self.chance.random() * self.slow_s

    def late_s(self) -> float:
        """How long a commit takes that is late; often longer than anybody waits."""
        return self.chance.choice((2.0, 6.0, 40.0))


CALLS: tuple[Json, ...] = (
    {"kind": "fail_before", "status": 500},
    {"kind": "fail_before", "status": 502},
    {"kind": "fail_before", "status": 503},
    {"kind": "fail_after", "status": 502},
    {"kind": "refuse", "status": 429, "message": "Too many requests"},
    {"kind": "secondary_limit", "retry_after": 20},
    {"kind": "secondary_limit"},
    {"kind": "primary_limit", "s": 90},
    {"kind": "hang", "s": 3},
    {"kind": "hang", "s": 20},
    {"kind": "reset_before"},
    {"kind": "reset_after"},
    {"kind": "truncate"},
    {"kind": "html"},
    {"kind": "html", "status": 502},
    {"kind": "token_expired"},
    {"kind": "mergeable_null", "s": 20},
    {"kind": "graphql_partial"},
)
DELIVERIES: tuple[Json, ...] = (
    {"kind": "drop"},
    {"kind": "duplicate", "n": 1},
    {"kind": "delay", "s": 40},
    {"kind": "reorder", "window": 10},
)


SAID = re.compile(r"/(comments|reactions|check-runs)")
MUTED: Json = {
    "kind": "refuse", "status": 403, "message": "Resource not accessible by integration",
}  # fmt: skip
GRACE_S = 1.0
"""So long a call may be under way that was sent before the limit was heard of."""


LATE_S = (0.5, 5.0, 20.0)
"""So long after its connection was cut a write is carried out."""


class Caller(StrEnum):
    """As whom the service calls GitHub, which limits each of them apart."""

    APP = "app"
    INSTALLATION = "installation"


CALLERS = (
    (re.compile(r"/app(/.*)?|/repos/[^/]+/[^/]+/installation"), Caller.APP),
    (re.compile(r"/(repos|installation|graphql)(/.*)?"), Caller.INSTALLATION),
)


def caller_of(path: str) -> Caller | None:
    """Return who makes the calls of a path; None for git."""
    return next((caller for form, caller in CALLERS if form.fullmatch(path)), None)


def _writes(method: str, document: str | None) -> bool:
    """Whether a call changes anything."""
    return method != "GET" and (document is None or document.lstrip().startswith("mutation"))


class ProviderFaults(Faults):
    """The faults of GitHub: any call or delivery may have one."""

    def __init__(self, chance: random.Random, now_s: Callable[[], float]) -> None:
        super().__init__()
        self._now_s = now_s
        self._closed: dict[Caller, tuple[float, float]] = {}
        self.disobeyed: list[str] = []
        self.chance = chance
        self.is_on = False
        self.calls: tuple[Json, ...] = ()
        self.call_rate = 0.0
        self.late_rate = 0.0
        self.is_muted = False
        self.deliveries: tuple[Json, ...] = ()
        self.delivery_rate = 0.0

    def of_call(self, method: str, path: str, document: str | None) -> list[Fault]:
        """Return what goes wrong with a call."""
        self._note(method, path)
        if self.is_on and self.is_muted and method != "GET" and SAID.search(path):
            return [Fault(0, {}, MUTED)]
        is_late = self.is_on and self.late_rate > 0 and _writes(method, document)
        if is_late and self.chance.random() < self.late_rate:
            return [Fault(0, {}, {"kind": "late", "s": self.chance.choice(LATE_S)})]
        if not (self.is_on and self.calls and self.chance.random() < self.call_rate):
            return []
        chosen = self.chance.choice(self.calls)
        if chosen["kind"] == "graphql_partial" and document is None:
            return []
        caller, now_s = caller_of(path), self._now_s()
        if chosen.get("retry_after") and caller is not None:
            self._closed[caller] = (now_s + GRACE_S, now_s + chosen["retry_after"])
        match = {"graphql": ""} if document is not None else {}
        return [Fault(0, match, chosen)]

    @property
    def closed_until_s(self) -> float | None:
        """Until when the limit of the installation holds that was heard of; None without one."""
        begin_s, end_s = self._closed.get(Caller.INSTALLATION, (0.0, 0.0))
        return end_s if begin_s < self._now_s() < end_s else None

    def forget(self) -> None:
        """A process that starts knows of no limit."""
        self._closed.clear()

    def _note(self, method: str, path: str) -> None:
        """Note a call that a limit forbade."""
        caller = caller_of(path)
        begin_s, end_s = (0.0, 0.0) if caller is None else self._closed.get(caller, (0.0, 0.0))
        if begin_s < self._now_s() < end_s - GRACE_S:
            self.disobeyed.append(f"{method} {path} was sent within Retry-After")

    def of_delivery(self, event: str, action: str | None) -> Iterator[Fault]:
        """Yield what goes wrong with a delivery."""
        if self.is_on and self.deliveries and self.chance.random() < self.delivery_rate:
            yield Fault(0, {}, self.chance.choice(self.deliveries))
