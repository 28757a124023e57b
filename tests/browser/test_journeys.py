"""What people come to the pages for, from the sign-in to the proof of a landing."""

import re
from contextlib import asynccontextmanager

import pytest

from bot.sandbox.pages import COOKIE
from service.dashboard import page_of_settings
from tests.browser import axe
from tests.browser.chromium import HEIGHT, PATIENCE_MS, WIDTHS, looks, person, picture
from tests.harness.world import REPO

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUEUE = f"/{REPO}/main"
REPLAY_S = 120
"""A replay leaves the processor to everything else, so on a busy machine it may take long."""


@asynccontextmanager
async def visitor(browser, world, login, path=QUEUE, **given):
    """A page of a person who has just signed in with GitHub."""
    async with person(browser, world.url, also=[world.sandbox.url], **given) as page:
        await page.context.add_cookies([{"name": COOKIE, "value": login, "url": world.sandbox.url}])
        await page.goto(path)
        await page.get_by_role("link", name="Sign in with GitHub").click()
        agree = page.get_by_role("button", name="Authorize Headgate")
        await agree.or_(page.get_by_role("button", name="Sign out")).wait_for()
        if await agree.count():
            await agree.click()
        await page.get_by_role("button", name="Sign out").wait_for()
        yield page


async def shown_to_all(page, name, widths=WIDTHS):
    """Leave pictures of the page, and return what keeps people out."""
    found = []
    await axe.load(page)
    async for look in looks(page, name, widths):
        found += [(look, each) for each in await axe.violations(page)]
        await picture(page, look)
    await page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    return found


async def test_a_person_signs_in_and_out(browser, lively):
    async with person(browser, lively.url, also=[lively.sandbox.url]) as page:
        await page.goto(QUEUE)
        assert await shown_to_all(page, "sign-in") == []
    async with visitor(browser, lively, "carol") as page:
        assert await page.title() == "empty · main, octo/widgets · Headgate"
        assert await page.get_by_text("needs maintain access").count() == 2
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("link", name="Sign in with GitHub").wait_for()


async def test_a_queue_is_paused_filled_resumed_and_its_culprit_found(browser, lively):
    good = [await lively.open(files={name: "x\n"}) for name in ("one.md", "two.md", "a.txt")]
    bad = await lively.open(files={"b.txt": "x\n"})
    await lively.settle()  # all are ready: the order is that of the commands
    async with visitor(browser, lively, "alice") as page:
        await page.get_by_text("Pause…").click()
        await page.get_by_label("Reason").first.fill("release freeze")
        await page.get_by_role("button", name="Pause the queue").click()
        await page.get_by_text("Paused by alice").wait_for()
        await page.mouse.move(0, 0)  # nothing moves while the pointer is on a link
        for number in (*good, bad):
            await lively.comment("/merge", number)
            # The next one comes after it in the line.
            await page.get_by_role("link", name=f"#{number}").first.wait_for()
        await page.get_by_text("Paused: 4 pull requests in the queue").wait_for()
        await page.get_by_role("link", name=f"#{bad}").click()
        await page.get_by_text("Why is it not merged yet?").wait_for()
        assert "Waits until the queue is running (it is paused)" in await text_of(page)
        await page.get_by_role("link", name="Queue", exact=True).click()
        await page.get_by_role("button", name="Resume").click()
        await page.mouse.move(0, 0)
        await page.get_by_text("Testing", exact=True).first.wait_for()
        await page.get_by_text("Finding the cause").wait_for()
        await picture(page, "journey-search")
        await page.get_by_role("cell", name="Failed").wait_for()
        await page.get_by_text("Running: the queue is empty").wait_for()
        for number in good:
            ended = page.get_by_role("row").filter(has_text=f"#{number}")
            await ended.get_by_role("cell", name=re.compile("^Merged")).wait_for()
        culprit = page.get_by_role("link", name=f"#{bad}")
        await culprit.hover()
        await culprit.click()
        await page.get_by_text("removed from the queue").wait_for()
        await page.get_by_role("link", name=re.compile(r"^run \d+$")).first.click()
        await page.get_by_text(re.compile(r"Run \d+: failed")).first.wait_for()
        await page.goto(f"{QUEUE}/pull/{good[-1]}")
        assert "equals" in await page.locator(".proof").inner_text()
        await page.goto("/activity?action=queue.")
        assert re.search(r"alice\s+person, dashboard\s+queue\.\w+", await text_of(page))


async def test_what_more_slots_would_bring_is_replayed(browser, lively, monkeypatch):
    monkeypatch.setattr(page_of_settings, "REPLAY_S", REPLAY_S)
    await lively.comment("/merge", await lively.open())
    await lively.settle()
    async with visitor(browser, lively, "alice", f"{QUEUE}/settings") as page:
        await page.locator("#try-concurrency").fill("8")
        page.set_default_timeout(PATIENCE_MS + REPLAY_S * 1000)
        await page.get_by_role("button", name="Replay 30 days").click()
        await page.get_by_role("heading", name=re.compile("^Concurrency 8: ")).wait_for()
        assert "Replay of the last 30 days" in await text_of(page)
        await page.get_by_role("button", name="Compare usual changes").click()
        found = page.get_by_role("link", name="Concurrency 8", exact=True)
        await found.wait_for()
        assert await shown_to_all(page, "usual-changes") == []
        await found.click()
        await page.get_by_role("heading", name=re.compile("^Concurrency 8: ")).wait_for()
        assert await shown_to_all(page, "what-if") == []


async def test_the_doctor_is_asked(browser, lively):
    await lively.act("role", by="alice", login="alice", role="admin")
    async with visitor(browser, lively, "alice", f"{QUEUE}/doctor") as page:
        await page.get_by_role("button", name="Examine now").click()
        await page.get_by_role("button", name="Examine again").wait_for()
        assert "in order" in await text_of(page)
        assert await shown_to_all(page, "doctor-found") == []
        for _ in ("asked first", "then done"):
            await page.get_by_role("button", name="Start a dry test").click()
        await page.get_by_role("heading", name=re.compile("passed so far")).wait_for()
        await page.get_by_role("heading", name="Result of the dry test").wait_for()
        assert await shown_to_all(page, "doctor-dry-test") == []


async def test_a_token_is_created_seen_once_and_revoked(browser, lively):
    async with visitor(browser, lively, "alice", "/settings/octo") as page:
        await page.get_by_label("Name").fill("CI of widgets")
        await page.get_by_role("button", name="Create the token").click()
        await page.get_by_text(re.compile(r"hgt_\w{60}")).wait_for()
        assert await shown_to_all(page, "token-made") == []
        await page.goto("/settings/octo")
        row = page.get_by_role("row", name=re.compile("^CI of widgets"))
        await row.get_by_text("Revoke…").click()
        assert await shown_to_all(page, "confirm") == []
        await page.get_by_role("button", name="Revoke the token").click()
        await page.get_by_role("heading", name="Ended").wait_for()


async def test_without_javascript_a_queue_is_paused_and_resumed(browser, lively):
    async with visitor(browser, lively, "alice", java_script_enabled=False) as page:
        assert await page.locator("#following").is_hidden()
        await page.get_by_text("Pause…").click()
        await page.get_by_label("Reason").first.fill("no scripts")
        await page.get_by_role("button", name="Pause the queue").click()
        await page.get_by_text("no scripts").wait_for()
        await page.get_by_role("button", name="Resume").click()
        await page.get_by_text("Nothing blocks the queue").wait_for()


async def text_of(page):
    """What a person reads on a page."""
    return await page.locator("main").inner_text()
