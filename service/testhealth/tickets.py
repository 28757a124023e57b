"""The issue of a test: its title, the text that is kept up to date, and comments.

Names and messages are those of foreign reports; none of them does anything at the provider.

See docs/design/quarantine.md 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from service.text import markdown, times
from service.text.markdown import Links
from service.text.phrases import Code
from service.vocabulary import Health

TITLES: Mapping[Health, str] = {
    Health.FLAKY: "Flaky test",
    Health.BROKEN: "Broken test",
    Health.HEALTHY: "Healthy again",
}
KEPT_BY = (
    "Headgate keeps this text up to date: write comments instead. It closes this issue when the "
    "test is healthy. One that you close stays closed until the status of the test changes."
)


@dataclass(frozen=True, slots=True)
class WayToFail:
    """One way to fail within a week: its newest headline, how often, and when last."""

    headline: str
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class TicketText:
    """A test as its issue shows it; texts are empty when missing.

    `page` is our page of it, None where nobody said how we are reached. `week` and `day` are
    shares of failed attempts.
    """

    id: str
    name: str
    classname: str
    file: str
    variant: str
    owners: Sequence[str]
    status: Health
    reason: str
    since: datetime
    impact: int
    week: float
    day: float
    failures: Sequence[WayToFail]
    quarantined: bool
    page: str | None
    links: Links
    version: str


def marker(test_id: str) -> str:
    """The hidden first line by which the issue of a test is found again."""
    return f"<!-- headgate:ticket v=1 test={test_id} -->"


def title(view: TicketText) -> str:
    """`Flaky test: test_total`; at most 256 characters."""
    return f"{TITLES[view.status]}: {markdown.cleaned(view.name) or '(no name)'}"


def body(view: TicketText) -> str:
    """The whole text of the issue, its marker included."""
    pieces = [
        marker(view.id),
        f"This test is **{view.status.value}** since {_minute(view.since)}.",
        markdown.code(view.reason),
        _facts(view),
        _failures(view),
        f"<sub>{KEPT_BY} · Headgate {view.version}</sub>",
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def comment(view: TicketText, opens_at: datetime | None) -> str:
    """The status has changed; `opens_at`: the issue is closed and stays so until then."""
    again = "again" if view.status is Health.HEALTHY else "now"
    said = f"This test is **{view.status.value}** {again}. {markdown.code(view.reason)}"
    if opens_at is None:
        return said
    return (
        f"{said}\n\nThis issue was closed a short while ago and stays closed for now. If the test "
        f"is still unhealthy on {opens_at.astimezone(UTC):%Y-%m-%d}, it is opened again."
    )


def _facts(view: TicketText) -> str:
    name = markdown.code(view.name)
    linked = markdown.page(Code(view.name), view.page, view.links) if view.page else name
    rows = [
        ("Class", _code(view.classname)),
        ("File", _code(view.file)),
        ("Variant", _code(view.variant)),
        ("Owners", " ".join(markdown.code(each) for each in view.owners)),
        ("Failed attempts", f"{view.week:.1%} in 7 days, {view.day:.1%} in 24 hours"),
        ("Pull requests hit in 7 days", str(view.impact)),
        ("Quarantined", "yes: its failures count as passed" if view.quarantined else "no"),
    ]
    return markdown.table(("Test", linked), [row for row in rows if row[1]])


def _failures(view: TicketText) -> str:
    lines = [
        f"- {times.times(each.count)}, {'last ' if each.count > 1 else ''}at "
        f"{_minute(each.last_at)}: {markdown.code(each.headline)}"
        for each in view.failures
    ]
    return "\n".join(["How it failed in 7 days:", "", *lines]) if lines else ""


def _code(text: str) -> str:
    return markdown.code(text) if text else ""


def _minute(at: datetime) -> str:
    """In full: an issue is read on other days."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
