"""Colors and progress: on a terminal, and nowhere else."""

import os
import pty
import subprocess

import pytest

from tests.cli import processes, service
from tests.cli.service import a_record
from tests.cli.test_doctor import FINE, examined
from tests.cli.test_tests import PAGE, TEST

COLOR = "\x1b[36m"
BYTES_PER_READ = 65_536


@pytest.fixture(name="headgate")
def _headgate(tmp_path, api):
    """A command in a process; what its stdout and stderr received, each a terminal or a pipe."""

    def run(*arguments, **terminals):
        named = {"HEADGATE_URL": api.url, "HEADGATE_TOKEN": service.TOKEN, "TERM": "xterm"}
        named["GITHUB_REPOSITORY"] = "github.com/octo/widgets"
        named |= terminals.pop("settings", {})
        ends = {name: pty.openpty() for name in terminals}
        streams = {name: end[1] for name, end in ends.items()}
        done = subprocess.run(
            [*processes.COMMAND, *arguments],
            cwd=tmp_path,
            env=processes.environment(**named),
            stdin=subprocess.DEVNULL,
            stdout=streams.get("stdout", subprocess.PIPE),
            stderr=streams.get("stderr", subprocess.PIPE),
            check=True,
        )
        said = {"stdout": done.stdout, "stderr": done.stderr}
        for name, (ours, theirs) in ends.items():
            said[name] = os.read(ours, BYTES_PER_READ)
            os.close(ours)
            os.close(theirs)
        return {name: text.decode() for name, text in said.items()}

    return run


def test_a_state_has_a_color_on_a_terminal_alone(api, headgate):
    api.says("/getSubmittedPullRequest", a_record("TESTING"))
    status = ("status", "3", "--branch", "main")
    assert COLOR in headgate(*status, stdout=True)["stdout"]
    assert "\x1b" not in headgate(*status)["stdout"]
    plain = headgate(*status, stdout=True, settings={"NO_COLOR": "1"})["stdout"]
    assert "TESTING" in plain
    assert "\x1b" not in plain
    api.says("/getQueue", service.a_queue())
    show = ("queue", "show", "--branch", "main")
    assert "\x1b[1m" in headgate(*show, stdout=True)["stdout"]
    assert "\x1b" not in headgate(*show, stdout=True, settings={"NO_COLOR": "1"})["stdout"]


@pytest.mark.parametrize("lines_read", [0, 1])
def test_a_reader_that_closes_the_pipe_ends_the_command_as_sigpipe_does(api, tmp_path, lines_read):
    api.says("/getSubmittedPullRequest", a_record("TESTING"))
    reading, writing = os.pipe()
    os.close(reading)
    named = {"HEADGATE_URL": api.url, "HEADGATE_TOKEN": service.TOKEN}
    done = subprocess.run(
        [*processes.COMMAND, "status", "3", "--branch", "main", "--repo", "github.com/octo/widgets"]
        + ["--json"] * lines_read,
        env=processes.environment(**named),
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_work_shows_its_progress_on_stderr_of_a_terminal_alone(api, headgate):
    api.says("/runDoctor", examined(FINE))
    shown = headgate("doctor", "--json", stderr=True)
    assert "examining octo/widgets" in shown["stderr"]
    assert "\x1b" not in shown["stdout"]
    assert headgate("doctor", "--json")["stderr"] == ""


def test_a_link_is_whole_however_narrow_the_terminal_is(api, headgate):
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})
    page = {"next_page_token": ""}
    api.says("/flaky-tests/list-tests", {"tests": [TEST], "page": page})
    shown = headgate("tests", "list", stdout=True, settings={"COLUMNS": "80"})["stdout"]
    assert f"  {PAGE}\r\n" in shown
    assert "Owner: @octo/web, @bob" in shown
    wide = headgate("tests", "list", stdout=True, settings={"COLUMNS": "300"})["stdout"]
    assert wide.count("\n") == 2
    assert PAGE in wide
