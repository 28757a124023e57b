"""What uploads leave for later: a day that is counted once it is over.

64 uploads of 100,000 tests, each of another set, as when in each another test failed. The figure
is what one of them costs the service beyond V11, in CPU; `waited_ms` is how long another writer
waited at most meanwhile.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from time import process_time

from service.database.database import Tx
from service.testhealth.operations import count_days
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import bitmaps, cases, days, sets, uploads
from service.testhealth.store.cases import Place
from service.testhealth.store.uploads import Upload
from tests.bench import databases, door
from tests.bench.tests_server import a_case, add_cases
from tests.bench.uploads_server import Writer

TESTS = 100_000
UPLOADS = 64
WAITED_GOAL_MS = 250
Row = dict[str, object]


def run(scale: float = 1.0) -> Sequence[Row]:
    """One line for each database; `scale` multiplies the tests."""
    many = int(TESTS * scale)
    return [
        {"subject": f"counting {UPLOADS} uploads of {many:,} tests, {dialect_of(url)}"}
        | asyncio.run(measured(url, many))
        for url in databases.addresses()
    ]


def dialect_of(url: str) -> str:
    """The kind of the database there."""
    return url.partition(":")[0]


async def measured(url: str, many: int) -> Row:
    """Count a day alone, then one while somebody else writes."""
    runtime = await door.runtime_at(url)
    now = runtime.clock.now()
    place = await runtime.store.run(entered, many, now)
    await runtime.store.run(filled, place, many, now - timedelta(days=2))
    began_s = process_time()
    await count_days.count_due(runtime)
    took_s = process_time() - began_s
    await runtime.store.run(filled, place, many, now - timedelta(days=3))
    writer = Writer(runtime)
    writing = asyncio.create_task(writer.write())
    await count_days.count_due(runtime)
    writing.cancel()
    await runtime.store.close()
    return {
        "cpu_s": round(took_s, 2),
        "ms_an_upload": round(took_s * 1000 / UPLOADS, 1),
        "waited_ms": round(writer.waited_ms),
        "waited_goal_ms": WAITED_GOAL_MS,
    }


def entered(session: Tx, many: int, now: datetime) -> Place:
    """Tests of a repository, known for long."""
    repository = door.met(session)
    place = Place(repository.org_id, repository.id)
    cases.name_repository(session, place, RepositoryKey("octo", "github.com/octo/widgets"))
    first = cases.take_numbers(session, place.repository_id, many)
    tests = [a_case(no, f"test-{no}") for no in range(first, many + 1)]
    add_cases(session, place, tests, now - timedelta(days=9))
    return place


def filled(session: Tx, place: Place, many: int, at: datetime) -> None:
    """Uploads of one day, of all tests but one."""
    for n in range(1, UPLOADS + 1):
        passing = bitmaps.packed_set(no for no in range(1, many + 1) if no != n)
        key = sets.put_set(session, place, passing, at)
        name = f"{at:%j}-{n}"
        upload = Upload(name, name, "pr", name, "a" * 40, "unit", at, at, passed=key)
        uploads.record(session, place, upload, ())
        days.open_day(session, place, at, at)
