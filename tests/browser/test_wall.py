"""The wall: twelve queues on one screen that nobody touches for days."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.states import QueueState
from tests.browser.chromium import person
from tests.browser.gallery import one_testing
from tests.browser.test_use import change

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCREEN = {"width": 1920, "height": 1080}
ONE = "/wall?queue=octo/widgets/one"
CHANGES = 40
PIXELS_MIN = 24
"""Letters of 24 pixels on a screen of 50 inches are readable from 3 m."""

# Every tile is as full as it can be.
FULL = """() => {
  const [why, last] = [".why", ".tile .last a"].map((each) =>
    document.querySelector(each).closest("p, .last"));
  for (const tile of document.querySelectorAll(".tile")) {
    if (!tile.querySelector(".why")) tile.querySelector("dl").before(why.cloneNode(true));
    tile.querySelector(".last").replaceWith(last.cloneNode(true));
  }
}"""
CUT = """() => [...document.querySelectorAll(".tile")].filter((tile) => {
  const box = (each) => tile.querySelector(each).getBoundingClientRect();
  const [why, numbers] = [box(".why"), box("dl")];
  return why.bottom > numbers.top + 1 || tile.scrollHeight > tile.clientHeight;
}).map((tile) => tile.textContent)"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll(".says *, .tile *")]
  .filter((each) => each.checkVisibility() && !each.closest("svg") && each.textContent.trim())
  .map((each) => parseFloat(getComputedStyle(each).fontSize)))"""
ELEMENTS = "document.querySelectorAll('*').length"


@pytest.fixture
async def one(shown):
    """A queue of one pull request, which is as before afterwards."""
    yield shown.one
    await change(shown.one, one_testing())


async def test_twelve_queues_fit_on_a_screen_and_can_be_read_from_afar(browser, shown):
    async with person(browser, shown.url, viewport=SCREEN) as page:
        await page.goto(shown.paths["wall"])
        assert await page.locator(".tile").count() == 12
        assert await page.evaluate(f"(() => {{ ({FULL})(); return ({CUT})(); }})()") == []
        room = await page.evaluate("[document.body.scrollHeight, document.body.scrollWidth]")
        assert room == [SCREEN["height"], SCREEN["width"]]
        assert await page.evaluate(SMALLEST) >= PIXELS_MIN


async def test_the_wall_shows_the_queues_of_its_address_those_in_trouble_first(browser, shown, one):
    async with person(browser, shown.url, viewport=SCREEN) as page:
        await page.goto(f"{ONE}&queue=octo/widgets/release/2&queue=octo/none/a")
        tiles = page.locator(".tile h2")
        assert await tiles.all_inner_texts() == ["octo/widgets\nrelease/2", "octo/widgets\none"]
        assert "no such queue: octo/none/a" in await page.locator(".says").inner_text()
        assert (await page.title()).startswith("paused · Wall")
        await page.get_by_text("Live", exact=True).wait_for()
        stopped = replace(one_testing(), state=QueueState.PAUSED, state_reason="incident 7")
        await change(one, stopped)
        await page.get_by_text("incident 7").wait_for()
        assert await page.locator("h1").inner_text() == "2 queues, 2 paused"


async def test_after_many_changes_a_wall_holds_no_more_than_before(browser, shown, one):
    async with person(browser, shown.url, viewport=SCREEN) as page:
        session = await page.context.new_cdp_session(page)
        await page.goto(ONE)
        await page.get_by_text("Live", exact=True).wait_for()
        before = {}
        for nth in range(CHANGES):
            state = QueueState.PAUSED if nth % 2 else QueueState.RUNNING
            word = f"reason {nth}" if nth % 2 else "Running"
            await change(one, replace(one_testing(), state=state, state_reason=f"reason {nth}"))
            await page.evaluate("refresh()")
            await page.get_by_text(word).first.wait_for()
            if nth in (1, CHANGES - 1):
                await session.send("HeapProfiler.collectGarbage")
                counted = await session.send("Memory.getDOMCounters")
                before[nth] = (await page.evaluate(ELEMENTS), counted["jsEventListeners"])
                assert counted["documents"] <= 3
        first, last = before.values()
        assert first == last


async def test_a_wall_that_gets_no_answer_says_so_in_large_letters(browser, shown):
    async with person(browser, shown.url, viewport=SCREEN) as page:
        await page.goto(shown.paths["wall"])
        await page.get_by_text("Live", exact=True).wait_for()
        await page.context.set_offline(True)
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        stale = page.get_by_text("Stale since")
        await stale.wait_for()
        assert await stale.evaluate("each => parseFloat(getComputedStyle(each).fontSize)") > 40
        await page.context.set_offline(False)
        await page.get_by_text("Live", exact=True).wait_for()


async def test_an_open_page_is_loaded_anew_after_an_upgrade(browser, shown):
    async with person(browser, shown.url, viewport=SCREEN) as page:
        await page.goto(shown.paths["wall"])
        await page.get_by_text("Live", exact=True).wait_for()
        await page.evaluate(
            "document.querySelector('link[rel=stylesheet]').setAttribute('href', '/older.css');"
            "performance.now = () => 1e9; tag = ''"
        )
        async with page.expect_navigation():
            await page.evaluate("refresh()")
        await page.get_by_text("Live", exact=True).wait_for()
