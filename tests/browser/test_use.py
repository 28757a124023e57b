"""Open pages that change, a keyboard instead of a mouse, and names of strangers."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import turn
from tests.browser import axe
from tests.browser.chromium import person
from tests.browser.gallery import HOSTILE, one_testing
from tests.dashboard.queue_stage import person as somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def change(stage, value):
    """Something happens to a queue, as a turn stores it."""
    await stage.put(value)
    stage.runtime.wakeups.wake(turn.topic_of(stage.queue.id))


def titled(title):
    """The queue of one pull request, which has another title now."""
    value = one_testing()
    (entry,) = value.entries.values()
    renamed = replace(entry, facts=replace(entry.facts, title=title))
    return replace(value, entries={entry.pr: renamed})


@pytest.fixture
async def one(shown):
    """A queue of one pull request, which is as before afterwards."""
    yield shown.one
    await change(shown.one, one_testing())


async def test_a_change_is_drawn_and_focus_scroll_and_typed_text_stay(browser, shown, one):
    small = {"width": 390, "height": 400}
    async with person(browser, shown.url, viewport=small) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        await page.get_by_text("Pause…").click()
        reason = page.get_by_label("Reason").first
        await reason.fill("release fre")
        await reason.evaluate("box => scrollTo(0, box.getBoundingClientRect().top + 100)")
        before = await page.evaluate("scrollY")
        await change(one, titled("Drain the swamp"))
        await page.get_by_text("Drain the swamp").wait_for()
        assert await page.evaluate("document.activeElement.name") == "reason"
        assert await reason.input_value() == "release fre"
        assert await page.evaluate("scrollY") == before
        assert before > 0
        await page.keyboard.type("eze")
        assert await reason.input_value() == "release freeze"


async def test_nothing_moves_while_the_pointer_is_on_a_link(browser, shown, one):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        await page.get_by_role("link", name="#12").hover()
        await change(one, titled("Fill the swamp"))
        await page.get_by_text("Changed: move the pointer off the link").wait_for()
        assert await page.get_by_text("Fill the swamp").count() == 0
        await page.mouse.move(0, 0)
        await page.get_by_text("Fill the swamp").wait_for()


async def test_a_page_that_is_refused_a_stream_asks_by_itself(browser, shown, one):
    async with person(browser, shown.url) as page:
        asked = []

        async def without_stream(route):
            asked.append(route.request.headers["accept"])
            if asked[-1] == "text/event-stream":
                await route.fulfill(status=503)
            else:
                await route.continue_()

        await page.route(f"**{shown.paths['queue-of-1']}", without_stream)
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        await change(one, titled("Map the swamp"))
        await page.get_by_text("Map the swamp").wait_for()
        assert "text/event-stream" in asked


async def test_a_service_that_is_gone_makes_the_page_stale(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        await page.context.set_offline(True)
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await page.get_by_text("Stale since").wait_for()
        assert await page.get_by_role("link", name="#12").is_visible()
        await page.context.set_offline(False)
        await page.get_by_text("Live", exact=True).wait_for()


async def test_a_keyboard_is_enough(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**#main")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Pause…"
        await page.keyboard.press("Space")
        await page.keyboard.press("Tab")
        await page.keyboard.type("by keyboard")
        assert await page.get_by_label("Reason").first.input_value() == "by keyboard"
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        reached = set()
        while True:
            await page.keyboard.press("Tab")
            if await page.evaluate("document.activeElement === document.body"):
                break
            assert await page.evaluate(outline) != "none"
            reached.add(await page.evaluate("document.activeElement.textContent"))
        assert {"Drain…", "run 12", "Pause the queue"} <= reached


THEME = "getComputedStyle(document.body).colorScheme + document.documentElement.dataset.theme"


async def test_the_theme_is_the_chosen_one_from_the_first_moment_and_else_the_systems(
    browser, shown
):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        assert await page.evaluate(THEME) == "light darkundefined"
        await page.get_by_role("button", name="dark", exact=True).click()
        await page.route("**/*.css", lambda route: route.abort())
        await page.goto(shown.paths["tests"])
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
        await page.unroute("**/*.css")
        await page.goto("/docs/api")
        assert await page.evaluate(THEME) == "darkdark"
        await page.goto(shown.paths["help"])
        assert await page.evaluate(THEME) == "darkdark"
        await page.get_by_role("button", name="system", exact=True).click()
        assert await page.evaluate(THEME) == "light darkundefined"


async def test_keys_lead_to_places_and_do_nothing_while_one_writes(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.keyboard.press("/")
        await page.keyboard.type("?gq")
        find = page.get_by_label("Find a pull request or a test")
        assert await find.input_value() == "?gq"
        await find.blur()
        await page.keyboard.press("Control+g")
        await page.keyboard.press("q")
        assert page.url.endswith(shown.paths["queue-of-1"])
        await page.keyboard.type("?")
        keys = page.get_by_role("dialog", name="Keys")
        await keys.wait_for()
        await axe.load(page)
        assert await axe.violations(page) == []
        await keys.get_by_role("button", name="Close").click()
        await page.keyboard.type("gt")
        await page.wait_for_url(f"**{shown.paths['tests']}")
        await page.keyboard.type("gq")
        await page.wait_for_url(f"{shown.url}/")


async def test_keys_are_turned_off(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_role("button", name="Keys", exact=True).click()
        await page.get_by_label("Use these keys").uncheck()
        await page.get_by_role("button", name="Close").click()
        await page.reload()
        await page.keyboard.type("/gt")
        assert await page.evaluate("document.activeElement === document.body")
        assert page.url.endswith(shown.paths["queue-of-1"])


async def test_without_javascript_pages_offer_neither_keys_nor_themes(browser, shown):
    async with person(browser, shown.url, java_script_enabled=False) as page:
        await page.goto(shown.paths["help"])
        assert not await page.get_by_role("button", name="Keys", exact=True).is_visible()
        assert not await page.get_by_text("Theme:").is_visible()
        await page.get_by_role("heading", name="Commands and keys").wait_for()


async def test_a_test_is_quarantined_and_released(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(f"{shown.paths['tests-all']}&q=test_steady_7")
        await page.get_by_role("link", name="test_steady_7").click()
        await page.get_by_text("Quarantine…").click()
        await page.get_by_label("Reason").fill("waits on a clock")
        await page.get_by_role("button", name="Decide").click()
        await page.get_by_text("quarantined by a person").wait_for()
        await page.get_by_role("button", name="End this decision").click()
        await page.get_by_text("Not quarantined: when it fails, it counts as failed.").wait_for()


async def test_names_of_strangers_are_text(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-hostile"])
        assert await page.locator("main img").count() == 0
        title = page.get_by_role("link", name="#3001").first
        assert "<img src=x onerror=alert(1)>" in await title.inner_text()
        assert len(await title.inner_text()) < len(HOSTILE)
        await page.get_by_text("Live", exact=True).wait_for()
        assert await page.locator("main img").count() == 0


async def test_a_paused_queue_looks_paused(browser, shown, one):
    paused = replace(one_testing(), state=QueueState.PAUSED, state_by=somebody("bob"))
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue-of-1"])
        await page.get_by_text("Live", exact=True).wait_for()
        await change(one, paused)
        await page.get_by_role("button", name="Resume").wait_for()
        assert "Paused by bob" in await page.locator("main").inner_text()
        assert await page.title() == "paused · one, octo/widgets · Headgate"
