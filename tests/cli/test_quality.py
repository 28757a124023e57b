"""`tests quality|preview`: what is sent, what is printed, how it ends."""

import pytest

from bot.cli import app

REPO = {"host": "github.com", "owner": "octo", "name": "widgets"}
ABOUT = {"repo": REPO, "org_url_slug": "octo"}
QUALITY = "/flaky-tests/get-detection-quality"
PREVIEW = "/flaky-tests/preview-settings"
TEST = {
    "id": "06cb6db5-f807-5198-b072-af67a0636f8a",
    "html_url": "http://127.0.0.1:8642/octo/widgets/tests/06cb6db5",
    "name": "test_total",
    "variant": "linux",
    "file_path": "tests/test_cart.py",
}
PAST = {
    "flags": 14,
    "flags_confirmed": 12,
    "flags_unconfirmed": 1,
    "flags_open": 1,
    "precision_at_least": 0.857,
    "flags_missing": 0,
    "failures_caught": 40,
    "failures_missed": 4,
    "failures_unclear": 6,
    "recall_at_least": 0.8,
    "recall_at_most": 0.909,
    "failures_missing": 0,
    "weeks": [],
    "flaky_now": 3,
    "broken_now": 1,
    "times_broken": 2,
    "failed_results": 90,
    "failed_results_excused": 0,
    "queue_runs_failed_by_flakes": 5,
    "queue_runs_explained": 4,
}
LITTLE = {
    **PAST,
    "precision_at_least": None,
    "flags_missing": 8,
    "recall_at_least": None,
    "recall_at_most": None,
    "failures_missing": 20,
}
SPAN = {
    "replayed_at": "2026-03-22T00:00:00.000Z",
    "since": "2026-02-20T00:00:00.000Z",
    "until": "2026-03-22T00:00:00.000Z",
    "uploads_left_out": 0,
}
NOTHING = {"since": None, "until": None}


@pytest.fixture(autouse=True)
def own(api):
    """The token's organization."""
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})


def headgate(*arguments):
    return app.run(["tests", *arguments, "--repo", "octo/widgets"])


def sent(api, path):
    return [body for asked, body, _ in api.asked if asked == path]


def test_estimates_are_shown_with_flags_and_failures_that_look_wrong(api, capsys):
    flag = {
        **TEST,
        "flagged_at": "2026-03-01T00:00:00.000Z",
        "cleared_at": None,
        "runs_since": 140,
        "runs_needed": 230,
    }
    missed = {**TEST, "failed_at": "2026-03-01T00:00:00.000Z", "flagged_at": None}
    answer = {**SPAN, "tests": 30, "past": PAST, "uploads_left_out": 7}
    api.says(QUALITY, {**answer, "doubtful_flags": [flag], "missed_failures": [missed]})
    assert headgate("quality") == 0
    assert sent(api, QUALITY) == [ABOUT]
    shown = capsys.readouterr()
    for words in ("at least 85.7 %", "80 % to 90.9 %", "140 of 230", "not again", "4 of 5"):
        assert words in shown.out
    assert "7 older uploads are left out" in shown.err


def test_too_little_evidence_is_said_with_the_number_that_is_missing(api, capsys):
    lists: dict[str, object] = {"doubtful_flags": [], "missed_failures": []}
    api.says(QUALITY, {**SPAN, "tests": 30, "past": LITTLE, **lists})
    api.says(QUALITY, {**SPAN, **NOTHING, "tests": 0, "past": None, **lists})
    assert headgate("quality") == 0
    shown = capsys.readouterr().out
    assert "too little evidence: 8 more flags with a known outcome are needed" in shown
    assert "too little evidence: 20 more flaky failures needed" in shown
    assert headgate("quality") == 0
    assert "No evidence is stored yet" in capsys.readouterr().out


def test_a_preview_shows_both_settings_and_the_tests_that_differ(api, capsys):
    lists = {"newly_flagged": [TEST], "no_longer_flagged": []}
    more = {"not_replayed": ["ticket_issues"], "notes": ["No positions."]}
    eager = {**PAST, "flags": 21}
    api.says(PREVIEW, {**SPAN, "now": PAST, "then": eager, **lists, **more})
    changes = ("--set", "sensitivity=eager", "--set", "ticket_issues=true")
    assert headgate("preview", *changes) == 0
    wanted = {**ABOUT, "sensitivity": "eager", "ticket_issues": True}
    assert sent(api, PREVIEW) == [wanted]
    shown = capsys.readouterr()
    assert "Flagged then, not now" in shown.out
    assert "Flagged now, not then" not in shown.out
    assert "Not replayed: ticket_issues" in shown.err
    assert "No positions." in shown.err
    flags = next(line for line in shown.out.splitlines() if line.startswith("Flags"))
    assert flags.split() == ["Flags", "14", "21"]


def test_a_preview_that_changes_nothing_or_knows_nothing_says_so(api, capsys):
    lists: dict[str, object] = {"newly_flagged": [], "no_longer_flagged": []}
    lists |= {"not_replayed": [], "notes": []}
    api.says(PREVIEW, {**SPAN, "now": PAST, "then": None, **lists})
    api.says(PREVIEW, {**SPAN, **NOTHING, "now": None, "then": None, **lists})
    for words in ("The past would have been the same.", "No evidence is stored yet"):
        assert headgate("preview", "--set", "sensitivity=normal") == 0
        assert words in capsys.readouterr().out


def test_a_preview_without_settings_says_how_to_ask(capsys):
    assert headgate("preview") == 2
    assert "headgate tests preview --set sensitivity=eager" in capsys.readouterr().err
