"""`queue shadow-report`: the sums and the pull requests, as a terminal shows them."""

from bot.cli import app
from bot.cli.shadow_text import ROWS_MAX

ROW = {
    "number": 7,
    "submittedAt": "2026-03-02T14:00:00.000Z",
    "verdict": "failed",
    "decidedAt": "2026-03-02T14:12:00.000Z",
    "isMerged": True,
    "mergedAt": "2026-03-02T14:30:00.000Z",
    "isRed": True,
    "failedChecks": ["unit"],
    "failedTests": ["test_cart"],
}
OPEN = {
    **ROW,
    "number": 8,
    "verdict": "undecided",
    "decidedAt": None,
    "isMerged": False,
    "mergedAt": None,
    "isRed": None,
    "failedChecks": [],
    "failedTests": [],
}
REPORT = {
    "since": "2026-03-01T09:00:00.000Z",
    "until": None,
    "submitted": 31,
    "passed": 28,
    "failed": 2,
    "merged": 29,
    "mergedUndecided": 1,
    "compared": 30,
    "same": 28,
    "passedNotMerged": 1,
    "failedButMerged": 1,
    "toVerdict": {"p50Seconds": 600, "p95Seconds": 900},
    "toMerge": {"p50Seconds": 1500, "p95Seconds": 3000},
    "savedP50Seconds": 870,
    "runs": 58,
    "runsPerMerge": 2,
    "flakyRuns": 3,
    "isSmall": False,
    "pullRequests": [ROW, OPEN],
}
NEVER = {"since": None}


def report(api, capsys, answer):
    api.says("/getShadowReport", answer)
    assert app.run(["queue", "shadow-report", "--branch", "main"]) == 0
    return capsys.readouterr().out.splitlines()


def test_sums_and_rows(api, capsys):
    lines = report(api, capsys, REPORT)
    assert lines[0] == "octo/widgets main, in shadow since 2026-03-01 09:00 UTC"
    facts = [" ".join(line.split()) for line in lines[1:]]
    for wanted in (
        "Entered 31: 28 passed and 2 failed here, 29 were merged by others, "
        "1 of them before Headgate had decided",
        "Same verdict 28 of 30 that both sides decided",
        "Passed here, not merged 1",
        "Failed here, merged 1",
        "Entry to verdict 10.0 min in the median, 15.0 min P95",
        "Entry to merge 25.0 min in the median, 50.0 min P95",
        "Saved 14.5 min earlier in the median",
        "Test runs 58, 2.0 for each merge",
        "Flakes found in 3 test runs",
        "#7 failed 12.0 min merged 30.0 min red test_cart",
        "#8 undecided not merged",
    ):
        assert wanted in facts


def test_few_pull_requests_and_a_later_verdict_are_said_as_such(api, capsys):
    few = {"compared": 3, "same": 3, "isSmall": True, "savedP50Seconds": -60}
    none = {"toVerdict": None, "toMerge": None, "runsPerMerge": None}
    ended = {"until": "2026-03-08T09:00:00.000Z"}
    text = "\n".join(report(api, capsys, REPORT | few | none | ended))
    assert "3 of 3 that both sides decided. Few so far: this says little" in text
    assert "1.0 min later in the median" in text
    assert "Entry to" not in text
    assert "until 2026-03-08 09:00 UTC" in text


def test_a_queue_that_was_never_in_shadow_says_how_to_begin(api, capsys):
    assert report(api, capsys, NEVER) == [
        "The queue for main of octo/widgets has never been in shadow.",
        "Set it: headgate queue update --set shadow=true",
    ]


def test_many_rows_are_cut(api, capsys):
    rows = [{**ROW, "number": number} for number in range(ROWS_MAX + 5)]
    assert report(api, capsys, {**REPORT, "pullRequests": rows})[-1] == (
        "and 5 more; --json has them"
    )
