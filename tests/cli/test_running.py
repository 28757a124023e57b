"""`test -- COMMAND` as a real process: output, exit codes and signals are the command's own."""

import signal
import sys

import pytest

from tests.cli.processes import END_TIMEOUT_S, started

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
TEST = ("test", "--junit", "*.xml", "--sha", SHA, "--repo", "octo/widgets", "--")


def test_what_the_command_prints_and_reads_is_its_own(tmp_path):
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(9)"
    with started(*TEST, sys.executable, "-c", program, cwd=tmp_path) as child:
        out, err = child.communicate(timeout=END_TIMEOUT_S)
    assert (child.returncode, out) == (9, "out\n")
    assert err == "err\nheadgate: No test report matched: exit code 9.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_end_is_passed_on(tmp_path, number):
    program = (
        "import signal; signal.signal(2, signal.SIG_DFL); print('up', flush=True); signal.pause()"
    )
    command = [sys.executable, "-c", program]
    with started(*TEST, *command, cwd=tmp_path) as child:
        assert child.stdout.readline() == "up\n"
        child.send_signal(number)
        assert child.wait(END_TIMEOUT_S) == 128 + number
