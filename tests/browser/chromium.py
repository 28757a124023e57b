"""The machine's Chromium, driven by Playwright; no browser of its own is downloaded."""

import os
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Page, Request, Route, async_playwright

from tests.harness import effort, needs

PICTURES = needs.ROOT / ".cache" / "pictures"
"""Where tests leave a picture of every page in `make soak`, and of a page on which one failed."""

WIDTHS = (1280, 390)
HEIGHT = 900
PATIENCE_MS = 60_000
"""How long a browser is waited for on a busy machine."""
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser without a window."""
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=needs.chromium(), args=[*ARGUMENTS, *root], timeout=PATIENCE_MS
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def person(browser: Browser, url: str, **given: Any) -> AsyncIterator[Page]:
    """A page in a browser profile of its own; `url` is where pages may load from.

    Raises AssertionError at the end for errors of scripts, violations of the content security
    policy, and requests to other hosts than those of `url` and `also`.
    """
    hosts = {urlsplit(each).netloc for each in (url, *given.pop("also", ()))}
    default = {"viewport": {"width": WIDTHS[0], "height": HEIGHT}, "base_url": url}
    context = await browser.new_context(**(default | given))
    try:
        troubles = await _watched(context, hosts)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        try:
            yield page
        except BaseException:
            await drawn(page, "failed")
            raise
        assert not troubles, "\n".join(troubles)
    finally:
        await context.close()


async def _watched(context: BrowserContext, hosts: set[str]) -> list[str]:
    troubles: list[str] = []

    async def foreign(route: Route, request: Request) -> None:
        if urlsplit(request.url).netloc in hosts:
            await route.continue_()
            return
        troubles.append(f"asked for {request.url}")
        await route.abort()

    await context.route("http*://**", foreign)
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on(
        "console",
        lambda said: troubles.append(said.text) if "Content Security" in said.text else None,
    )
    return troubles


async def looks(page: Page, name: str, widths: Sequence[int] = WIDTHS) -> AsyncIterator[str]:
    """Show a page in its widths and themes one after the other; what each look is called.

    `make test` shows it in each width and in each theme once, and about half of the pages in the
    one pairs, the others in the other pairs, because pages are made of the same parts.
    `make soak` shows each page in all pairs.
    """
    themes = THEMES[:: 1 if zlib.crc32(name.encode()) % 2 else -1]
    pairs = product(WIDTHS, THEMES) if effort.IS_SOAK else zip(WIDTHS, themes, strict=True)
    for width, theme in pairs:
        if width in widths:
            await page.set_viewport_size({"width": width, "height": HEIGHT})
            await page.emulate_media(color_scheme=theme)
            yield f"{name}-{theme}-{width}"


async def picture(page: Page, name: str) -> None:
    """Leave a picture of the whole page in `make soak`: it costs a third of what checks cost."""
    if effort.IS_SOAK:
        await drawn(page, name)


async def drawn(page: Page, name: str) -> None:
    """Draw the whole page into a file of `PICTURES`.

    Chromium draws a frame of another origin only while the window shows it, so the window is as
    high as such a page.
    """
    path, window = PICTURES / f"{name}.png", page.viewport_size
    if len(page.frames) > 1 and window is not None:
        height = await page.evaluate("document.documentElement.scrollHeight")
        await page.set_viewport_size({**window, "height": height})
    await page.screenshot(path=path, full_page=True, animations="disabled")
    if window is not None:
        await page.set_viewport_size(window)
