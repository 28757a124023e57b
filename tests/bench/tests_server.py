"""The process under test of `tests.py`: the lists of 100,000 tests, and one SQL query beside them.

Prints one line of JSON: its ports, a token, and of each list the bodies that ask for its pages.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

import aiohttp
import uvloop
from aiohttp import web
from sqlalchemy import bindparam, text, update

from service.clock import RandomIds
from service.database.database import Tx
from service.database.types import Utc
from service.runtime import Runtime
from service.testhealth.detector import figures as day_figures
from service.testhealth.operations import count_days
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.results import Outcome
from service.testhealth.settings import TestSettings
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import bitmaps, days, figures, quarantine, sets, states, uploads
from service.testhealth.store import cases as test_cases
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.cases import NewCase, Place
from service.testhealth.store.quarantine import Since
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.states import CaseState
from service.testhealth.store.uploads import Upload
from service.vocabulary import Health
from tests.bench import door
from tests.bench.door import REPO

KEY = RepositoryKey(REPO.owner, f"{REPO.host}/{REPO.slug}")
FOLDER = "/v1/flaky-tests"
SETS = "/sets"
SQL = "/sql"
TESTS = 100_000
FLAKY_EVERY, BROKEN_EVERY = 50, 100
UPLOADS_A_DAY = 20
FAILING_AN_UPLOAD = 3600
"""Half a million in a week."""
HIT_AN_UPLOAD = 100
"""Of these so many fail for a pull request."""
APART = 7919
"""Tests that fail often have numbers far from each other."""
PAGE = 100
PAGES_MAX = 20
KEPT_DAYS = 45
"""What is older is deleted while pages are read."""


async def serve(url: str, length: int) -> None:
    """Serve the lists of `length` days until the standard input ends."""
    runtime = await door.runtime_at(url)
    now = runtime.clock.now()
    place = await runtime.store.run(fill, now)
    # A day more than is kept: deleting begins where it is too old.
    for n in range((length + 1) * UPLOADS_A_DAY):
        await runtime.store.run(take_in, Place(*place), n, now)
    await count_days.count_due(runtime)
    token = await door.reader_of(runtime, REPO)
    runner, port = await door.opened(door.application(runtime))
    lists = {}
    for name, more in asked(now).items():
        lists[name] = await pages_of(f"http://127.0.0.1:{port}{FOLDER}/{name}", token, more)
    plain = web.Application()
    plain.router.add_post(SETS, having_sets(runtime, place[1]))
    plain.router.add_post(SQL, asking_sql(runtime, place[1]))
    bare, bare_port = await door.opened_plainly(plain)
    about = {"port": port, "bare": bare_port, "token": token, "lists": lists, "place": place}
    await door.stay(about, runtime, runner, bare)


def asked(now: datetime) -> Mapping[str, dict[str, object]]:
    """The lists, and what each is asked for beside its page."""
    # Uploads that come while pages are read lie in the range.
    end = (now + timedelta(hours=1)).isoformat()
    start = (now + timedelta(hours=1) - timedelta(days=7)).isoformat()
    return {
        "list-unhealthy-tests": {"status": "FLAKY"},
        "list-failing-tests": {"start_time": start, "end_time": end},
        "list-quarantined-tests": {},
    }


async def pages_of(url: str, token: str, more: dict[str, object]) -> list[str]:
    """Bodies that ask for each of the first pages."""
    bodies: list[str] = []
    page_token = ""
    headers = {"x-api-token": token, "Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:
        while len(bodies) < PAGES_MAX:
            query = {"page_size": PAGE, "page_token": page_token}
            repo = {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}
            body = json.dumps({"repo": repo, "org_url_slug": "octo", "page_query": query, **more})
            async with session.post(url, data=body) as answer:
                said = await answer.read()
                assert answer.status == 200, said
            bodies.append(body)
            page_token = json.loads(said)["page"]["next_page_token"]
            if not page_token:
                break
    return bodies


def having_sets(runtime: Runtime, repository_id: int):
    """A handler after which the sets of open days are at hand, as if taken in by this process."""

    async def handler(request: web.Request) -> web.Response:
        now, kept = runtime.clock.now(), runtime.store.caches.of(OutcomeSets)
        await runtime.store.read(figures.rates, kept, repository_id, [1], now)
        return web.Response()

    return handler


FAILING = text(
    """
    SELECT tests.no, tests.id, tests.name, tests.file, tests.status, most.failed FROM (
        SELECT no, sum(failed) AS failed FROM (
            SELECT no, failed FROM daily
            WHERE repository_id = :here AND day >= :day - 6 AND day < :day AND failed > 0
            UNION ALL
            SELECT no, count(*) FROM attempt
            WHERE repository_id = :here AND outcome = 'failed' AND is_eligible AND ran_at >= :today
            GROUP BY no
        ) AS parts GROUP BY no ORDER BY 2 DESC, no LIMIT 100
    ) AS most JOIN test_case AS tests ON tests.repository_id = :here AND tests.no = most.no
    ORDER BY most.failed DESC, most.no
    """
).bindparams(bindparam("today", type_=Utc))
"""The rows of the list of failing tests by one query over the counts of days."""


def asking_sql(runtime: Runtime, repository_id: int):
    """A handler that returns these rows as JSON."""

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        day = day_figures.day_of(runtime.clock.now())
        asked = {"here": repository_id, "day": day, "today": day_figures.beginning_of(day)}
        rows = await runtime.store.read(lambda session: session.execute(FAILING, asked).all())
        return web.json_response([[str(part) for part in row] for row in rows])

    return handler


def fill(session: Tx, now: datetime) -> tuple[int, int]:
    """100,000 tests, three in a hundred unhealthy; whose they are."""
    place = enter(session, now)
    add_tests(session, place, now, TESTS)
    return place.org_id, place.repository_id


def enter(session: Tx, now: datetime) -> Place:
    """Enter the repository, which quarantines unhealthy tests."""
    repository = door.met(session)
    place = Place(repository.org_id, repository.id)
    test_cases.name_repository(session, place, KEY)
    settings = TestSettings(quarantine_enabled=True, auto_quarantine_enabled=True)
    quarantine.put_settings(session, place, settings, Since(now, now))
    return place


def add_tests(session: Tx, place: Place, now: datetime, count: int) -> None:
    """Add so many tests, three in a hundred unhealthy."""
    first = test_cases.take_numbers(session, place.repository_id, count)
    ids = RandomIds()
    add_cases(session, place, [a_case(no, ids.uuid()) for no in range(first, first + count)], now)
    for no in range(first, first + count):
        health = health_of(no)
        if health is not Health.HEALTHY:
            reason = "Passed and failed on the same code 3 times in 203 runs in 14 days."
            since = now - timedelta(minutes=no % 5000)
            states.put(session, place, CaseState(no, health, reason, since))


def forgotten_before(now: datetime) -> datetime:
    """Evidence from before this instant is deleted."""
    return now - timedelta(days=KEPT_DAYS)


def a_case(no: int, test_id: str) -> NewCase:
    """One of the tests."""
    names = (f"test_total_of_cart_number_{no}", "TestCart", "ui")
    return no, test_id, *names, f"tests/ui/cart/test_cart_{no % 500}.py", None


def add_cases(session: Tx, place: Place, new: Sequence[NewCase], now: datetime) -> None:
    """Add tests that are known for long and have owners."""
    test_cases.add(session, place, (0, "", now - timedelta(days=45)), new)
    cases = test_cases.cases
    of_place = update(cases).where(cases.c.repository_id == place.repository_id)
    session.execute(of_place.values(owners='["@octo/web"]', is_known=True, ever_passed=True))


def health_of(no: int) -> Health:
    """Every fiftieth is flaky, half as many are broken."""
    if no % FLAKY_EVERY == 0:
        return Health.FLAKY
    return Health.BROKEN if no % BROKEN_EVERY == 1 else Health.HEALTHY


def failing_in(n: int) -> list[int]:
    """The tests that fail in the `n`th upload, drawn by Zipf's law: few of them most of the times.

    Each failed once if all were as likely, and a list of those that failed most had no order.
    """
    chance, failing = Random(n), set[int]()
    while len(failing) < FAILING_AN_UPLOAD:
        rank = int(TESTS ** chance.random())
        failing.add(1 + rank * APART % TESTS)
    return sorted(failing)


def take_in(session: Tx, place: Place, n: int, now: datetime) -> None:
    """The `n`th upload before `now`, of all tests, of which some failed; below 0: at `now`."""
    at = now - timedelta(days=1) * (max(0, n) / UPLOADS_A_DAY)
    failing = failing_in(n)
    green = bitmaps.packed_set(set(range(1, TESTS + 1)).difference(failing))
    upload = Upload(
        id=f"upload-{n}",
        digest=f"digest-{n}",
        kind="pr",
        code_id=f"run:{n}",
        sha="a" * 40,
        job="unit",
        ran_at=at,
        received_at=at,
        passed=sets.put_set(session, place, green, at),
    )
    keys = {no: f"key-{no % 200}" for no in failing}
    attempts = [
        StoredAttempt(upload.id, no, 1, at, Outcome.FAILED, key, f"AssertionError: {key}")
        for no, key in keys.items()
    ]
    uploads.record(session, place, upload, attempts)
    days.open_day(session, place, at, at)
    test_attempts.note_failures(session, place, attempts)
    hit = [(no, n % 50 + 1) for no in failing[:HIT_AN_UPLOAD]]
    test_attempts.note_impact(session, place, hit, at, now)
    test_cases.note_failed(session, place.repository_id, failing, at)
    test_cases.note_evidence(session, place.repository_id, at)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2])))
