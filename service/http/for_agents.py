"""Documents for coding agents: `/llms.txt`, a short index, and `/docs/skill`."""

from pathlib import Path

from service.http.route import Document, Look, Page, Route

PLAIN = "text/plain; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"

# The wheel carries it inside the package.
SKILL = next(
    path
    for folder in (Path(__file__).parent, Path(__file__).parents[2] / "docs/skill")
    if (path := folder / "SKILL.md").exists()
)

INDEX = """\
# Headgate

> This is a running Headgate: a merge queue and flaky-test service for GitHub. It tests each pull
> request together with the ones ahead of it, and merges it if the required checks pass. The API
> needs a token.

- [Skill](/docs/skill): how an agent lands a pull request, waits, finds out why it is not merged,
  and lists flaky tests
- [OpenAPI document](/openapi.json): every endpoint under /v1, with its fields and errors
- [API in a browser](/docs/api): the same, to read and to try
- [Schema of .github/headgate.yml](/schemas/headgate.json): settings in the repository
- [Readiness](/readyz): whether the service can work now
"""


def index(_: Look) -> Page:
    """`/llms.txt`."""
    return Page(PLAIN, INDEX.encode())


def skill(_: Look) -> Page:
    """`/docs/skill`."""
    return Page(MARKDOWN, SKILL.read_bytes())


AGENT_ROUTES: tuple[Route, ...] = (
    Document("/llms.txt", index, PLAIN, is_listed=False),
    Document("/docs/skill", skill, MARKDOWN, is_listed=False),
)
"""The documents for agents; people have the same in docs/."""
