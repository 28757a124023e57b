"""`tests list|show|quarantine|release`: what is sent, what is printed, how it ends."""

import json

import pytest

from bot.cli import app

ID = "06cb6db5-f807-5198-b072-af67a0636f8a"
REPO = {"host": "github.com", "owner": "octo", "name": "widgets"}
ABOUT = {"repo": REPO, "org_url_slug": "octo"}
TEST = {
    "id": ID,
    "name": "test_total",
    "variant": "unix",
    "file_path": "tests/ui/test_cart.py",
    "status": {"value": "flaky", "reason": "Why.", "timestamp": "2026-02-27T08:00:00.000Z"},
    "codeowners": ["@octo/web", "@bob"],
    "pull_requests_impacted_last_7d": 6,
    "quarantined": False,
}
DETAILS = TEST | {
    "most_common_failures": [
        {"summary": "10.0 != 10.01", "occurrence_count": 31, "last_occurrence": ""}
    ],
    "failure_rate_last_7d": 0.14,
    "failure_rate_last_24h": 0.2,
    "quarantine_override": "ALWAYS_QUARANTINE",
    "quarantine_expires_at": "2026-04-01T08:00:00.000Z",
    "last_run_at": "2026-03-02T08:00:00.000Z",
}
QUARANTINED = {
    "test_case_id": ID,
    "name": "test_total",
    "variant": "",
    "file": None,
    "quarantine_setting": "AUTO_QUARANTINE",
    "expires_at": None,
    "reason": "Why.",
}
OVERRIDE = "/flaky-tests/set-quarantine-override"


@pytest.fixture(autouse=True)
def own(api):
    """The token's organization."""
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})


def headgate(*arguments):
    return app.run(["tests", *arguments, "--repo", "octo/widgets"])


def a_page(token=""):
    return {"next_page_token": token}


def test_unhealthy_tests_are_listed_page_by_page(api, capsys):
    path = "/flaky-tests/list-unhealthy-tests"
    api.says(path, {"tests": [TEST], "page": a_page("hgp1_x")})
    api.says(path, {"tests": [TEST | {"quarantined": True}], "page": a_page()})
    assert headgate("list", "broken") == 0
    sent = [body for asked, body, _ in api.asked if asked == path]
    assert [body["page_query"]["page_token"] for body in sent] == ["", "hgp1_x"]
    assert {name: sent[0][name] for name in ("repo", "org_url_slug", "status")} == {
        **ABOUT,
        "status": "broken",
    }
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["Id", "Test", "PRs", "hit", "Owners", "Quarantined", "Because"]
    assert "tests/ui/test_cart.py::test_total (unix)" in first
    assert first.split()[-5:] == ["6", "@octo/web,", "@bob", "no", "Why."]
    assert second.split()[-2:] == ["yes", "Why."]


def test_quarantined_tests_are_listed_and_printed_as_json_when_asked(api, capsys):
    path = "/flaky-tests/list-quarantined-tests"
    api.says(path, {"quarantined_tests": [QUARANTINED], "page": a_page()})
    assert headgate("list", "quarantined") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *(ID, "test_total", "AUTO_QUARANTINE", "it", "is", "healthy", "Why."),
    ]
    assert headgate("list", "quarantined", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [QUARANTINED]


def test_a_test_is_shown_with_how_it_fails(api, capsys):
    api.says("/flaky-tests/get-test-details", {"test": DETAILS})
    assert headgate("show", ID) == 0
    assert api.asked[-1][1] == {**ABOUT, "test_id": ID}
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["Status"] == "flaky since 2026-02-27T08:00:00.000Z"
    assert told["Fails"] == "14 % in 7 days, 20 % in 24 hours"
    assert told["Override"] == "ALWAYS_QUARANTINE until 2026-04-01T08:00:00.000Z"
    assert told["Failed"] == "31 times: 10.0 != 10.01"
    assert headgate("show", ID, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"test": DETAILS}


def test_a_test_is_quarantined_and_released(api, capsys):
    said = {"test_id": ID, "expires_at": "2026-04-01T08:00:00.000Z", "quarantined": False}
    api.says(OVERRIDE, said | {"override": "ALWAYS_QUARANTINE"})
    assert headgate("quarantine", ID, "--reason", "#991") == 0
    wish = {"test_id": ID, "override": "ALWAYS_QUARANTINE", "reason": "#991"}
    assert api.asked[-1][1] == ABOUT | wish
    shown = capsys.readouterr()
    assert shown.out == f"Quarantined {ID} until 2026-04-01T08:00:00.000Z\n"
    assert "quarantine_enabled" in shown.err
    until = "2026-03-09T00:00:00Z"
    assert headgate("quarantine", ID, "--reason", "#991", "--until", until, "--json") == 0
    assert api.asked[-1][1]["expires_at"] == until
    assert json.loads(capsys.readouterr().out)["override"] == "ALWAYS_QUARANTINE"
    assert headgate("release", ID) == 0
    assert api.asked[-1][1] == ABOUT | {"test_id": ID, "override": "UNSPECIFIED"}
    assert capsys.readouterr().out == f"Released {ID}\n"


def test_an_upload_is_deleted(api, capsys):
    gone = {"upload_id": ID, "deleted": True}
    api.says("/flaky-tests/delete-upload", gone)
    assert headgate("delete-upload", ID) == 0
    assert api.asked[-1][1] == ABOUT | {"upload_id": ID}
    assert capsys.readouterr().out == f"Deleted {ID}\n"
    assert headgate("delete-upload", ID, "--json") == 0
    assert json.loads(capsys.readouterr().out) == gone


def test_a_test_that_its_status_quarantines_stays_so_when_released(api, capsys):
    api.says(OVERRIDE, {"test_id": ID, "quarantined": True})
    assert headgate("release", ID) == 0
    assert "Still quarantined" in capsys.readouterr().err


def test_an_unknown_test_is_exit_code_4(api, capsys):
    api.refuses("/flaky-tests/get-test-details", 404, "test_not_found")
    assert headgate("show", ID) == 4
