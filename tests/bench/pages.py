"""Size and time of each page, among them queues of 1, 20 and 300 pull requests; and searches.

The pages are those of the tests in a browser, over SQLite. A goal is that of the HTML alone; script
and style, which a browser keeps, are a row of their own. Searches by HTTP are among 100,000 tests
over each database, at a larger scale also among 500,000: no index helps them, so they read all
tests (docs/explanation/capacity.md).
"""

import asyncio
import gzip
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter

import aiohttp

from bot import wiring
from service.http.documents import STATIC
from service.http.health import Readiness
from service.runtime import DashboardAuth
from tests.bench import databases, door, tests_server
from tests.bench.door import REPO
from tests.bench.tables import Row
from tests.browser.gallery import gallery
from tests.browser.test_looks import HTML_BYTES_MAX, LOADED, LOADED_BYTES_MAX
from tests.harness import databases as harness_databases

TIMES = 5
SEARCH_TIMES = 20
SEARCHED = (100_000, 500_000)
ADDED_AT_ONCE = 5000
"""Tests that one transaction adds, which must end in time on a slow machine too."""
SEARCH_P95_MS = 50
SEARCHES = {
    "list of tests, few match": "/octo/widgets/tests?status=all&q=number_7777",
    "list of tests, none matches": "/octo/widgets/tests?status=all&q=no_such_test",
    "list of tests, all match": "/octo/widgets/tests?status=all&q=total",
    "everywhere, few match": "/find?q=number_7777",
}


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure every page; `scale` multiplies how often each is asked for."""
    loaded = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in LOADED)
    assets: Row = {
        "loaded": "script and style, compressed",
        "kB": round(loaded / 1000, 1),
        "kB_goal": LOADED_BYTES_MAX / 1000,
    }
    pages = asyncio.run(_pages(max(1, int(TIMES * scale))))
    return [*pages, assets, *_searches(scale)]


def _searches(scale: float) -> list[Row]:
    rows: list[Row] = []
    with databases.kinds() as kinds:
        for name, count in product(kinds, SEARCHED if scale > 1 else SEARCHED[:1]):
            with kinds[name]() as url:
                about: Row = {"goal": "V9", "database": name, "tests": count}
                rows += [{**about, **row} for row in asyncio.run(_searched(url, count))]
    return rows


async def _searched(url: str, count: int) -> list[Row]:
    """The rows of searches among so many tests."""
    runtime = await door.runtime_at(url)
    now = runtime.clock.now()
    place = await runtime.store.run(tests_server.enter, now)
    for _ in range(count // ADDED_AT_ONCE):
        await runtime.store.run(tests_server.add_tests, place, now, ADDED_AT_ONCE)
    options = replace(runtime.options, dashboard_auth=DashboardAuth.LOOPBACK, public_url=None)
    runtime = replace(runtime, options=replace(options, main_host=REPO.host))
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    runner, port = await door.opened(wiring.build_own_app(runtime, readiness))
    rows: list[Row] = []
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
        for name, path in SEARCHES.items():
            took_ms = sorted([await _took_ms(http, path) for _ in range(SEARCH_TIMES + 1)][1:])
            p95 = took_ms[math.ceil(SEARCH_TIMES * 0.95) - 1]
            p50 = statistics.median(took_ms)
            times = {"p50_ms": round(p50, 1), "p95_ms": round(p95, 1)}
            rows.append({"search": name, **times, "p95_goal_ms": SEARCH_P95_MS})
    await runner.cleanup()
    await runtime.store.close()
    return rows


async def _took_ms(http: aiohttp.ClientSession, path: str) -> float:
    began = perf_counter()
    async with http.get(path, allow_redirects=False) as reply:
        assert reply.status in (200, 302), reply.status
        await reply.read()
    return (perf_counter() - began) * 1000


async def _pages(times: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store = await harness_databases.opened_at(f"sqlite:///{Path(folder)}/gallery.db")
        async with gallery(store) as opened, aiohttp.ClientSession(opened.url) as http:
            rows = [await _row(http, name, path, times) for name, path in opened.paths.items()]
        await store.close()
    return rows


async def _row(http: aiohttp.ClientSession, name: str, path: str, times: int) -> Row:
    took_ms: list[float] = []
    size = 0
    for _ in range(times + 1):
        began = perf_counter()
        async with http.get(path, allow_redirects=False) as reply:
            size = len(await reply.read())
        took_ms.append((perf_counter() - began) * 1000)
    return {
        "page": name,
        "html_kB": round(size / 1000, 1),
        "html_kB_goal": HTML_BYTES_MAX / 1000,
        "first_ms": round(took_ms[0], 1),
        "median_ms": round(statistics.median(took_ms[1:]), 1),
        "worst_ms": round(max(took_ms[1:]), 1),
    }
