"""A repository of 5,000 tests and twelve weeks, as the lead of its teams sees it."""

import math
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

from bot import wiring
from service.database.database import Store
from service.http.health import Readiness
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind, RunStatus
from service.runtime import DashboardAuth
from service.testhealth.operations import flags, settings, sweeps
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.reports.results import (
    Attempt,
    CaseResult,
    FileStatus,
    Format,
    Outcome,
    ReportFile,
)
from service.vocabulary import SYSTEM, Flag, Sha
from tests.api.wire import served
from tests.dashboard import queue_stage
from tests.dashboard.queue_stage import NOW, a_queue, a_run
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, Stage

TESTS, FILES, WEEKS, DAYS = 5000, 400, 12, 15
TEAMS = ("checkout", "search", "billing", "accounts", "mobile", "platform")
SUBJECTS = ("cart", "refund", "invoice", "login", "filter", "export", "address", "voucher", "price")
FLAKY = 40
LIMIT_MINUTES = 120


@dataclass(frozen=True)
class Lead:
    """The service, and the path of the repository's pages."""

    url: str
    home: str = "/octo/shop"


def file_of(nth: int) -> str:
    """The file of a test."""
    at = nth % FILES
    subject = SUBJECTS[at % len(SUBJECTS)]
    return f"tests/{TEAMS[at % len(TEAMS)]}/test_{subject}_{at:03}.py"


def owners() -> str:
    """The CODEOWNERS file: a team each, the platform has none."""
    return "".join(f"tests/{team}/ @octo/{team}\n" for team in TEAMS[:-1])


def _seconds(nth: int) -> float:
    return math.exp(Random(nth).gauss(-2.2, 1.6))


def report(nth: int, tests: Mapping[int, str], slower: float = 1.0) -> ReportFile:
    """A report of tests: number → its attempts as letters; some became slower."""
    cases = tuple(_cases(tests, Random(1000 + nth), slower))
    made = ReportFile(Format.JUNIT, FileStatus.ACCEPTED, cases)
    return replace(made, name="junit.xml", sha256=f"{nth:064}")


def _cases(tests: Mapping[int, str], chance: Random, slower: float) -> Iterator[CaseResult]:
    for nth, letters in tests.items():
        took = _seconds(nth) * chance.uniform(0.85, 1.2) * (slower if nth % 9 == 0 else 1)
        name = f"test_{SUBJECTS[nth % len(SUBJECTS)]}_{nth:04}"
        attempts = () if letters == "P" else tuple(_attempts(letters, took))
        yield CaseResult(name, "", "", file_of(nth), took, attempts)


def _attempts(letters: str, took: float) -> Iterator[Attempt]:
    for letter in letters:
        failed = letter == "F"
        outcome = Outcome.FAILED if failed else Outcome.PASSED
        yield Attempt(outcome, took, "TimeoutError: no answer within 5 s" if failed else "")


async def _seeded(store: Store) -> Stage:
    """Twelve weeks of failures of flaky tests, and two of the whole suite."""
    stage = await upload_stage.staged(store, "shop", NOW - timedelta(weeks=WEEKS))
    chance, number = Random(5), 0
    flaky = [nth * 117 % TESTS for nth in range(FLAKY)]
    some = dict.fromkeys([*flaky, *range(400, 1000)], "P")

    async def ran(tests: Mapping[int, str], slower: float = 1.0, **meta: object) -> None:
        nonlocal number
        number += 1
        sha, run_id = Sha(f"{number:040x}"), f"{number}"
        given = {"sha": sha, "run_id": run_id, "codeowners": owners(), "branch": "main", **meta}
        await stage.send([report(number, tests, slower)], **given)

    await ran(some)
    for case in (await stage.cases()).values():
        if int(case.name.rpartition("_")[2]) in flaky:
            said = FlagRequest(case.id, Flag.FLAKY, "fails once a week for no reason")
            await flags.put(stage.runtime, stage.repository, said, SYSTEM)
    for week in range(WEEKS):
        for _ in range(2 + round(5 * abs(math.sin(week / 2.2)))):
            stage.clock.present += timedelta(hours=20)
            failed = chance.sample(flaky, 2)
            pr: dict[str, Any] = {"branch": None, "pr_number": 400 + number}
            await ran({**some, **dict.fromkeys(failed, "F")}, **pr)
        stage.clock.present = NOW - timedelta(weeks=WEEKS - week - 1, hours=3)
        await sweeps.expire(stage.runtime)
    for day in range(DAYS, -1, -1):
        stage.clock.present = NOW - timedelta(days=day, hours=2)
        odd = {nth: "FP" if chance.random() < 0.2 else "P" for nth in flaky}
        await ran({**dict.fromkeys(range(TESTS), "P"), **odd}, 1.4 if day < 8 else 1.0)
    stage.clock.present = NOW
    changes = {"flake_cost_alert_minutes": LIMIT_MINUTES}
    await settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    return stage


def _flaked_runs() -> tuple[Run, ...]:
    """Test runs of each week that failed, each with a confirmation that passed."""
    made: list[Run] = []
    for nth in range(2 * WEEKS):
        begun = NOW - timedelta(days=3.4 * nth + 1.5)
        failed = a_run(
            *(6000 + 2 * nth, (600 + nth, 700 + nth)),
            status=RunStatus.FAILED, created_at=begun, built_at=begun, start_clock=begun,
            finished_at=begun + timedelta(minutes=12),
        )  # fmt: skip
        passed = a_run(
            *(6001 + 2 * nth, failed.prs), kind=RunKind.CONFIRMATION, steps=failed.steps,
            status=RunStatus.SUCCEEDED, created_at=begun, built_at=begun, start_clock=begun,
            finished_at=begun + timedelta(minutes=26 + 5 * (nth % 4)),
        )  # fmt: skip
        made += [failed, passed]
    return tuple(made)


@asynccontextmanager
async def lead(store: Store) -> AsyncIterator[Lead]:
    """Serve the pages of the repository to whoever is on this machine."""
    queue = (await queue_stage.staged(store, "main", "shop")).on_a_clock_that_stands()
    options = replace(
        queue.runtime.options,
        dashboard_auth=DashboardAuth.LOOPBACK,
        main_host=HOST,
        public_url=None,
    )
    await queue.put(a_queue(), runs=_flaked_runs())
    stage = await _seeded(store)
    await sweeps.expire(stage.runtime)
    runtime = replace(queue.runtime, options=options)
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    async with served(wiring.build_own_app(runtime, readiness)) as port:
        yield Lead(f"http://127.0.0.1:{port}")
