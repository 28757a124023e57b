"""Times are those of the reader's zone and go on; the tab shows the state of what is open."""

from dataclasses import replace
from urllib.parse import unquote

import pytest

from service.mergequeue.engine.states import QueueState
from tests.browser.chromium import person
from tests.browser.gallery import one_testing
from tests.browser.test_use import change
from tests.dashboard.queue_stage import at
from tests.dashboard.queue_stage import person as somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

ICON = "document.querySelector('link[rel=icon]').href"
# How often a time, or the icon, was written after the first look at the page.
WATCH = """() => {
  window.written = [];
  const seen = new MutationObserver((all) => all.forEach((one) => {
    const at = one.target.parentElement ?? one.target;
    const time = (one.target.closest ? one.target : at).closest("time, title, link[rel=icon]");
    if (time) window.written.push(time.outerHTML);
  }));
  seen.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
}"""


@pytest.fixture
async def one(shown):
    """A queue of one pull request, which is as before afterwards."""
    yield shown.one
    await change(shown.one, one_testing())


async def test_times_are_those_of_the_readers_zone_and_say_which(browser, shown, one):
    paused = replace(
        one_testing(), state=QueueState.PAUSED, state_by=somebody("bob"), state_since=at(15)
    )
    await change(one, paused)
    async with person(browser, shown.url, timezone_id="Asia/Kabul") as page:
        await page.goto(shown.paths["queue-of-1"])
        text = await page.locator("main").inner_text()
        assert "Paused by bob at 18:20" in text
        foot = await page.locator("#made").inner_text()
        assert foot == (
            "Times are of your zone, GMT+4:30 (Asia/Kabul); days of charts and filters are UTC; "
            "this page is of 2026-11-24 18:35"
        )
        title = await page.get_by_text("18:20").get_attribute("title")
        assert title == "2026-11-24 18:20 GMT+4:30 (Asia/Kabul)"
        assert await page.locator("text[data-at]").first.text_content() == "18:25"
        bar = page.get_by_role("img", name="Started")
        assert "Started 18:27" in str(await bar.get_attribute("aria-label"))
        await page.goto(shown.paths["pull-merged"])
        assert "submitted by alice at 18:01" in await page.locator("main").inner_text()


async def test_times_of_another_day_say_which_in_the_readers_zone(browser, shown):
    async with person(browser, shown.url, timezone_id="Pacific/Auckland") as page:
        await page.goto(shown.paths["tests"])
        assert await page.locator("#made time").inner_text() == "2026-11-25 03:05"
        await page.goto(shown.paths["pull-not-in"])
        first = await page.locator(".steps time, .act time").first.inner_text()
        assert "00:55" in first


async def test_without_javascript_times_are_utc_and_the_tab_shows_the_state(browser, shown):
    async with person(browser, shown.url, java_script_enabled=False) as page:
        await page.goto(shown.paths["queue-of-1"])
        foot = await page.locator("#made").inner_text()
        assert foot == "All times are UTC; this page is of 2026-11-24 14:05 UTC"
        assert await page.title() == "1 testing · one, octo/widgets · Headgate"
        assert "%233f83e0" in str(await page.locator("link[rel=icon]").get_attribute("href"))


async def test_durations_go_on_while_a_page_is_open(browser, shown):
    async with person(browser, shown.url) as page:
        await page.clock.install(time=at(0))
        await page.goto(shown.paths["queue-of-1"])
        since = page.locator("time[data-as=since]").first
        assert await since.inner_text() == "8 min"
        await page.clock.fast_forward("02:03:00")
        assert await since.inner_text() == "2 h 11 min"


async def test_a_clock_of_the_reader_that_is_wrong_changes_no_duration(browser, shown):
    async with person(browser, shown.url) as page:
        await page.clock.install(time=at(600))
        await page.goto(shown.paths["queue-of-1"])
        assert await page.locator("time[data-as=since]").first.inner_text() == "8 min"


@pytest.mark.parametrize(
    ("name", "title", "glyph"),
    [
        ("pull-merged", "✓ merged · #441 Bump http client to 3.2 · Headgate", "M8 1.2 14.8"),
        ("pull-failed", "✕ failed · #471 Send mail", "M5.2 2h5.6"),
        ("pull-testing", "testing · #488 ", "M8 2.4a5.6"),
        ("queue-paused", "paused · release/2, octo/widgets · Headgate", "rect"),
        ("queue-stopped", "stopped · stopped, ", "rect"),
        ("queue-empty", "empty · empty, ", 'r="3.5"'),
        ("queue-of-20", "5 testing · twenty, ", "M8 2.4a5.6"),
    ],
)
async def test_the_tab_begins_with_the_state_and_its_icon_shows_it(
    browser, shown, name, title, glyph
):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths[name])
        assert (await page.title()).startswith(title)
        assert glyph in unquote(await page.evaluate(ICON))


async def test_the_tab_changes_with_the_state_and_nothing_else_is_written(browser, shown, one):
    async with person(browser, shown.url, timezone_id="Asia/Kabul") as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        await page.evaluate(WATCH)
        (entry,) = one_testing().entries.values()
        titled = replace(entry, facts=replace(entry.facts, title="Drain the swamp"))
        await change(one, replace(one_testing(), entries={entry.pr: titled}))
        await page.get_by_text("Drain the swamp").wait_for()
        assert await page.evaluate("window.written") == []
        before = await page.evaluate(ICON)
        await change(one, replace(one_testing(), state=QueueState.PAUSED))
        await page.get_by_role("button", name="Resume").wait_for()
        assert await page.title() == "paused · one, octo/widgets · Headgate"
        assert await page.evaluate(ICON) != before


async def test_a_silent_stream_is_opened_anew_and_a_page_that_gets_no_answer_is_stale(
    browser, shown
):
    async with person(browser, shown.url) as page:
        await page.clock.install(time=at(0))
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        held = []

        async def hold(route):
            held.append(route)

        await page.route(f"**{shown.paths['queue-of-1']}", hold)
        await page.clock.fast_forward("01:31")
        while len(held) < 2:
            await page.wait_for_timeout(10)
        await page.get_by_text("Stale since").wait_for(timeout=60_000)
        for route in held:
            await route.abort()
