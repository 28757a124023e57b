"""A repository whose flaky tests are found and confirmed, for the picture of its quality."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from random import Random

from bot import wiring
from service.database.database import Store
from service.http.health import Readiness
from service.runtime import DashboardAuth
from service.vocabulary import Sha
from tests.api.wire import served
from tests.browser.lead import Lead, report
from tests.dashboard.queue_stage import NOW
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST

TESTS, DAYS, RUNS = 120, 40, 8
RATES = (0.3, 0.25, 0.2, 0.16, 0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.015, 0.01)
"""Of the flaky tests. The fourth is mended, and from the sixth on each begins some days later."""

MENDED = 24
NOISE = 0.012
"""How often a run fails one sound test."""


def _is_flaky(nth: int, day: int) -> bool:
    return (nth != 3 or day < MENDED) and (nth < 5 or day >= 3 * (nth - 4))


@asynccontextmanager
async def judged(store: Store) -> AsyncIterator[Lead]:
    """Serve the pages of the repository to whoever is on this machine."""
    stage = await upload_stage.staged(store, "shop", NOW - timedelta(days=DAYS))
    chance = Random(7)
    for number in range(1, DAYS * RUNS + 1):
        day = number // RUNS
        stage.clock.present = NOW - timedelta(days=DAYS) + timedelta(hours=24 / RUNS * number)
        tests = dict.fromkeys(range(TESTS), "P")
        for nth, rate in enumerate(RATES):
            if _is_flaky(nth, day) and chance.random() < rate:
                tests[nth * 8] = "FP" if chance.random() < 0.7 else "F"
        if chance.random() < NOISE * RUNS:
            tests[chance.randrange(TESTS)] = "FP"
        given = {"sha": Sha(f"{number:040x}"), "run_id": f"{number}", "pr_number": 300 + number}
        await stage.send([report(number, tests)], **given)
    stage.clock.present = NOW
    options = replace(
        stage.runtime.options,
        dashboard_auth=DashboardAuth.LOOPBACK,
        main_host=HOST,
        public_url=None,
    )
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    runtime = replace(stage.runtime, options=options)
    async with served(wiring.build_own_app(runtime, readiness)) as port:
        yield Lead(f"http://127.0.0.1:{port}")
