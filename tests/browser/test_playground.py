"""The playground of `headgate demo`: everybody can read it, and use it without mouse or script."""

from collections.abc import AsyncIterator
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from bot.demo import ground, playground
from bot.demo.ground import Ground
from bot.demo.stage import Parts, Ports
from tests.browser.chromium import HEIGHT, WIDTHS, person
from tests.browser.test_journeys import shown_to_all
from tests.browser.test_looks import CUT_OFF
from tests.cli import processes
from tests.harness.machine import free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOCUSED = "document.activeElement.ariaLabel ?? document.activeElement.textContent"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Ground, str]]:
    """A playground, and the address of its page."""
    ports = Ports(*(free_port() for _ in range(3)))
    folder = tmp_path_factory.mktemp("ground")
    with processes.log_kept():
        async with (
            ground.running(folder, ports, Parts(), lambda _: None) as opened,
            playground.serving(opened, ports.page or 0) as address,
        ):
            yield opened, address


async def test_the_playground_keeps_nobody_out_and_cuts_no_text_off(browser, played):
    opened, address = played
    async with person(browser, address, also=[opened.stage.service]) as page:
        await page.goto("/")
        await page.frame_locator("iframe").get_by_text("Live", exact=True).wait_for()
        assert await shown_to_all(page, "playground") == []
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": HEIGHT})
            assert await page.evaluate(CUT_OFF) == []


async def test_both_sides_have_the_theme_that_is_chosen(browser, played):
    opened, address = played
    async with person(browser, address, also=[opened.stage.service]) as page:
        await page.goto("/")
        queue = page.frame_locator("iframe")
        for theme in ("dark", "light"):
            await page.locator("#themes").get_by_text(theme, exact=True).first.click()
            for side in (page, queue):
                await side.locator(f"html[data-theme={theme}]").wait_for(state="attached")
        await page.reload()
        for side in (page, queue):
            await side.locator("html[data-theme=light]").wait_for(state="attached")
        await page.locator("#themes").get_by_text("system", exact=True).first.click()
        for side in (page, queue):
            await side.locator("html:not([data-theme])").wait_for(state="attached")


async def test_times_are_those_of_the_readers_zone_to_the_second(browser, played):
    opened, address = played
    opened.say("Somebody looks at the clock")
    at = opened.lines[0].at.astimezone(ZoneInfo("Asia/Kabul"))
    given = {"also": [opened.stage.service], "timezone_id": "Asia/Kabul"}
    async with person(browser, address, **given) as page:
        await page.goto("/")
        told = page.locator(".events li").first
        assert f"{at:%H:%M:%S}" in await told.inner_text()
        zone = await page.locator("footer").first.inner_text()
        assert "Times are of your zone, GMT+4:30 (Asia/Kabul)" in zone
        assert "All times are UTC" not in zone


async def test_a_keyboard_is_enough_to_comment_and_to_play_a_story(browser, played):
    opened, address = played
    async with person(browser, address, also=[opened.stage.service]) as page:
        await page.goto("/")
        await page.keyboard.press("Tab")
        assert await page.evaluate(FOCUSED) == "Skip to content"
        await page.keyboard.press("Enter")
        for wanted in ("Break a test", "Comment on"):
            while not (focused := await page.evaluate(FOCUSED)).startswith(wanted):
                await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        number = focused.partition("#")[2]
        await page.get_by_text(f"#{number} alice comments /merge").first.wait_for()


async def test_without_javascript_a_pull_request_is_opened_and_submitted(browser, played):
    opened, address = played
    given = {"also": [opened.stage.service], "java_script_enabled": False}
    async with person(browser, address, **given) as page:
        await page.goto("/")
        assert await page.locator("#following").is_hidden()
        await page.get_by_label("New pull request").fill("Opened without a script")
        await page.get_by_role("button", name="Open it").click()
        first = page.locator(".pulls > li").first
        await first.get_by_text("Opened without a script").wait_for()
        await first.get_by_role("button", name="Comment").click()
        await page.get_by_text("alice comments /merge").first.wait_for()
