"""Every page, in both themes and at both widths, can be read and used by everybody."""

import gzip

import pytest

from service.http.documents import STATIC
from tests.browser import axe
from tests.browser.chromium import HEIGHT, looks, person, picture

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTS = 6
"""Tests among which the pages are divided, so that workers share them."""

FRAME_WIDTHS = (1024, 860, 720, 600)

HTML_BYTES_MAX = 100_000
"""Of a page; one of a queue draws 200 pull requests."""

LOADED = ("frame.js", "live.js", "pages.css", "times.js")
LOADED_BYTES_MAX = 60_000
"""Script and style of a page, compressed."""

# Texts that stick out of the window, or of a box that hides what sticks out, and lists that are
# narrower than their longest choice.
CUT_OFF = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const boxOf = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const overflow = getComputedStyle(at).overflowX;
      if (overflow === "auto" || overflow === "scroll") return null;
      if (overflow === "hidden" || overflow === "clip") return at.getBoundingClientRect().right;
    }
    return innerWidth;
  };
  while (walk.nextNode()) {
    const text = walk.currentNode, at = text.parentElement;
    if (!text.data.trim() || at.closest("svg, thead, .vh, .skip, option") || !at.checkVisibility())
      continue;
    range.selectNodeContents(text);
    const { right, width } = range.getBoundingClientRect(), edge = boxOf(at);
    if (width > 1 && edge !== null && right > edge + 1) found.push(text.data.trim().slice(0, 60));
  }
  for (const select of document.querySelectorAll("select")) {
    if (!select.checkVisibility()) continue;
    const free = select.cloneNode(true);
    free.style.cssText = "position: absolute; width: max-content; max-width: none";
    select.after(free);
    if (free.offsetWidth > select.offsetWidth + 1) found.push(`options of ${select.name} are cut`);
    free.remove();
  }
  const room = document.documentElement;
  if (room.scrollWidth > room.clientWidth) found.push("the page scrolls sideways");
  return found;
}"""


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_page_keeps_anybody_out_or_cuts_a_text_off(browser, shown, part):
    found: list[object] = []
    async with person(browser, shown.url) as page:
        for name, path in list(shown.paths.items())[part::PARTS]:
            await page.goto(path)
            await axe.load(page)
            async for look in looks(page, name):
                found += [(look, each) for each in await axe.violations(page)]
                found += [(look, each) for each in await page.evaluate(CUT_OFF)]
                await picture(page, look)
    assert found == [], "\n".join(map(str, found))


async def test_the_header_cuts_nothing_off_in_a_frame_of_any_width(browser, shown):
    async with person(browser, shown.url) as page:
        await page.goto(shown.paths["queue"])
        await page.get_by_text("Live", exact=True).wait_for()
        for width in FRAME_WIDTHS:
            await page.set_viewport_size({"width": width, "height": HEIGHT})
            assert await page.evaluate(CUT_OFF) == []
            who = await page.locator(".who").bounding_box()
            assert who is not None
            assert 0 <= who["x"] <= who["x"] + who["width"] <= width


# The reference has hundreds of parts that are written alike.
SHORTENED = "for (const each of [...document.querySelectorAll('main > *')].slice(60)) each.remove()"


@pytest.mark.parametrize("path", ["/docs/api", "/docs/errors/queue_not_found"])
async def test_documents_keep_nobody_out(browser, shown, path):
    found: list[object] = []
    async with person(browser, shown.url) as page:
        await page.goto(path)
        await page.evaluate(SHORTENED)
        await axe.load(page)
        async for look in looks(page, path):
            found += [(look, each) for each in await axe.violations(page)]
            found += [(look, each) for each in await page.evaluate(CUT_OFF)]
    assert found == [], "\n".join(map(str, found))


async def test_pages_stay_small(browser, shown):
    sizes = {}
    async with person(browser, shown.url) as page:
        for name, path in shown.paths.items():
            sizes[name] = len(await (await page.request.get(path)).body())
    print({name: f"{size / 1000:.0f} kB" for name, size in sizes.items()})
    assert max(sizes.values()) <= HTML_BYTES_MAX
    loaded = [gzip.compress((STATIC / name).read_bytes()) for name in LOADED]
    assert sum(map(len, loaded)) <= LOADED_BYTES_MAX
