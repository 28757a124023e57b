"""`tests slowest|shards|costs|machines`: what is sent, what is printed, how it ends."""

import io

import pytest

from bot.cli import app

REPO = {"host": "github.com", "owner": "octo", "name": "widgets"}
ABOUT = {"repo": REPO, "org_url_slug": "octo"}
WEEK = {"first_day": "2026-03-15", "last_day": "2026-03-21"}
TIMES = {"runs": 28, "total_seconds": 4000.0, "median_seconds": 2.1, "p95_seconds": 0.0482}
SLOW = {
    "id": "06cb6db5-f807-5198-b072-af67a0636f8a",
    "html_url": "http://127.0.0.1:8642/octo/widgets/tests/06cb6db5",
    "name": "test_total",
    "variant": "",
    "file_path": "tests/test_cart.py",
    "codeowners": ["@octo/web"],
    "week": TIMES,
    "week_before": TIMES,
    "median_change": 0.25,
}
PLAN = {
    "week": WEEK,
    "shards": [
        {"index": 1, "expected_seconds": 212.0, "files": ["tests/a b.py", "tests/c.py"]},
        {"index": 2, "expected_seconds": 9.5, "files": []},
    ],
    "worst_expected_seconds": 212.0,
    "files_known": 1,
    "files_unknown": 1,
    "too_little_is_known": False,
    "note": "The time of 1 of 2 files is not known; each counts as 2.1 s, the median.",
}


@pytest.fixture(autouse=True)
def own(api):
    """The token's organization."""
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})


def headgate(*arguments):
    return app.run(["tests", *arguments, "--repo", "octo/widgets"])


def sent(api, path):
    return [body for asked, body, _ in api.asked if asked == path]


def test_slow_tests_are_listed_with_their_times_and_trend(api, capsys):
    path = "/flaky-tests/list-slowest-tests"
    totals = {"tests_timed": 5000, "total_seconds": 120_000.0, "total_seconds_before": 60.0}
    api.says(path, {"week": WEEK, "tests": [SLOW], **totals})
    api.says(path, {"week": None, "tests": [], **totals})
    assert headgate("slowest", "--sort", "p95", "--owner", "@octo/web") == 0
    assert sent(api, path) == [{**ABOUT, "order_by": "P95", "owner": "@octo/web", "limit": 20}]
    shown = capsys.readouterr()
    assert "5000 tests took 33:20 h, 1:00 min in the week before" in shown.err
    row = shown.out.splitlines()[1]
    for text in ("tests/test_cart.py::test_total", "1:06 h", "2.1 s", "0.0482 s", "+25 %"):
        assert text in row
    assert headgate("slowest") == 0
    assert "No time of a test is known yet" in capsys.readouterr().out


def test_a_shard_is_printed_as_a_runner_takes_it_and_a_warning_goes_to_stderr(
    api, capsys, tmp_path, monkeypatch
):
    path = "/flaky-tests/plan-shards"
    for _ in range(4):
        api.says(path, PLAN)
    listed = tmp_path / "files"
    listed.write_text("tests/a b.py\n\ntests/c.py\n")
    for form, text in (
        ("pytest", "'tests/a b.py' tests/c.py"),
        ("jest", "--runTestsByPath 'tests/a b.py' tests/c.py"),
        ("files", "tests/a b.py\ntests/c.py"),
    ):
        asked = ("--count", "2", "--shard", "1", "--format", form, "--files", str(listed))
        assert headgate("shards", *asked) == 0
        shown = capsys.readouterr()
        assert shown.out == f"{text}\n"
        assert "The time of 1 of 2 files is not known" in shown.err
    monkeypatch.setattr("sys.stdin", io.StringIO("tests/c.py\n"))
    assert headgate("shards", "--count", "2", "--files", "-", "--variant", "linux") == 0
    assert "The longest takes 3:32 min." in capsys.readouterr().out
    files = ["tests/a b.py", "tests/c.py"]
    assert sent(api, path)[0] == {**ABOUT, "count": 2, "files": files}
    assert sent(api, path)[3] == {**ABOUT, "count": 2, "files": ["tests/c.py"], "variant": "linux"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--shard", "1"], "--shard and --format go together"),
        (["--format", "files"], "--shard and --format go together"),
        (["--shard", "3", "--format", "files"], "There is no shard 3 of 2"),
        (["--shard", "1", "--format", "jest"], "new files would be in no shard"),
        (["--files", "none-such"], "cannot be read"),
    ],
)
def test_a_wrong_request_for_shards_says_what_is_wrong(capsys, arguments, why):
    assert headgate("shards", "--count", "2", *arguments) == 2
    assert why in capsys.readouterr().err


def test_bad_machines_are_shown_with_who_acts(api, capsys):
    path = "/flaky-tests/list-bad-machines"
    figures = {"failing_runs": 18, "runs": 21, "failing_runs_elsewhere": 7, "runs_elsewhere": 179}
    examples = [{"name": f"test_{nth}"} for nth in range(5)]
    bad = {"name": "runner 7", "since": "2026-03-22T04:00:00Z", "tests": 15, "examples": examples}
    api.says(path, {"machines": [{**bad, **figures}], "advice": "Whoever runs it repairs it."})
    api.says(path, {"machines": [], "advice": ""})
    assert headgate("machines") == 0
    shown = capsys.readouterr()
    for text in ("runner 7", "15", "2026-03-22", "18 of 21 failed", "7 of 179", "test_0, test_1"):
        assert text in shown.out
    assert "Whoever runs it repairs it." in shown.err
    assert headgate("machines") == 0
    assert "No machine fails tests" in capsys.readouterr().out


def a_week(start, days, ci):
    cost = {"ci_seconds": ci, "pull_request_seconds": 7200, "queue_failures": 1.5}
    return {"week_start": start, "days_counted": days, **cost}


def test_costs_are_shown_by_week_and_owner(api, capsys):
    path = "/flaky-tests/get-flake-costs"
    weeks = [a_week("2026-03-09", 0, 0), a_week("2026-03-16", 7, 5400), a_week("2026-03-23", 2, 60)]
    answer = {"counted": WEEK, "weeks": weeks, "alert_minutes": 80, "alert": True}
    owners = [{"owner": "@octo/web", "weeks": weeks}, {"owner": None, "weeks": weeks}]
    api.says(path, {**answer, "owners": owners})
    api.says(path, {**answer, "weeks": weeks[:1], "owners": []})
    assert headgate("costs", "--weeks", "3") == 0
    shown = capsys.readouterr()
    assert "2026-03-09" not in shown.out
    assert "2026-03-23 (in part)" in shown.out
    assert "1:31 h" in shown.out
    assert "no owner" in shown.out
    assert "above the limit of 80 minutes" in shown.err
    assert headgate("costs") == 0
    assert "No cost is known yet" in capsys.readouterr().out
    assert [body["weeks"] for body in sent(api, path)] == [3, 12]
