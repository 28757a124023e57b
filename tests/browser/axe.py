"""axe-core in a page: what keeps people with disabilities from using it."""

from typing import NamedTuple

from playwright.async_api import Page

from tests.harness import needs

# axe leaves out `target-size` (WCAG 2.2) by default.
_RUN = """async () => {
  const rules = {"target-size": {enabled: true}};
  const found = await axe.run(document, {resultTypes: ["violations"], rules});
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


async def violations(page: Page) -> list[Violation]:
    """Return what axe finds, best practices included."""
    found = await page.evaluate(_RUN)
    return [Violation(rule, tuple(elements)) for rule, elements in found]
