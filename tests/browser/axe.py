"""axe-core in a page: what keeps people with disabilities from using it."""

from typing import Any, NamedTuple

from playwright.async_api import Page

from tests.harness import needs

NOT_OF_COLOR = {"color-contrast": {"enabled": False}}
OF_COLOR = {"runOnly": ["color-contrast"]}

_RUN = """async ([options]) => {
  const found = await axe.run(document, options);
  return found.violations.map(each => [each.id, each.nodes.slice(0, 3).map(node => node.html)]);
}"""


class Violation(NamedTuple):
    """A rule, and the first elements that break it."""

    rule: str
    elements: tuple[str, ...]


async def load(page: Page) -> None:
    """Bring axe-core into the open page, which the page's own policy would not allow."""
    source = needs.asset("axe-core", "axe.min.js").read_text("utf-8")
    await page.evaluate(source)


async def violations(page: Page, options: dict[str, Any] | None = None) -> list[Violation]:
    """Return what axe finds, best practices included."""
    found = await page.evaluate(_RUN, [{"resultTypes": ["violations"], **(options or {})}])
    return [Violation(rule, tuple(elements)) for rule, elements in found]
