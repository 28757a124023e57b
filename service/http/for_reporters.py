"""Whom to tell about a weakness: `/.well-known/security.txt` (RFC 9116), and `/docs/security`."""

from datetime import timedelta
from pathlib import Path

from service.http.errors import HttpRefused
from service.http.route import Document, Look, Page, Route

PLAIN = "text/plain; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
POLICY_PATH = "/docs/security"
VALID_DAYS = 30
"""So long a copy may be used. RFC 9116 2.5.5 recommends less than a year."""

# The wheel carries it inside the package.
POLICY = next(
    path
    for folder in (Path(__file__).parent, Path(__file__).parents[2])
    if (path := folder / "SECURITY.md").exists()
)


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
        own = f"{options.public_url}{PATH}"
        lines += ["Preferred-Languages: en", f"Canonical: {own}", f"Policy: {policy}"]
    return Page(PLAIN, "".join(f"{line}\n" for line in lines).encode())


def policy(_: Look) -> Page:
    """`/docs/security`: how to report a weakness of Headgate and of a deployment."""
    return Page(MARKDOWN, POLICY.read_bytes())


PATH = "/.well-known/security.txt"
REPORTER_ROUTES: tuple[Route, ...] = (
    Document(PATH, contacts, PLAIN, is_listed=False),
    Document(POLICY_PATH, policy, MARKDOWN, is_listed=False),
)
