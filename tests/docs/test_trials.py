"""The commands that try Headgate without GitHub work when they are pasted, block by block."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.cli import processes
from tests.harness.machine import free_port

ROOT = Path(__file__).parents[2]


def blocks_of(page: str) -> list[str]:
    """The block that runs the stand-in and the service, and those after it."""
    every = re.findall(r"```sh\n([^`]*)```", (ROOT / page).read_text("utf-8"))
    (first,) = (number for number, block in enumerate(every) if " sandbox " in block)
    return every[first:]


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md"])
def test_serve_starts_when_the_stand_in_has_written_its_settings(page: str) -> None:
    starts, waits, serves = blocks_of(page)[0].splitlines()
    assert starts.endswith(" > .env &")
    assert waits.startswith("until [ -s .env ]; do sleep 1; done")
    assert serves.startswith(".venv/bin/headgate serve")


def test_the_pasted_blocks_land_a_pull_request(tmp_path: Path) -> None:
    port, sandbox_port = free_port(), free_port()
    serves, commands = blocks_of("README.md")[:2]
    # #3 fails twice before it is blamed, which takes half a minute: tests/sandbox/test_example.py.
    commands, left_out = re.subn(r".* land 3 .*\n", "", commands)
    assert left_out == 1
    # Only the ports differ, which other tests may have taken.
    serves = serves.replace("8642", str(port))
    serves = serves.replace("headgate sandbox ", f"headgate sandbox --port {sandbox_port} ")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    environment = processes.environment(
        HEADGATE_PORT=str(port),
        HEADGATE_LOG_FORMAT="json",
        HEADGATE_URL=f"http://127.0.0.1:{port}",
    )
    with subprocess.Popen(
        ["bash", "-c", serves],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as serving:
        try:
            assert serving.stderr is not None
            assert any('"event":"ready"' in line for line in serving.stderr)
            # A full pipe would stop the service.
            Thread(target=serving.stderr.read, daemon=True).start()
            done = subprocess.run(
                ["bash", "-c", commands],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            os.killpg(serving.pid, signal.SIGTERM)
    assert done.returncode == 0, done.stderr
    assert "Merged into main" in done.stdout
    assert "RUNNING" in done.stdout
