"""`tests list|show|quarantine|release`: what is sent, what is printed, how it ends."""

import json
import re
from datetime import datetime, timedelta

import pytest

from bot.cli import app, tests

ID = "06cb6db5-f807-5198-b072-af67a0636f8a"
REPO = {"host": "github.com", "owner": "octo", "name": "widgets"}
PAGE = f"http://127.0.0.1:8642/octo/widgets/tests/{ID}"
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
    "failure_rate_last_7d": 0.14,
    "ci_seconds_lost_last_7d": 3900,
    "last_failed_at": "2026-03-02T07:59:00.000Z",
    "html_url": PAGE,
}
DETAILS = TEST | {
    "most_common_failures": [
        {"summary": "10.0 != 10.01", "occurrence_count": 31, "last_occurrence": ""},
        {"summary": "10.0 != 10.02", "occurrence_count": 1, "last_occurrence": ""},
    ],
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
    "html_url": PAGE,
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


def test_tests_are_listed_with_rate_last_failure_owner_and_link(api, capsys):
    path = "/flaky-tests/list-tests"
    api.says(path, {"tests": [TEST], "page": a_page("hgp1_x")})
    never = TEST | {"quarantined": True, "last_failed_at": None}
    api.says(path, {"tests": [never], "page": a_page()})
    assert headgate("list", "broken", "--owner", "@bob", "--sort", "ci-time") == 0
    sent = [body for asked, body, _ in api.asked if asked == path]
    assert [body.pop("page_query")["page_token"] for body in sent] == ["", "hgp1_x"]
    filters = {"status": "broken", "owner": "@bob", "order_by": "CI_TIME"}
    assert sent == [{**ABOUT, **filters}] * 2
    heading, first, second = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", heading) == [*tests.HEADINGS, "Link"]
    assert "tests/ui/test_cart.py::test_total (unix)" in first
    assert first.split()[2:] == [
        *("flaky", "14", "%", "2026-03-02", "07:59", "UTC", "6", "1:05", "h"),
        *("@octo/web,", "@bob", "no", PAGE),
    ]
    assert second.split()[5:] == ["never", "6", "1:05", "h", "@octo/web,", "@bob", "yes", PAGE]


def test_a_long_name_is_cut_in_a_list_and_whole_on_its_own(api, capsys):
    long = TEST | {"name": "x" * 900}
    api.says("/flaky-tests/list-tests", {"tests": [long], "page": a_page()})
    assert headgate("list") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 300
    api.says("/flaky-tests/get-test-details", {"test": DETAILS | long})
    assert headgate("show", ID) == 0
    assert "x" * 900 in capsys.readouterr().out.replace("\n", "").replace(" ", "")


def test_all_tests_are_listed_without_a_status(api, capsys):
    api.says("/flaky-tests/list-tests", {"tests": [], "page": a_page()})
    assert headgate("list", "all") == 0
    assert "status" not in api.asked[-1][1]
    assert capsys.readouterr().out == "No test.\n"
    assert headgate("list", "--search", "cart") == 0
    assert api.asked[-1][1]["status"] == "flaky"
    assert api.asked[-1][1]["search"] == "cart"
    assert capsys.readouterr().out == "No flaky test.\n"


def test_tests_that_failed_in_a_week_are_listed_with_their_failure(api, capsys):
    failures = [{"summary": "10.0 != 10.01", "occurrence_count": 3, "last_occurrence": ""}]
    test = TEST | {"most_common_failures": failures}
    api.says("/flaky-tests/list-failing-tests", {"tests": [test], "page": a_page()})
    assert headgate("list", "failing") == 0
    assert "10.0 != 10.01" in capsys.readouterr().out
    span = [datetime.fromisoformat(api.asked[-1][1][name]) for name in ("start_time", "end_time")]
    assert span[1] - span[0] == timedelta(days=7)
    assert headgate("list", "failing", "--owner", "@bob") == 2
    assert "has no --owner, --search and --sort" in capsys.readouterr().err


def test_quarantined_tests_are_listed_and_printed_as_json_when_asked(api, capsys):
    path = "/flaky-tests/list-quarantined-tests"
    api.says(path, {"quarantined_tests": [QUARANTINED], "page": a_page()})
    assert headgate("list", "quarantined") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *("test_total", "AUTO_QUARANTINE", "it", "is", "healthy", "Why.", PAGE),
    ]
    assert headgate("list", "quarantined", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [QUARANTINED]


def test_a_test_is_shown_with_how_it_fails(api, capsys):
    api.says("/flaky-tests/get-test-details", {"test": DETAILS})
    assert headgate("show", ID) == 0
    assert api.asked[-1][1] == {**ABOUT, "test_id": ID}
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["Status"] == "flaky since 2026-02-27 08:00 UTC"
    assert told["Fails"] == "14 % in 7 days, 20 % in 24 hours"
    assert told["Override"] == "ALWAYS_QUARANTINE until 2026-04-01 08:00 UTC"
    assert told["Failed"] == "1 time: 10.0 != 10.02"
    assert told["Last"] == "failure  2026-03-02 07:59 UTC"
    assert told["Link"] == PAGE
    assert headgate("show", PAGE, "--json") == 0
    assert api.asked[-1][1] == {**ABOUT, "test_id": ID}
    assert json.loads(capsys.readouterr().out) == {"test": DETAILS}


@pytest.mark.parametrize("link", [f"{PAGE}/", f"{PAGE}?days=30#runs", f"urn:uuid:{ID}"])
def test_a_test_is_found_by_any_link_of_it(api, link):
    api.says("/flaky-tests/get-test-details", {"test": DETAILS})
    assert headgate("show", link) == 0
    assert api.asked[-1][1] == {**ABOUT, "test_id": ID}


def test_a_test_is_quarantined_and_released(api, capsys):
    said = {"test_id": ID, "expires_at": "2026-04-01T08:00:00.000Z", "quarantined": False}
    api.says(OVERRIDE, said | {"override": "ALWAYS_QUARANTINE"})
    assert headgate("quarantine", ID, "--reason", "#991") == 0
    wish = {"test_id": ID, "override": "ALWAYS_QUARANTINE", "reason": "#991"}
    assert api.asked[-1][1] == ABOUT | wish
    shown = capsys.readouterr()
    assert shown.out == f"Quarantined {ID} until 2026-04-01 08:00 UTC\n"
    assert shown.err.endswith(
        "headgate tests settings --set quarantine_enabled=true --repo github.com/octo/widgets\n"
    )
    until = "2026-03-09T00:00:00Z"
    assert headgate("quarantine", ID, "--reason", "#991", "--until", until, "--json") == 0
    assert api.asked[-1][1]["expires_at"] == until
    assert json.loads(capsys.readouterr().out)["override"] == "ALWAYS_QUARANTINE"
    assert headgate("release", ID) == 0
    assert api.asked[-1][1] == ABOUT | {"test_id": ID, "override": "UNSPECIFIED"}
    assert capsys.readouterr().out == f"Released {ID}\n"


def test_the_settings_of_tests_are_shown_and_changed(api, capsys):
    api.says("/flaky-tests/get-settings", {"quarantine_enabled": False, "name_masks": ["a", "b"]})
    assert headgate("settings") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Setting             Value",
        "quarantine_enabled  false",
        "name_masks          a, b",
    ]
    api.says("/flaky-tests/update-settings", {"quarantine_enabled": True})
    changes = ("--set", "quarantine_enabled=true", "--set", "name_masks=a,b")
    assert headgate("settings", *changes) == 0
    sent = {"quarantine_enabled": True, "name_masks": ["a", "b"]}
    assert api.asked[-1][1] == ABOUT | sent
    assert headgate("settings", "--set", "quarantine_enabled") == 2


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ("quarantine_enabeld=true", "Did you mean quarantine_enabled?"),
        ("zzz=1", "`headgate tests settings` lists them"),
    ],
)
def test_an_unknown_setting_of_tests_is_a_usage_error(api, capsys, change, advice):
    assert headgate("settings", "--set", change) == 2
    assert not api.asked
    assert advice in capsys.readouterr().err


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
