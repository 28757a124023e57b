"""`/.well-known/security.txt` names whom to tell about a weakness (RFC 9116)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot import settings
from service.http import well_known
from service.http.errors import HttpRefused
from service.http.route import Look
from service.process.api import routes
from service.runtime import Options
from tests.tidy.tree import ROOT

NOW = datetime(2026, 11, 28, 23, 59, tzinfo=UTC)
PUBLIC = Options("1", public_url="https://queue.example.org")
POLICY = "https://queue.example.org/docs/security"


def look(options: Options) -> Look:
    return Look({}, routes.CONTRACT, options, NOW)


def contacts(options: Options) -> dict[str, str]:
    """The fields of the file."""
    page = well_known.contacts(look(options))
    assert page.content_type == "text/plain; charset=utf-8"
    return dict(line.split(": ", 1) for line in page.body.decode().splitlines())


def test_the_file_names_the_operators_contact_and_ends_within_a_year():
    assert contacts(replace(PUBLIC, security_contact="mailto:security@example.org")) == {
        "Contact": "mailto:security@example.org",
        "Expires": "2026-12-28T00:00:00Z",
        "Preferred-Languages": "en",
        "Canonical": "https://queue.example.org/.well-known/security.txt",
        "Policy": POLICY,
    }


def test_without_a_contact_it_leads_to_the_page_that_says_whom_to_ask():
    assert contacts(PUBLIC)["Contact"] == POLICY


def test_without_a_public_address_a_contact_is_enough():
    alone = contacts(Options("1", security_contact="https://example.org/report"))
    assert alone.keys() == {"Contact", "Expires"}


def test_nothing_is_made_up_where_nothing_is_set():
    with pytest.raises(HttpRefused, match="HEADGATE_SECURITY_CONTACT"):
        well_known.contacts(look(Options("1")))


def test_the_policy_is_the_one_of_the_repository():
    page = well_known.policy(look(PUBLIC))
    assert page.body == (ROOT / "SECURITY.md").read_bytes()
    assert b"Report a vulnerability" in page.body


@pytest.mark.parametrize(
    ("given", "contact"),
    [
        ("security@example.org", "mailto:security@example.org"),
        ("mailto:a@example.org", "mailto:a@example.org"),
        ("https://example.org/report", "https://example.org/report"),
        ("tel:+1-201-555-0123", "tel:+1-201-555-0123"),
    ],
)
def test_a_contact_is_an_address(given: str, contact: str):
    assert settings.alone(security_contact=given).security_contact == contact


@pytest.mark.parametrize(
    "given", ["http://example.org", "somebody", "a b@example.org", "a@b\nExpires: x", "https://"]
)
def test_what_is_no_address_is_refused_with_the_forms(given: str):
    with pytest.raises(ValueError, match="must be a mail address, or begin with mailto:"):
        settings.alone(security_contact=given)
