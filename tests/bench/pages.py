"""Size and time of each page, among them queues of 1, 20 and 300 pull requests.

The pages are those of the tests in a browser, over SQLite. A goal is that of the HTML alone; script
and style, which a browser keeps, are a row of their own.
"""

import asyncio
import gzip
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import aiohttp

from service.http.documents import STATIC
from tests.bench.tables import Row
from tests.browser.gallery import gallery
from tests.browser.test_looks import HTML_BYTES_MAX, LOADED, LOADED_BYTES_MAX
from tests.harness import databases

TIMES = 5


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure every page; `scale` multiplies how often each is asked for."""
    loaded = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in LOADED)
    assets: Row = {
        "loaded": "script and style, compressed",
        "kB": round(loaded / 1000, 1),
        "kB_goal": LOADED_BYTES_MAX / 1000,
    }
    return [*asyncio.run(_pages(max(1, int(TIMES * scale)))), assets]


async def _pages(times: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store = await databases.opened_at(f"sqlite:///{Path(folder)}/gallery.db")
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
