"""People who sign in to the pages, in browsers of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.sandbox.pages import COOKIE
from tests.harness.browser import Browser, Page, browsing
from tests.harness.world import REPO, World

PATH = f"/{REPO}/main"
AGREE = "Authorize Headgate"
LINK = "Sign in with GitHub"


@asynccontextmanager
async def person(world: World, login: str) -> AsyncIterator[Browser]:
    """A browser in which this person is signed in at GitHub."""
    async with browsing() as browser:
        browser.http.cookie_jar.update_cookies({COOKIE: login})
        yield browser


async def enter(world: World, browser: Browser, path: str = PATH) -> Page:
    """Open a page, and sign in as it says."""
    page = await browser.open(f"{world.url}{path}")
    assert (page.status, LINK in page.links) == (401, True)
    page = await browser.follow(LINK)
    return await browser.press(AGREE) if AGREE in page.words else page


@asynccontextmanager
async def visitor(world: World, login: str, path: str = PATH) -> AsyncIterator[Browser]:
    """A browser in which this person has opened a page."""
    async with person(world, login) as browser:
        await enter(world, browser, path)
        yield browser
