"""`headgate test` sends how the runners of its command ended, as far as they have said it."""

import json
import sys
from pathlib import Path

import pytest

from bot.cli import app, runner_ends
from bot.cli.live_lines import LINE_BYTES_MAX
from service.http.models import common
from service.testhealth.api.models import runner_ends as models
from service.testhealth.runner_ends import ENDS_MAX, EndReason
from tests.cli.service import an_upload

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
UPLOAD = "/flaky-tests/upload-test-results"
CASES = '<testsuite><testcase name="a"/></testsuite>'
START = {"v": 1, "event": "start", "run": "1", "runner": "pytest"}
END = {**START, "event": "end", "reason": "passed", "exit_code": 0, "planned": 3, "passed": 3}
SENT = {
    "run": "1",
    "runner": "pytest",
    "reason": "passed",
    "exit_code": 0,
    "planned": 3,
    "passed": 3,
    "failed": 0,
    "skipped": 0,
    "not_run": 0,
    "unloaded": [],
    "errors_outside": [],
}
LINE_OF_START, LINE_OF_END = (f"{json.dumps(line)}\n" for line in (START, END))
KILLED = {"run": "1", "runner": "pytest", "reason": "killed"}


def read(folder: Path, *lines: object) -> list[dict[str, object]]:
    """What is sent for these lines; the service takes it."""
    path = folder / "live"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ends = runner_ends.read(path)
    for each in ends:
        common.read(models.RunnerEndSent, each)
    assert len(json.dumps(ends)) <= runner_ends.BYTES_MAX
    return ends


def test_the_end_of_a_run_is_sent_in_its_own_words(tmp_path):
    assert read(tmp_path) == []
    assert runner_ends.read(tmp_path / "none") == []
    assert read(tmp_path, START, END) == [SENT]
    assert read(tmp_path, START, {**END, "shard": "2/4"}) == [{**SENT, "shard": "2/4"}]


def test_the_log_says_of_an_end_what_the_reports_do_not_show(tmp_path):
    def said(*lines):
        return list(runner_ends.sentences(read(tmp_path, *lines)))

    assert said(START, END) == []
    assert said(START, {**END, "reason": "tests_failed"}) == []
    assert said(START) == ["pytest began and did not end"]
    assert said(START, {**END, "reason": "threshold"}) == [
        "pytest missed a threshold, such as that of the coverage"
    ]
    error = {"file": "tests/test_mail.py", "message": "No module named 'nope'"}
    unloaded = {**END, "reason": "unloaded", "unloaded": [error], "unloaded_more": 2}
    assert said(START, unloaded) == [
        "pytest could not load files: tests/test_mail.py and 2 more",
    ]
    outside = {"file": "", "message": "Unhandled rejection"}
    assert said(START, {**END, "reason": "error_outside", "errors_outside": [outside]}) == [
        "pytest met errors outside of the tests: Unhandled rejection"
    ]
    named = {*runner_ends.WORDS, "tests_failed", "passed"}
    assert named == set(EndReason)


def test_a_run_that_did_not_say_how_it_ended_was_killed(tmp_path):
    assert read(tmp_path, START) == [KILLED]
    other = {**END, "run": "2"}
    assert read(tmp_path, START, {**START, "run": "2"}, other) == [KILLED, {**SENT, "run": "2"}]
    long = {**END, "unloaded": [{"file": "x", "message": "y" * LINE_BYTES_MAX}]}
    assert read(tmp_path, START, long) == [KILLED]
    assert read(tmp_path, START, {**END, "reason": "dreamt"}) == [KILLED]


def test_every_end_of_one_run_is_sent(tmp_path):
    # Which of them is true is not for the command line to say.
    assert len(read(tmp_path, START, END, {**END, "passed": 2})) == 2


@pytest.mark.parametrize(
    "line",
    [
        [],
        {**END, "v": 2},
        {**END, "run": 3},
        {**END, "runner": ""},
        {**END, "event": "begin"},
    ],
)
def test_what_is_not_the_protocol_is_passed_over(tmp_path, line):
    assert read(tmp_path, line) == []


def test_values_of_another_kind_say_nothing(tmp_path):
    odd = {"exit_code": 999, "planned": True, "passed": -1, "failed": "2", "unloaded": 7}
    odd["errors_outside"] = [3, {"file": None, "message": "a\x1b[31m\nb\ud800"}]
    (end,) = read(tmp_path, START, {**END, **odd})
    assert end == {
        **SENT,
        "exit_code": None,
        "planned": 0,
        "passed": 0,
        "errors_outside": [{"file": "", "message": "a [31m b"}],
    }


def test_what_is_too_much_is_counted_and_the_worst_is_kept(tmp_path):
    errors = [{"file": f"{n}.py", "message": "é" * 60} for n in range(30)]
    bad = {**END, "reason": "unloaded", "unloaded": errors, "unloaded_more": 5}
    ends = [{**END, "run": f"{n}"} for n in range(60)] + [{**bad, "run": f"b{n}"} for n in range(9)]
    found = read(tmp_path, *ends)
    assert len(found) == ENDS_MAX
    assert [each["run"] for each in found[:9]] == [f"b{n}" for n in range(9)]
    listed = found[0]["unloaded"]
    assert isinstance(listed, list)
    assert found[0]["unloaded_more"] == 35 - len(listed)
    assert 0 < len(listed) < 20


@pytest.mark.parametrize(
    ("lines", "sent"), [([START, END], [SENT]), ([START], [KILLED]), ([], None)]
)
def test_it_is_sent_with_the_reports(api, lines, sent):
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})
    api.says(UPLOAD, an_upload())
    written = "".join(f"{json.dumps(line)}\n" for line in lines)
    program = (
        "import os, pathlib; live = open(os.environ['HEADGATE_LIVE'], 'a');"
        f" live.write({written!r}); pathlib.Path('a.xml').write_text({CASES!r})"
    )
    options = ["test", "--junit", "*.xml", "--sha", SHA, "--no-progress"]
    assert app.run([*options, "--", sys.executable, "-c", program]) == 0
    (asked,) = [body for path, body, _ in api.asked if path == UPLOAD]
    assert asked.get("runner_ends") == sent


@pytest.mark.parametrize("is_taken", [True, False])
def test_an_odd_end_is_sent_without_a_report_and_changes_no_exit_code(api, capsys, is_taken):
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})
    if is_taken:
        api.says(UPLOAD, an_upload(failed=0, html_url="https://headgate.test/octo/1"))
    else:
        api.refuses(UPLOAD, 400, "invalid_field")
    program = (
        f"import os; live = open(os.environ['HEADGATE_LIVE'], 'a'); live.write({LINE_OF_START!r});"
        " live.flush(); os.kill(os.getpid(), 9)"
    )
    options = ["test", "--junit", "*.xml", "--sha", SHA, "--no-progress", "--strict"]
    assert app.run([*options, "--", sys.executable, "-c", program]) == 137
    asked = [body for path, body, _ in api.asked if path == UPLOAD]
    assert [(each["runner_ends"], each["files"]) for each in asked] == [([KILLED], {})]
    said = capsys.readouterr().err
    assert ("results: https://headgate.test/octo/1" in said) == is_taken
    assert ("the end of the test runner was not sent" in said) != is_taken
    assert said.endswith("the command was ended by signal 9: exit code 137.\n")


def test_a_plain_end_without_a_report_is_not_sent(api):
    program = (
        "import os; live = open(os.environ['HEADGATE_LIVE'], 'a');"
        f" live.write({LINE_OF_START!r} + {LINE_OF_END!r})"
    )
    options = ["test", "--junit", "*.xml", "--sha", SHA, "--no-progress"]
    assert app.run([*options, "--", sys.executable, "-c", program]) == 0
    assert [path for path, *_ in api.asked if path == UPLOAD] == []
