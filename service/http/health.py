"""Report whether to send requests here, and how the service is (docs/design/http.md 10)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from service import time_limits
from service.clock import SystemClock
from service.errors import DatabaseUnavailable
from service.http.models.answers.common import Answer, SnakeAnswer
from service.http.models.answers.troubles import SnakeTrouble, TroubleShown
from service.http.route import VERSIONED, Open, Route
from service.troubles import Part, Troubles

READY_STATUS, NOT_READY_STATUS = 200, 503

PROBE_S = 3.0
"""The longest wait for the write that proves the database."""
ANSWERED_WITHIN_S = 1.5
"""The longest wait of those who ask; a proof that takes longer is there for the next one."""
PROBED_FOR_S = 1.0
"""How long a proof serves those who ask: anybody may, and each costs a write."""


class Check(StrEnum):
    """The things on which readiness depends; trouble with the provider alone does not end it."""

    DATABASE = "database"
    SCHEMA = "schema"
    RECOVERY = "recovery"
    WORKERS = "workers"
    PROVIDER = "provider"


OURS = (Check.DATABASE, Check.SCHEMA, Check.RECOVERY, Check.WORKERS)
"""Checks that somebody marks; how the provider is follows from what it answers."""


PROVIDER_PARTS = {Part.PROVIDER, Part.CREDENTIALS, Part.PRIMARY_LIMIT, Part.SECONDARY_LIMIT}
"""Troubles that degrade the provider; each of them passes without a restart of ours."""


class Word(StrEnum):
    """The states of one check."""

    OK = "ok"
    RUNNING = "running"
    DEGRADED = "degraded"
    FAILED = "failed"


class SharedWork:
    """Work with the database that one task does for all who ask, each of whom waits briefly.

    Health and metrics are asked for just when the database hangs. Then the answer has what was
    known before, and questions do not pile up.
    """

    def __init__(self, work: Callable[[], Awaitable[None]], kept_s: float = 0.0) -> None:
        """`kept_s`: how long the end of the work serves those who ask later."""
        self._work = work
        self._kept_s = kept_s
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Wait for the work, at most `ANSWERED_WITHIN_S`. Raises what it raised."""
        task = self._task
        if task is None:
            task = self._task = asyncio.create_task(self._run())
        await asyncio.wait((task,), timeout=ANSWERED_WITHIN_S)
        if task.done():
            task.result()

    async def _run(self) -> None:
        time_limits.answer_within(PROBE_S)
        try:
            await self._work()
        finally:
            asyncio.get_running_loop().call_later(self._kept_s, self._forget)

    def _forget(self) -> None:
        self._task = None


class Readiness:
    """The present word of each check; whoever learns of a change marks it.

    At first the recovery runs and everything else is well: a database that cannot be opened
    keeps the process from getting here. Whether it can be written now is found out by `probe`.
    """

    def __init__(
        self,
        troubles: Troubles | None = None,
        stalled: Callable[[], Collection[object]] = tuple,
        write: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`stalled` gives the queues that stand still, `write` proves the database."""
        self.troubles = troubles or Troubles(SystemClock())
        self._stalled = stalled
        self._write = write
        self._probe = SharedWork(self._prove, PROBED_FOR_S)
        self._words = dict.fromkeys(OURS, Word.OK) | {Check.RECOVERY: Word.RUNNING}

    def mark(self, check: Check | str, word: Word | str) -> None:
        """Say how one of `OURS` stands now."""
        self._words[Check(check)] = Word(word)

    async def probe(self) -> None:
        """Mark how the database is, by a real write; one serves all who ask within a second."""
        if self._write is not None:
            await self._probe.wait()

    async def _prove(self) -> None:
        if self._write is None:
            return
        try:
            async with asyncio.timeout(PROBE_S):
                await self._write()
        except (DatabaseUnavailable, TimeoutError):
            self.mark(Check.DATABASE, Word.FAILED)
        else:
            self.mark(Check.DATABASE, Word.OK)

    @property
    def is_recovering(self) -> bool:
        """Return whether the recovery after the start still runs."""
        return self._words[Check.RECOVERY] is not Word.OK

    @property
    def is_stalled(self) -> bool:
        """Return whether a queue stands still although something in it could move."""
        return bool(self._stalled())

    @property
    def is_ready(self) -> bool:
        """Return whether requests may be sent here."""
        words = self.checks()
        return all(words[check] is Word.OK for check in OURS)

    def checks(self) -> Mapping[Check, Word]:
        """Every check and its word, in the order of docs/design/http.md 10."""
        parts = {one.part for one in self.troubles.all()}
        database = Word.FAILED if Part.DATABASE in parts else self._words[Check.DATABASE]
        provider = Word.DEGRADED if parts & PROVIDER_PARTS else Word.OK
        return {**self._words, Check.DATABASE: database, Check.PROVIDER: provider}


ServiceName = Literal["api", "engine", "provider", "uploads", "webhooks"]
Severity = Literal["yellow", "red"]


class ServiceShown(Answer):
    """One part of the service."""

    name: ServiceName
    """The part of the service."""
    status: Literal["up", "impacted"]
    """Whether it works."""


class ServiceStatus(Answer):
    """How the service is; `red`: nothing can land, `yellow`: something limps."""

    overall_status: Literal["up", "impacted"]
    """Whether all parts work."""
    severity: Severity | None
    """`red`: nothing can land; `yellow`: a part does not work; null: all do."""
    services: list[ServiceShown]
    """Every part."""
    version: str
    """Version of the product. For example `0.9.0`."""
    troubles: list[TroubleShown]
    """What keeps this process from working, the gravest first; empty while all is well."""


class Alive(Answer):
    """The process turns."""

    status: Literal["ok"]
    """The process answers."""


class Checks(SnakeAnswer):
    """How each thing stands that readiness depends on; `provider` alone does not end it."""

    database: Word
    """Whether the database answers."""
    schema_: Word = Field(alias="schema")
    """Whether its schema is the one of this version."""
    recovery: Word
    """Whether the recovery after the start is over."""
    workers: Word
    """Whether the background jobs run."""
    provider: Word
    """Whether the provider answers."""


class Ready(SnakeAnswer):
    """Whether requests may be sent here."""

    status: Literal["ready", "not_ready"]
    """Whether requests may be sent here."""
    checks: Checks
    """What that depends on."""
    troubles: list[SnakeTrouble]
    """What keeps this process from working, the gravest first; empty while all is well."""


async def healthz(_readiness: Readiness, _version: str) -> tuple[int, Alive]:
    """Say that the process answers."""
    return READY_STATUS, Alive(status="ok")


async def readyz(readiness: Readiness, _version: str) -> tuple[int, Ready]:
    """Say whether a balancer may send requests here, and why not."""
    await readiness.probe()
    is_ready = readiness.is_ready
    checks = Checks.model_validate(readiness.checks())
    troubles = SnakeTrouble.each(readiness.troubles.public(), readiness.troubles.clock.now())
    body = Ready(status="ready" if is_ready else "not_ready", checks=checks, troubles=troubles)
    return READY_STATUS if is_ready else NOT_READY_STATUS, body


async def status(readiness: Readiness, version: str) -> tuple[int, ServiceStatus]:
    """Say whether the service works.

    `red` when nothing can land, `yellow` when a part does not work.
    """
    await readiness.probe()
    words = readiness.checks()
    engine = all(
        words[check] is Word.OK for check in (Check.DATABASE, Check.RECOVERY, Check.WORKERS)
    )
    provider = words[Check.PROVIDER] is Word.OK
    # Endpoints are notified by workers of this process, from the same database.
    services = [
        _shown("api", is_up=True),
        _shown("engine", is_up=engine and not readiness.is_stalled),
        _shown("provider", is_up=provider),
        _shown("webhooks", is_up=engine),
    ]
    troubles = readiness.troubles.public()
    is_limping = bool(troubles) or readiness.is_stalled
    severity: Severity | None = "red" if not engine else "yellow" if is_limping else None
    return READY_STATUS, ServiceStatus(
        overall_status="up" if severity is None else "impacted",
        severity=severity,
        services=services,
        version=version,
        troubles=TroubleShown.each(troubles, readiness.troubles.clock.now()),
    )


def _shown(name: ServiceName, *, is_up: bool) -> ServiceShown:
    return ServiceShown(name=name, status="up" if is_up else "impacted")


OPEN_ROUTES: tuple[Route, ...] = (
    Open(f"{VERSIONED}/status", status, ServiceStatus, operation="getStatus"),
    Open("/healthz", healthz, Alive, operation="getLiveness"),
    Open("/readyz", readyz, Ready, (200, 503), operation="getReadiness"),
)
"""The endpoints that need no token."""
