"""Whether this process should get requests, and how the service is (API.md 10)."""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

READY_STATUS, NOT_READY_STATUS = 200, 503


class Check(StrEnum):
    """What readiness depends on; trouble with the provider alone does not end it."""

    DATABASE = "database"
    SCHEMA = "schema"
    RECOVERY = "recovery"
    WORKERS = "workers"
    PROVIDER = "provider"


OURS = (Check.DATABASE, Check.SCHEMA, Check.RECOVERY, Check.WORKERS)
"""Checks that somebody marks; how the provider is follows from what it answers."""


class Word(StrEnum):
    """How one check stands."""

    OK = "ok"
    RUNNING = "running"
    DEGRADED = "degraded"
    FAILED = "failed"


class Readiness:
    """The present word of each check; whoever learns of a change marks it.

    At first the recovery runs and everything else is well: a database that cannot be opened
    keeps the process from getting here.
    """

    def __init__(self, troubled: Callable[[], Collection[object]] = tuple) -> None:
        """`troubled` gives the hosts that cannot be read now."""
        self._troubled = troubled
        self._words = dict.fromkeys(OURS, Word.OK) | {Check.RECOVERY: Word.RUNNING}

    def mark(self, check: Check | str, word: Word | str) -> None:
        """Say how one of `OURS` stands now."""
        self._words[Check(check)] = Word(word)

    @property
    def is_recovering(self) -> bool:
        """Whether the recovery after the start still runs."""
        return self._words[Check.RECOVERY] is not Word.OK

    @property
    def is_ready(self) -> bool:
        """Whether requests may be sent here."""
        return all(word is Word.OK for word in self._words.values())

    def checks(self) -> Mapping[Check, Word]:
        """Every check and its word, in the order of API.md 10."""
        provider = Word.DEGRADED if self._troubled() else Word.OK
        return {**self._words, Check.PROVIDER: provider}


def healthz(_readiness: Readiness, _version: str) -> tuple[int, object]:
    """The loop turns, or this would not be answered."""
    return READY_STATUS, {"status": "ok"}


def readyz(readiness: Readiness, _version: str) -> tuple[int, object]:
    """Whether a balancer may send requests here, and why not."""
    is_ready = readiness.is_ready
    words = {check.value: word.value for check, word in readiness.checks().items()}
    body = {"status": "ready" if is_ready else "not_ready", "checks": words}
    return READY_STATUS if is_ready else NOT_READY_STATUS, body


def status(readiness: Readiness, version: str) -> tuple[int, object]:
    """`/v1/status`: `red` when nothing can land, `yellow` when something limps."""
    words = readiness.checks()
    engine = all(
        words[check] is Word.OK for check in (Check.DATABASE, Check.RECOVERY, Check.WORKERS)
    )
    provider = words[Check.PROVIDER]
    services = {
        "api": True,
        "engine": engine,
        "provider": provider is Word.OK,
        # Endpoints are told by workers of this process, from the same database.
        "webhooks": engine,
    }
    severity = None
    if not engine:
        severity = "red"
    elif provider is not Word.OK:
        severity = "yellow"
    return READY_STATUS, {
        "overallStatus": "up" if severity is None else "impacted",
        "severity": severity,
        "services": [
            {"name": name, "status": "up" if is_up else "impacted"}
            for name, is_up in services.items()
        ],
        "version": version,
    }
