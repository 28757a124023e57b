"""Documents for coding agents and for people who report a weakness.

`/llms.txt`, a short index, and `/docs/skill`; `/.well-known/security.txt` (RFC 9116) and
`/docs/security`. The wheel carries the files inside the package.
"""

from datetime import timedelta
from pathlib import Path

from service.http.errors import HttpRefused
from service.http.route import Document, Look, Page, Route

PLAIN = "text/plain; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
PACKAGE = Path(__file__).parent
REPOSITORY = Path(__file__).parents[2]


def _file(*paths: Path) -> Path:
    return next(path for path in paths if path.exists())


SKILL = _file(PACKAGE / "SKILL.md", REPOSITORY / "docs/skill/SKILL.md")
POLICY = _file(PACKAGE / "SECURITY.md", REPOSITORY / "SECURITY.md")
POLICY_PATH = "/docs/security"
VALID_DAYS = 30
"""So long a copy may be used. RFC 9116 2.5.5 recommends less than a year."""
SECURITY_PATH = "/.well-known/security.txt"

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


def _index(_: Look) -> Page:
    """`/llms.txt`."""
    return Page(PLAIN, INDEX.encode())


def _skill(_: Look) -> Page:
    """`/docs/skill`."""
    return Page(MARKDOWN, SKILL.read_bytes())


def contacts(look: Look) -> Page:
    """`/.well-known/security.txt`: the operator's contact, or else the page that says whom to ask.

    An address of this service needs the public one: without it and without a contact, 404.
    """
    options = look.options
    policy = None if options.public_url is None else f"{options.public_url}{POLICY_PATH}"
    contact = options.security_contact or policy
    if contact is None:
        detail = "This deployment names no contact: its operator sets HEADGATE_SECURITY_CONTACT."
        raise HttpRefused("unknown_endpoint", detail)
    ends = (look.now + timedelta(days=VALID_DAYS)).date()
    lines = [f"Contact: {contact}", f"Expires: {ends.isoformat()}T00:00:00Z"]
    if policy is not None:
        own = f"{options.public_url}{SECURITY_PATH}"
        lines += ["Preferred-Languages: en", f"Canonical: {own}", f"Policy: {policy}"]
    return Page(PLAIN, "".join(f"{line}\n" for line in lines).encode())


def policy(_: Look) -> Page:
    """`/docs/security`: how to report a weakness of Headgate and of a deployment."""
    return Page(MARKDOWN, POLICY.read_bytes())


WELL_KNOWN_ROUTES: tuple[Route, ...] = (
    Document("/llms.txt", _index, PLAIN, is_listed=False),
    Document("/docs/skill", _skill, MARKDOWN, is_listed=False),
    Document(SECURITY_PATH, contacts, PLAIN, is_listed=False),
    Document(POLICY_PATH, policy, MARKDOWN, is_listed=False),
)
