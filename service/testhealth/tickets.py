"""The issue of a test: its title, the text that is kept up to date, and comments.

Names and messages are those of foreign reports; none of them does anything at the provider.

See docs/design/quarantine.md 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from service.testhealth.store.figures import Rates
from service.testhealth.store.listings import ListedCase
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
class TicketText:
    """A test as its issue shows it; `page` is our page of it, None: we have no public address."""

    case: ListedCase
    page: str | None
    links: Links
    version: str


def marker(test_id: str) -> str:
    """The hidden first line by which the issue of a test is found again."""
    return f"<!-- headgate:ticket v=1 test={test_id} -->"


def title(view: TicketText) -> str:
    """`Flaky test: test_total`; at most 256 characters."""
    return f"{TITLES[view.case.status]}: {markdown.cleaned(view.case.name) or '(no name)'}"


def body(view: TicketText) -> str:
    """The whole text of the issue, its marker included."""
    pieces = [
        marker(view.case.id),
        f"This test is **{view.case.status.value}** since {_minute(view.case.since)}.",
        markdown.code(view.case.reason),
        _facts(view),
        _failures(view),
        f"<sub>{KEPT_BY} · Headgate {view.version}</sub>",
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def comment(view: TicketText, opens_at: datetime | None) -> str:
    """The status has changed; `opens_at`: the issue is closed and stays so until then."""
    again = "again" if view.case.status is Health.HEALTHY else "now"
    said = f"This test is **{view.case.status.value}** {again}. {markdown.code(view.case.reason)}"
    if opens_at is None:
        return said
    return (
        f"{said}\n\nThis issue was closed a short while ago and stays closed for now. If the test "
        f"is still unhealthy on {opens_at.astimezone(UTC):%Y-%m-%d}, it is opened again."
    )


def _facts(view: TicketText) -> str:
    rates = view.case.rates or Rates()
    name = markdown.code(view.case.name)
    linked = markdown.page(Code(view.case.name), view.page, view.links) if view.page else name
    rows = [
        ("Class", _code(view.case.classname)),
        ("File", _code(view.case.file)),
        ("Variant", _code(view.case.variant)),
        ("Owners", " ".join(markdown.code(each) for each in view.case.owners)),
        ("Failed attempts", f"{rates.week:.1%} in 7 days, {rates.day:.1%} in 24 hours"),
        ("Pull requests hit in 7 days", str(view.case.impact)),
        ("Quarantined", "yes: its failures count as passed" if view.case.quarantined else "no"),
    ]
    return markdown.table(("Test", linked), [row for row in rows if row[1]])


def _failures(view: TicketText) -> str:
    lines = [
        f"- {times.times(each.count)}, {'last ' if each.count > 1 else ''}at "
        f"{_minute(each.last_at)}: {markdown.code(each.headline)}"
        for each in view.case.failures
    ]
    return "\n".join(["How it failed in 7 days:", "", *lines]) if lines else ""


def _code(text: str) -> str:
    return markdown.code(text) if text else ""


def _minute(at: datetime) -> str:
    """In full: an issue is read on other days."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
