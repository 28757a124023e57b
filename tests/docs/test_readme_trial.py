"""The trial of the README, pasted into two terminals, lands a pull request."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import processes
from tests.harness.machine import free_port

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```sh\n([^`]*)```", README.partition("To try Headgate without GitHub")[2])


@pytest.mark.timeout(150)
def test_the_pasted_trial_lands_a_pull_request(tmp_path: Path) -> None:
    serves, commands = BLOCKS[:2]
    # Without #3, which fails twice before it is blamed: tests/sandbox/test_example.py.
    commands = "\n".join(line for line in commands.splitlines() if " 3 " not in line)
    port, sandbox_port = str(free_port()), free_port()
    # Only the ports differ, which other tests may have taken.
    serves = serves.replace("8642", port).replace("sandbox ", f"sandbox --port {sandbox_port} ")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    settings = {
        "HEADGATE_PORT": port,
        "HEADGATE_LOG_FORMAT": "json",
        "HEADGATE_URL": f"http://127.0.0.1:{port}",
    }
    with subprocess.Popen(
        ["bash", "-c", serves],
        cwd=tmp_path,
        env=processes.environment(**settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as serving:
        try:
            assert serving.stderr is not None
            assert any('"event":"ready"' in line for line in serving.stderr)
            done = subprocess.run(
                ["bash", "-c", commands],
                cwd=tmp_path,
                env=processes.environment(**settings),
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            os.killpg(serving.pid, signal.SIGTERM)
    assert done.returncode == 0, done.stderr
    assert "Merged into main" in done.stdout
    assert "RUNNING" in done.stdout
