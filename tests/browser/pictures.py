"""`python -m tests.browser.pictures`: the pictures of pages in `docs/pictures`, made anew.

Arguments name some of them.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from service.dashboard.page_of_settings import usual_changes
from service.database.database import Store
from service.mergequeue.operations import file_checks, turn
from tests.browser.chromium import WIDTHS, chromium
from tests.browser.gallery import gallery
from tests.browser.judged import judged
from tests.browser.lead import Lead, lead
from tests.dashboard.queue_stage import QueueStage
from tests.harness import databases, needs

FOLDER = needs.ROOT / "docs" / "pictures"
PATIENCE_MS = 120_000


class Picture(NamedTuple):
    """The upper part of a page of the gallery, so many CSS pixels high."""

    page: str
    height: int
    is_dark: bool = False
    query: str = ""
    width: int = WIDTHS[0]
    scale: float = 0.8


WALL = "&".join(
    f"queue=octo/{name}"
    for name in (
        *("widgets/main", "widgets/stopped", "widgets/release/2", "widgets/lanes"),
        *("widgets/twenty", "widgets/one", "android/main", "docs/main", "payments/main"),
    )
)

PICTURES = {
    "queue": Picture("queue", 1230),
    "lanes-dark": Picture("queue-lanes", 1080, is_dark=True),
    "pull-request": Picture("pull-suspect", 1050),
    "pull-request-failed": Picture("pull-failed", 860),
    "health": Picture("health", 1240),
    "settings": Picture("settings-of-queue", 1740, query="?compare=usual"),
    "test": Picture("test", 1000),
    "mine": Picture("mine-team", 960),
    "wall": Picture("wall", 1080, width=1920, scale=0.6, query=f"?{WALL}"),
}


OF_LEAD = {
    "lead-tests": Picture("/tests", 1000),
    "lead-costs": Picture("/tests/costs", 1320),
    "lead-slowest": Picture("/tests/slowest", 1000),
}
"""Pages of the repository of 5,000 tests."""


OF_JUDGED = {
    "lead-quality": Picture(
        "/tests/quality",
        1180,
        query="?sensitivity=eager&quarantine_enabled=true&auto_quarantine_enabled=true",
    )
}
"""The page of a repository whose flaky tests are known."""


async def make_of_lead() -> None:
    """Make the pictures for leads, if they are wanted."""
    await _made_of(lead, OF_LEAD)
    await _made_of(judged, OF_JUDGED)


async def _made_of(
    pages: Callable[[Store], AbstractAsyncContextManager[Lead]], pictures: Mapping[str, Picture]
) -> None:
    wanted = {name: one for name, one in pictures.items() if name in (sys.argv[1:] or pictures)}
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as folder:
        store = await databases.opened_at(f"sqlite:///{Path(folder)}/lead.db")
        async with pages(store) as shown, chromium() as browser:
            for name, one in wanted.items():
                page = await browser.new_page(
                    base_url=shown.url,
                    viewport={"width": one.width, "height": one.height},
                    device_scale_factor=one.scale,
                )
                page.set_default_timeout(PATIENCE_MS)
                await page.goto(shown.home + one.page + one.query)
                await page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
                await page.close()
        await store.close()


async def make() -> None:
    """Make every picture."""
    await make_of_lead()
    if sys.argv[1:] and not set(sys.argv[1:]) & PICTURES.keys():
        return
    with tempfile.TemporaryDirectory() as folder:
        store = await databases.opened_at(f"sqlite:///{Path(folder)}/gallery.db")
        async with gallery(store) as shown, chromium() as browser:
            await _replayed(shown.main)
            for name, one in PICTURES.items():
                if sys.argv[1:] and name not in sys.argv[1:]:
                    continue
                page = await browser.new_page(
                    base_url=shown.url,
                    viewport={"width": one.width, "height": one.height},
                    color_scheme="dark" if one.is_dark else "light",
                    device_scale_factor=one.scale,
                )
                page.set_default_timeout(PATIENCE_MS)
                await page.goto(shown.paths[one.page] + one.query)
                await page.locator("main:not([data-live]), #following:visible").first.wait_for()
                await page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
                await page.close()
        await store.close()


async def _replayed(main: QueueStage) -> None:
    """Replay the usual changes however long it takes: then the page has the answer at hand."""
    value = await turn.value(main.runtime, main.queue.id)
    variants = list(usual_changes(value.config).values())
    found = await file_checks.effects(main.runtime, main.queue, value, variants)
    assert len(found) == len(variants), found


if __name__ == "__main__":
    asyncio.run(make())
