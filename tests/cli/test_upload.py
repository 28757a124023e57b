"""`upload` and `test`: what is run and sent, and by which code each case ends.

See docs/design/reports.md 12.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import app, exits
from bot.uploader import transport
from bot.uploader.transport import Clock
from tests.cli import service
from tests.cli.service import an_upload

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
UPLOAD = "/flaky-tests/upload-test-results"
REPORT = b"<testsuite><testcase name='test_0'/></testsuite>"

PASSES = [sys.executable, "-c", "open('a.xml', 'wb').write(b'<testsuite/>')"]
FAILS = [sys.executable, "-c", f"open('a.xml', 'wb').write({REPORT!r}); raise SystemExit(3)"]
DIES = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
SILENT = [sys.executable, "-c", "raise SystemExit(3)"]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    """The service is asked again at once."""
    monkeypatch.setattr(transport, "UPLOAD_PAUSES_S", (0.0, 0.0))


@pytest.fixture(name="api")
def _api(api):
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})
    return api


def headgate(*arguments, command=()):
    behind = ["--", *command] if command else []
    name = "test" if command else "upload"
    return app.run([name, "--junit", "*.xml", "--sha", SHA, *arguments, *behind])


def test_reports_are_sent_packed_with_what_was_tested(api, capsys):
    api.says(UPLOAD, an_upload())
    Path("a.xml").write_bytes(REPORT)
    Path("b.xml").write_bytes(b"<testsuite/>")
    Path("CODEOWNERS").write_text("* @octo/web\n")
    options = ["--branch", "main", "--pr", "7", "--job", "unit", "--variant", "linux"]
    options += ["--source-root", "/src", "--format", "junit", "--codeowners", "CODEOWNERS"]
    assert headgate(*options) == 0
    assert api.paths() == ["/tokens/self", UPLOAD]
    sent = api.asked[1][1]
    assert len(str(sent.pop("session"))) == 32
    assert sent == {
        "session_uploads": 1,
        "unsent_files": 0,
        "repo": {"host": "github.com", "owner": "octo", "name": "widgets"},
        "org_url_slug": "octo",
        "sha": SHA,
        "branch": "main",
        "pr_number": 7,
        "job": "unit",
        "variant": "linux",
        "source_root": "/src",
        "format": "junit",
        "files": {"a.xml": REPORT, "b.xml": b"<testsuite/>"},
        "codeowners": "* @octo/web\n",
    }
    assert capsys.readouterr().err == (
        "headgate: sent a.xml, 48 bytes\n"
        "headgate: sent b.xml, 12 bytes\n"
        "headgate: results: http://x/uploads/b7e0a3c4\n"
        "headgate: 412 tests, no failure: exit code 0.\n"
    )


def test_a_commit_that_is_not_checked_out_is_not_sent_with_the_tree_of_the_checkout(api):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init"], [*identity, "commit", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    api.says(UPLOAD, an_upload())
    Path("a.xml").write_bytes(REPORT)
    assert headgate() == 0
    sent = api.asked[1][1]
    assert (sent["sha"], "tree_sha" in sent) == (SHA, False)


def test_an_organization_that_is_named_is_not_asked_for(api):
    api.says(UPLOAD, an_upload())
    Path("a.xml").write_bytes(REPORT)
    assert headgate("--org", "acme", "--no-progress") == 0
    assert (api.paths(), api.asked[0][1]["org_url_slug"]) == ([UPLOAD], "acme")


def test_the_command_runs_first_and_its_code_and_start_are_told(api):
    api.says(UPLOAD, an_upload(failed=2, excused=2, exit_code=0))
    assert headgate(command=FAILS) == 0
    asked = api.asked[1][1]
    assert (asked["command_exit_code"], asked["files"]) == (3, {"a.xml": REPORT})
    assert (asked["session_uploads"], asked["unsent_files"]) == (1, 0)
    assert len(asked["command_key"]) == 16
    assert asked["ran_at"].endswith("+00:00")


def test_a_run_that_sends_the_reports_of_another_says_whose_they_count_as(api, capsys, monkeypatch):
    run = {"id": 8, "run_attempt": 1, "head_sha": SHA, "head_branch": "main"}
    run |= {"event": "pull_request", "pull_requests": [], "head_repository": None}
    event = {"workflow_run": run, "workflow": {"name": "ci"}, "repository": {"id": 1}}
    Path("event.json").write_text(json.dumps(event))
    for name, value in {"ACTIONS": "true", "EVENT_NAME": "workflow_run"}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    monkeypatch.setenv("GITHUB_EVENT_PATH", "event.json")
    api.says(UPLOAD, an_upload())
    Path("a.xml").write_bytes(REPORT)
    assert headgate() == 0
    assert (api.asked[1][1]["run_id"], api.asked[1][1]["branch"]) == ("8", "?:main")
    assert capsys.readouterr().err.startswith(
        f"headgate: These count as results of run 8, attempt 1: ci of ?:main at {SHA[:8]}; a fork's"
        " are shown and change nothing.\n"
    )


QUARANTINED = "headgate: 3 failures, all quarantined: exit code 0. "
SOME = (
    "headgate: 3 failures, 2 quarantined, 1 not: exit code 3. "
    "Not quarantined: tests/ui/test_cart.py::test_0\n"
)


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (an_upload(3, 3, 0), 0, QUARANTINED + "test_0 (until 12 Dec), test_1 (until 12 Dec)"),
        (an_upload(3, 2, 3), 3, SOME),
        (
            *(an_upload(0, 0, 3), 3),
            "headgate: 412 tests, no failed test, but the command failed: exit code 3.\n",
        ),
    ],
)
def test_the_verdict_decides(api, capsys, answer, code, said):
    api.says(UPLOAD, answer)
    assert headgate(command=FAILS) == code
    assert said in capsys.readouterr().err


def test_a_report_that_was_not_read_whole_excuses_nothing(api, capsys):
    partial = [{"name": "a.xml", "status": "partial"}]
    api.says(UPLOAD, an_upload(1, 1, 3, files=partial, warnings=["a.xml is cut."]))
    assert headgate(command=FAILS) == 3
    assert capsys.readouterr().err.endswith(
        "headgate: a.xml is cut.\n"
        "headgate: results: http://x/uploads/b7e0a3c4\n"
        "headgate: 1 failure, all quarantined, but not every report "
        "was read: exit code 3. test_0 (until 12 Dec)\n"
    )


def test_a_command_that_was_killed_ends_as_in_a_shell(api):
    api.says(UPLOAD, an_upload(1, 1, 0))
    Path("a.xml").write_bytes(REPORT)
    os.utime("a.xml", (4e9, 4e9))
    assert headgate(command=DIES) == 137
    assert api.asked[1][1]["command_exit_code"] == 137


def refused_port():
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


UNREAD = "the upload of test results failed ({why}). No failure is excused in this run.\n"


@pytest.mark.parametrize(
    ("options", "command", "code"),
    [((), (), 0), ((), FAILS, 3), (("--strict",), FAILS, 3), (("--strict",), PASSES, 70)],
)
def test_a_service_that_is_not_there_excuses_nothing(monkeypatch, capsys, options, command, code):
    monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
    monkeypatch.setenv("HEADGATE_URL", f"http://127.0.0.1:{refused_port()}")
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    Path("a.xml").write_bytes(REPORT)
    assert headgate(*options, command=command) == code
    said = capsys.readouterr().err
    assert said.count("trying again") == 2
    assert said.endswith(UNREAD.format(why="connection refused"))


def test_a_service_that_hangs_is_not_asked_twice(monkeypatch, capsys):
    monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    with socket.socket() as hanging:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen()
        monkeypatch.setenv("HEADGATE_URL", f"http://127.0.0.1:{hanging.getsockname()[1]}")
        assert headgate("--timeout", "0.2s", command=FAILS) == 3
    said = capsys.readouterr().err
    assert "trying again" not in said
    assert said.endswith(UNREAD.format(why="no answer within 0.2 s"))


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (503, "overloaded", "answered 503 (overloaded): no"),
        (429, "rate_limited", "answered 429 (rate_limited): no"),
        (500, "internal_error", "answered 500 (internal_error): no"),
        (400, "invalid_field", "no"),
        (403, "missing_role", "no"),
        (413, "body_too_large", "no"),
        (422, "limit_reached", "no"),
    ],
)
def test_a_refused_upload_excuses_nothing(api, capsys, status, code, said):
    api.refuses(UPLOAD, status, code)
    assert headgate("--strict", "--org", "octo", command=PASSES) == 70
    may_pass = status >= 500 or status == 429
    assert len(api.asked) == (3 if may_pass else 1)
    assert capsys.readouterr().err.endswith(UNREAD.format(why=said))


def test_a_service_that_comes_back_is_asked_again(api):
    api.refuses(UPLOAD, 503, "overloaded")
    api.says(UPLOAD, an_upload(1, 1, 0))
    assert headgate("--org", "octo", command=FAILS) == 0
    assert api.paths() == [UPLOAD, UPLOAD]
    assert api.asked[0][1] == api.asked[1][1]


@pytest.mark.parametrize("wait", [("1", 1.0), ("60", 60.0), ("61", None)])
def test_the_service_says_how_long_to_wait(wait):
    header, seconds = wait
    slept: list[float] = []
    with service.served() as api:
        api.says("/x", {}, 503, **{"Retry-After": header})
        client = transport.Service(api.url, service.TOKEN, str, Clock(slept.append))
        with pytest.raises(transport.RequestFailed, match="answered 503"):
            client.send(transport.Request("/x"))
    assert slept == ([] if seconds is None else [seconds, seconds])


@pytest.mark.parametrize("body", [{}, {"verdict": 1}, an_upload(files=[1]), an_upload(counts={})])
def test_an_answer_that_is_none_excuses_nothing(api, capsys, body):
    api.says(UPLOAD, body)
    assert headgate(command=FAILS) == 3
    assert "is it Headgate). No failure is excused" in capsys.readouterr().err


def test_a_bad_token_excuses_nothing(api, capsys, monkeypatch):
    monkeypatch.setenv("HEADGATE_TOKEN", "hgt_other")
    assert headgate(command=FAILS) == 3
    assert "the token is unknown, expired or revoked" in capsys.readouterr().err


def test_a_job_without_secrets_does_not_fail(monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    Path("a.xml").write_bytes(REPORT)
    assert headgate() == 0
    assert headgate(command=FAILS) == 3
    assert capsys.readouterr().err.endswith(UNREAD.format(why="there is no token"))


@pytest.mark.parametrize("options", [(), ("--strict",)])
def test_no_report_is_a_warning(api, capsys, options):
    assert headgate(*options) == 0
    assert headgate(*options, command=SILENT) == 3
    api.refuses(UPLOAD, 422, "no_results", files=[])
    assert headgate(*options, command=FAILS) == 3
    said = capsys.readouterr().err
    assert said.count("headgate: No test report matched: exit code") == 3
    assert api.paths() == ["/tokens/self", UPLOAD]


def test_a_command_that_was_killed_before_its_report_is_not_called_a_missing_report_alone(
    api, capsys
):
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert headgate(command=[sys.executable, "-c", program]) == 137
    said = capsys.readouterr().err
    assert "No test report matched; the command was ended by signal 9: exit code 137." in said


def test_a_report_of_an_earlier_run_is_ignored(api, capsys):
    Path("b.xml").write_bytes(REPORT)
    os.utime("b.xml", (1e9, 1e9))
    api.says(UPLOAD, an_upload(0, 0, 3))
    assert headgate(command=FAILS) == 3
    assert list(api.asked[1][1]["files"]) == ["a.xml"]
    assert "headgate: b.xml is older than this run and was ignored\n" in capsys.readouterr().err
    api.says(UPLOAD, an_upload())
    headgate()
    assert list(api.asked[-1][1]["files"]) == ["a.xml", "b.xml"]


def test_more_than_a_hundred_files_go_in_several_uploads(api, capsys):
    """One without failures has no say against one that excuses."""
    for number in range(101):
        Path(f"{number:03}.xml").write_bytes(REPORT)
        os.utime(f"{number:03}.xml", (4e9, 4e9))
    api.says(UPLOAD, an_upload(1, 1, 3, not_excused_because=["1 of 2 uploads has not arrived"]))
    api.says(UPLOAD, an_upload(0, 0, 0))
    assert headgate(command=SILENT) == 0
    first, second = (each[1] for each in api.asked[1:])
    assert [len(each["files"]) for each in (first, second)] == [100, 1]
    assert first["session"] == second["session"]
    assert [each["session_uploads"] for each in (first, second)] == [2, 2]
    assert "headgate: 1 failure, all quarantined: exit code 0." in capsys.readouterr().err


def test_what_keeps_quarantined_failures_from_being_excused_is_said(api, capsys):
    reasons = ["the command ended with 7, but failed tests alone end with 1"]
    api.says(UPLOAD, an_upload(1, 1, 7, not_excused_because=reasons))
    assert headgate(command=FAILS) == 7
    assert (
        "1 failure, all quarantined, but not excused: the command ended with 7, but failed tests"
        " alone end with 1: exit code 7." in capsys.readouterr().err
    )


def test_what_the_command_prints_is_no_part_of_the_json(api, capfd):
    api.says(UPLOAD, an_upload())
    prints = f"open('a.xml', 'wb').write({REPORT!r}); print('hello')"
    assert headgate("--json", command=[sys.executable, "-c", prints]) == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["exit_code"] == 0
    assert "hello" in printed.err


def test_a_killed_command_prints_the_code_that_it_ends_with(api, capfd):
    """Also where the service excuses."""
    api.says(UPLOAD, an_upload(1, 1, 0))
    dies = f"open('a.xml', 'wb').write({REPORT!r}); import os; os.kill(os.getpid(), 11)"
    assert headgate("--json", command=[sys.executable, "-c", dies]) == 139
    printed = capfd.readouterr()
    assert json.loads(printed.out)["exit_code"] == 139
    assert "exit code 139." in printed.err


def test_json_is_one_value(api, capfd):
    api.says(UPLOAD, an_upload(1, 0, 1))
    Path("a.xml").write_bytes(REPORT)
    assert headgate("--json") == 1
    said = json.loads(capfd.readouterr().out)
    assert (said["exit_code"], said["uploads"]) == (1, [an_upload(1, 0, 1)])
    assert said["message"].startswith("1 failure, 0 quarantined, 1 not")
    (file,) = said["files"]
    counted = ("tests", "passed", "failed", "errors", "skipped", "retried")
    assert (file["name"], [file[name] for name in counted]) == ("a.xml", [1, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    "arguments",
    [
        ["test", "--junit", "*.xml"],
        ["upload"],
        ["upload", "--junit", "*.xml", "--sha", SHA, "b.xml"],
        ["upload", "--junit", "*.xml", "--sha", SHA, "--codeowners", "nowhere"],
        ["upload", "--junit", "*.xml", "--sha", SHA, "--format", "tap"],
        ["upload", "--junit", "*.xml"],
        ["upload", "--junit", "*.xml", "--sha", SHA, "--", "no-such-command"],
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(api, arguments):
    Path("b.xml").write_bytes(REPORT)
    assert app.run(arguments) == exits.Exit.USAGE
    assert api.asked == []


@pytest.mark.parametrize("code", [0, 3])
def test_a_report_that_cannot_be_read_here_excuses_nothing(api, capsys, monkeypatch, code):
    api.says(UPLOAD, an_upload(1, 1, 0))
    Path("b.xml").write_bytes(REPORT)
    real = Path.read_bytes

    def read(path):
        if path.name == "b.xml":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    command = [*FAILS[:2], FAILS[2].replace("SystemExit(3)", f"SystemExit({code})")]
    assert headgate(command=command) == code
    said = capsys.readouterr().err
    assert "headgate: b.xml cannot be read (Permission denied)\n" in said
    assert f"1 failure, all quarantined, but not every report was read: exit code {code}." in said


def a_hundred_and_one_reports():
    for number in range(101):
        Path(f"{number:03}.xml").write_bytes(REPORT)
        os.utime(f"{number:03}.xml", (4e9, 4e9))


@pytest.mark.parametrize(
    ("first", "command", "code"),
    [
        (an_upload(1, 0, 1), (), 1),
        (an_upload(1, 1, 0), (), 0),
        (an_upload(1, 1, 0), SILENT, 3),
        (an_upload(1, 0, 3), SILENT, 3),
    ],
)
@pytest.mark.parametrize("refused", ["no_results", "internal_error"])
def test_an_upload_without_answer_undoes_no_failure_of_another(api, refused, first, command, code):
    a_hundred_and_one_reports()
    api.says(UPLOAD, first)
    api.refuses(UPLOAD, 422 if refused == "no_results" else 500, refused, files=[])
    assert headgate(command=command) == code


def test_an_upload_without_results_does_not_stop_the_next(api):
    a_hundred_and_one_reports()
    api.refuses(UPLOAD, 422, "no_results", files=[])
    api.says(UPLOAD, an_upload(1, 0, 1))
    assert headgate() == 1


@pytest.mark.parametrize("url", ["http://a..b", f"http://{'a' * 70}.example"])
def test_an_address_that_no_host_can_have_excuses_nothing(monkeypatch, capsys, url):
    monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
    monkeypatch.setenv("HEADGATE_URL", url)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    assert headgate(command=FAILS) == 3
    assert "the address cannot be used" in capsys.readouterr().err


def test_the_token_follows_nobody_elsewhere(api, capsys):
    with service.served() as elsewhere:
        elsewhere.says(UPLOAD, an_upload(1, 1, 0))
        api.says(UPLOAD, {}, 302, Location=f"{elsewhere.url}/v1{UPLOAD}")
        assert headgate("--org", "octo", command=FAILS) == 3
    assert elsewhere.asked == []
    assert "use that address). No failure is excused" in capsys.readouterr().err


def over(body, *lines):
    head = "".join(f"{each}\r\n" for each in ("HTTP/1.1 503 Away", *lines))
    return f"{head}\r\n".encode("latin-1") + body


DEEP = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + b"[" * 50_000


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (over(b"ZZ\r\n", "Transfer-Encoding: chunked"), "incompleteread(0 bytes read)"),
        (over(b"", "Content-Length: 9"), "no answer within 0.2 s"),
        (over(b"{}", "Content-Length: 2", "Retry-After: \xb2"), "answered 503"),
        (b"SSH-2.0-" + b"x\0" * 400 + b"\n", "ssh-2.0-" + "x " * 96),
        (DEEP, "the answer cannot be read: is it Headgate"),
    ],
    ids=["cut", "hangs", "odd pause", "other protocol", "deep"],
)
def test_an_answer_that_breaks_off_excuses_nothing(monkeypatch, capsys, answer, why):
    monkeypatch.setattr(transport, "UPLOAD_PAUSES_S", ())
    monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    with service.answering(answer) as url:
        monkeypatch.setenv("HEADGATE_URL", url)
        assert headgate("--org", "octo", "--timeout", "0.2s", command=FAILS) == 3
    assert capsys.readouterr().err.endswith(UNREAD.format(why=why))


@pytest.mark.parametrize(
    ("answer", "drop"),
    [(b"HTTP/1.1 200 OK\r\nX-Odd: ", b"x"), (over(b"", "Content-Length: 99999"), b" ")],
    ids=["head", "body"],
)
def test_a_server_that_drips_holds_nobody_longer(monkeypatch, capsys, answer, drop):
    monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    with service.answering(answer, drop) as url:
        monkeypatch.setenv("HEADGATE_URL", url)
        assert headgate("--org", "octo", "--timeout", "0.2s", command=FAILS) == 3
    assert capsys.readouterr().err.endswith(UNREAD.format(why="no answer within 0.2 s"))


def test_an_answer_that_is_cut_short_is_asked_for_again(api, capsys):
    api.cuts(UPLOAD)
    api.says(UPLOAD, an_upload(1, 1, 0))
    assert headgate("--org", "octo", command=FAILS) == 0
    assert api.asked[0][1] == api.asked[1][1]
    assert "the answer breaks off; trying again" in capsys.readouterr().err


def test_an_answer_that_is_always_cut_short_excuses_nothing(api, capsys):
    api.cuts(UPLOAD)
    assert headgate("--org", "octo", command=FAILS) == 3
    assert len(api.asked) == 3
    assert capsys.readouterr().err.endswith(UNREAD.format(why="the answer breaks off"))


def test_a_token_that_no_header_can_hold_is_not_shown():
    client = transport.Service("http://127.0.0.1:1", "hgt_secret\nhgt_other", str)
    with pytest.raises(transport.RequestFailed) as unsent:
        client.send(transport.Request("/x"))
    assert "hgt_" not in unsent.value.reason


@pytest.mark.parametrize("url", ["http://[", "http://bob:secret@127.0.0.1:1"])
def test_what_is_no_address_is_said_before_anything_runs(api, capsys, url):
    assert headgate("--url", url, command=FAILS) == exits.Exit.USAGE
    assert not Path("a.xml").exists()
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize("exit_code", [256, -1, 2**40])
def test_no_code_that_a_process_cannot_end_with_is_believed(api, exit_code):
    api.says(UPLOAD, an_upload(1, 1, exit_code))
    assert headgate(command=FAILS) == 3


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("ALWAYS_QUARANTINE until 2026-12-12: until 2027-01-01", "test_0 (until 12 Dec)"),
        ("AUTO_QUARANTINE: off until 2026-02-30", "test_0"),
        ("AUTO_QUARANTINE: off until 2026-12-12", "test_0"),
        ("ALWAYS_QUARANTINE until 2026-13-12: #1", "test_0"),
    ],
)
def test_the_end_of_a_quarantine_is_not_what_somebody_wrote_of_it(api, capsys, reason, named):
    answer = an_upload(1, 1, 0)
    answer["failures"][0]["quarantine_reason"] = reason
    api.says(UPLOAD, answer)
    assert headgate(command=FAILS) == 0
    assert capsys.readouterr().err.endswith(f"exit code 0. {named}\n")


def test_a_report_that_is_too_large_does_not_keep_the_next_away(api, capsys):
    a_hundred_and_one_reports()
    api.refuses(UPLOAD, 413, "body_too_large", "too much")
    api.says(UPLOAD, an_upload(1, 1, 0))
    assert headgate("--strict") == 70
    assert [len(each[1]["files"]) for each in api.asked[1:]] == [100, 1]
    assert capsys.readouterr().err.endswith(UNREAD.format(why="too much"))


def test_what_only_reads_runs_no_command():
    assert headgate("--dry-run", command=FAILS) == exits.Exit.USAGE
    assert not Path("a.xml").exists()
