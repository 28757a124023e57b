"""`headgate test` follows its command: what is sent before the end, and what never changes."""

import json
import os
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bot.cli import app, live
from bot.cli.job_service import JobService
from bot.cli.live_lines import LINE_BYTES_MAX, LiveFile, parse
from service.testhealth.early_failures import FAILURES_MAX
from service.vocabulary import RepoRef
from tests.cli.processes import END_TIMEOUT_S, started
from tests.cli.service import an_upload

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
REPORT = "/flaky-tests/report-early-failure"
UPLOAD = "/flaky-tests/upload-test-results"
GO_ON = "go-on"
COUNTS = {"counts": True, "standing": "counts", "message": "It counts."}
CASES = '<testsuite><testcase name="a" classname="A"><failure/></testcase></testsuite>'


@pytest.fixture(name="api")
def _api(api):
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})
    api.says(UPLOAD, an_upload(1, 0, 3))
    os.mkfifo(GO_ON)
    return api


def answers(api, *standings):
    for each in standings:
        api.says(REPORT, {"counts": each == "counts", "standing": each, "message": "."})


def line(name="a", outcome="failed", **more):
    told = {"v": 1, "event": "test", "name": name, "classname": "A", "outcome": outcome}
    return json.dumps({**told, "final": True, **more})


@contextmanager
def following(program, *options):
    """`headgate test` around a program of Python, which goes on when the story lets it."""
    prelude = (
        "import os, pathlib, sys; live = open(os.environ['HEADGATE_LIVE'], 'a', buffering=1)\n"
    )
    wait = f"\nopen({GO_ON!r}).close(); sys.exit(3)"
    arguments = ("test", "--junit", "*.xml", "--sha", SHA, "--no-progress", *options, "--")
    names = ("HEADGATE_URL", "HEADGATE_TOKEN", "GITHUB_REPOSITORY", "GITHUB_SERVER_URL")
    own = {name: os.environ[name] for name in names}
    code = (sys.executable, "-c", prelude + program + wait)
    with started(*arguments, *code, cwd=Path.cwd(), **own) as child:
        try:
            yield child
        finally:
            # A command that still waits would keep our pipes open. Nobody waits: ENXIO.
            with suppress(OSError):
                os.close(os.open(GO_ON, os.O_WRONLY | os.O_NONBLOCK))


def ends(child):
    """Let the command end; its exit code."""
    Path(GO_ON).open("w").close()
    return child.wait(END_TIMEOUT_S)


def sent(api):
    """Name, finality and success of each test that was reported early."""
    found = [body for path, body, _ in api.asked if path == REPORT]
    return [(body["name"], body["final"], body["passed"]) for body in found]


def test_failed_tests_are_sent_until_one_counts(api):
    answers(api, "quarantined", "counts")
    lines = [line("a"), line("a"), line("b"), line("c")]
    with following(f"print({chr(10).join(lines)!r}, file=live)") as child:
        assert child.stderr.readline() == "headgate: A::b failed; the test run is judged by it\n"
        assert child.poll() is None
        assert ends(child) == 3
    assert sent(api) == [("a", True, False), ("b", True, False)]


def test_a_test_that_passes_after_all_is_sent_and_then_the_next_failure(api):
    answers(api, "counts", "passed", "counts")
    first = "\n".join([line("a"), line("b", "passed"), line("a", "passed"), line("c")])
    with following(f"print({first!r}, file=live)") as child:
        said = [child.stderr.readline() for _ in range(3)]
        assert ends(child) == 3
    assert [each.split(":: ")[-1].split("A::")[1].split()[0] for each in said] == ["a", "a", "c"]
    assert sent(api) == [("a", True, False), ("a", True, True), ("c", True, False)]


@pytest.mark.parametrize("standing", sorted(live.NEVER_COUNTS))
def test_a_job_whose_failures_cannot_count_sends_one(api, standing):
    answers(api, standing)
    lines = "\n".join(line(each) for each in "abcd")
    program = f"print({lines!r}, file=live); pathlib.Path('a.xml').write_text({CASES!r})"
    with following(program, "--reports-are-final") as child:
        assert ends(child) == 3
    assert len(sent(api)) <= 1


WHY = "Give the job `permissions: id-token: write`."


def test_a_job_that_cannot_prove_itself_is_told_how_once(api):
    api.says(REPORT, {"counts": False, "standing": "unproved", "message": WHY})
    lines = "\n".join(line(each) for each in "abcd")
    with following(f"print({lines!r}, file=live)") as child:
        assert child.stderr.readline() == f"headgate: A::a failed; not judged early: {WHY}\n"
        assert ends(child) == 3
        assert WHY not in child.stderr.read()
    assert sent(api) == [("a", True, False)]


def test_what_the_service_refuses_is_tried_once(api):
    api.refuses(REPORT, 404, "not_found")
    answers(api, "counts")
    lines = "\n".join(line(each) for each in "abcd")
    with following(f"print({lines!r}, file=live)") as child:
        assert ends(child) == 3
        assert "judged" not in child.stderr.read()
    assert len(sent(api)) <= 1


def test_a_report_file_is_read_as_soon_as_it_is_whole(api):
    answers(api, "counts")
    half = f"pathlib.Path('a.xml').write_text({CASES[:30]!r}); "
    program = half + f"os.mkdir('b'); pathlib.Path('b/TEST-a.xml').write_text({CASES!r})"
    with following(program, "--junit", "**/TEST-*.xml", "--reports-are-final") as child:
        assert "A::a failed" in child.stderr.readline()
        assert ends(child) == 3
    assert sent(api) == [("a", True, False)]


def test_report_files_of_a_runner_that_may_try_again_wait_for_the_end_of_the_command(tmp_path):
    service = JobService("http://127.0.0.1:1", None, RepoRef("github.com", "octo", "widgets"))
    job = live.Job(service, {}, ("*.xml",), reports_are_final=False)
    (only,) = live.sources_of(job, tmp_path, 0.0)
    assert isinstance(only, LiveFile)
    assert len(live.sources_of(job._replace(reports_are_final=True), tmp_path, 0.0)) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"no json",
        b"[]",
        line(v=2).encode(),
        line(event="suite").encode(),
        line("").encode(),
        line(outcome="skipped").encode(),
        line("a\0").encode(),
        line("\ud83d").encode(),
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_not_the_protocol_is_passed_over(content):
    assert parse(content) is None


def test_lines_are_read_once_whole_and_only_up_to_their_limit(tmp_path):
    path = tmp_path / "live"
    reader = LiveFile(path)
    assert reader.read() == []
    long = line("x" * LINE_BYTES_MAX)
    path.write_text(f"{line('a')}\n{long}\n{line('b')}\n{line('c')[:20]}")
    assert [each.name for each in reader.read()] == ["a", "b"]
    with path.open("a") as file:
        file.write(f"{line('c')[20:]}\n")
    assert [each.name for each in reader.read()] == ["c"]
    assert reader.read() == []


def test_a_line_may_have_16_kib(tmp_path):
    path = tmp_path / "live"
    most = [line(name).ljust(LINE_BYTES_MAX) for name in ("a", "b")]
    path.write_text(f"{most[0]}\n{most[1]} \n{line('c')}\n")
    assert [each.name for each in LiveFile(path).read()] == ["a", "c"]


def test_half_a_line_spoils_only_the_one_that_another_process_wrote_into_it(tmp_path):
    path = tmp_path / "live"
    reader = LiveFile(path)
    path.write_text(line("a")[:40])
    assert reader.read() == []
    with path.open("a") as file:
        file.write(f"{line('b')}\n{line('a')[40:]}\n{line('c')}\n")
    assert [each.name for each in reader.read()] == ["c"]


def test_a_line_without_an_end_is_never_kept_whole(tmp_path):
    path = tmp_path / "live"
    reader = LiveFile(path)
    for _ in range(64):
        with path.open("a") as file:
            file.write("x" * LINE_BYTES_MAX)
        assert reader.read() == []
    with path.open("a") as file:
        file.write(f"\n{line('a')}\n")
    assert [each.name for each in reader.read()] == ["a"]


def test_the_first_failure_behind_many_lines_is_sent(api):
    answers(api, "counts")
    program = (
        f"[print({line('ok', 'passed')!r}, file=live) for _ in range(20_000)]; "
        f"print({line('a')!r}, file=live)"
    )
    with following(program) as child:
        assert "A::a failed" in child.stderr.readline()
        assert ends(child) == 3
    assert sent(api) == [("a", True, False)]


WRITER = f"""
import json, os, sys
live = os.open(os.environ['HEADGATE_LIVE'], os.O_WRONLY | os.O_APPEND)
for number in range(200):
    told = json.loads({line()!r}) | dict(name=sys.argv[1] + str(number % 10), pad='x' * 16_000)
    os.write(live, (json.dumps(told) + chr(10)).encode())
"""


def test_two_processes_at_once_report_whole_lines(api):
    answers(api, *["quarantined"] * (FAILURES_MAX - 1), "counts")
    program = f"""
import subprocess
both = [subprocess.Popen([sys.executable, '-c', {WRITER!r}, name]) for name in 'pq']
[each.wait() for each in both]"""
    with following(program) as child:
        assert "the test run is judged by it" in child.stderr.readline()
        assert ends(child) == 3
    names = sorted(name for name, _, _ in sent(api))
    assert names == sorted(f"{process}{number}" for process in "pq" for number in range(10))


def test_a_failure_is_sent_only_if_the_runner_says_that_it_is_final(api):
    answers(api, "quarantined", "counts")
    others = [line(f"t{at}", final=final) for at in range(30) for final in (False, "yes", None)]
    lines = "\n".join([*others, line("t24"), line("t3")])
    with following(f"print({lines!r}, file=live)") as child:
        assert "A::t3 failed" in child.stderr.readline()
        assert ends(child) == 3
    assert sent(api) == [("t24", True, False), ("t3", True, False)]


FAILS = [
    sys.executable,
    "-c",
    "import pathlib, sys; pathlib.Path('a.xml').write_text('x'); sys.exit(9)",
]
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def _no_proxy(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.usefixtures("_no_proxy")
def test_a_proxy_that_is_down_changes_no_exit_code(api, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    options = ["test", "--junit", "no.xml", "--sha", SHA, "--url", "http://queue.example"]
    assert app.run([*options, "--", *FAILS]) == 9


@pytest.mark.usefixtures("_no_proxy")
def test_a_proxy_that_hangs_is_awaited_for_the_stated_time_alone(api, monkeypatch):
    monkeypatch.setattr(live, "START_MAX_S", 0.05)
    monkeypatch.setattr(live, "END_MAX_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{hangs.getsockname()[1]}")
        options = ["test", "--junit", "no.xml", "--sha", SHA, "--url", "http://queue.example"]
        program = (
            "import os, pathlib, sys; live = open(os.environ['HEADGATE_LIVE'], 'a');"
            f" live.write({line()!r} + chr(10)); live.close(); sys.exit(9)"
        )
        assert app.run([*options, "--", sys.executable, "-c", program]) == 9


def test_the_places_that_a_command_gets_are_gone_after_it(api):
    program = "import os; open('seen', 'w').write(os.environ['HEADGATE_LIVE'])"
    options = ["test", "--junit", "no.xml", "--sha", SHA, "--", sys.executable, "-c", program]
    assert app.run(options) == 0
    assert not Path(Path("seen").read_text()).exists()
