"""The commands that try Headgate without GitHub work when they are pasted as one."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli import processes
from tests.harness.machine import free_port

ROOT = Path(__file__).parents[2]


def block_of(page: str) -> str:
    """The commands of a page that run the stand-in and the service."""
    (block,) = re.findall(r"```sh\n(\S+ sandbox [^`]*)```", (ROOT / page).read_text("utf-8"))
    return str(block)


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md"])
def test_serve_starts_when_the_stand_in_has_written_its_settings(page: str) -> None:
    block = block_of(page)
    starts, waits, serves = block.splitlines()
    assert starts.endswith(" > .env &")
    assert waits.startswith("until [ -s .env ]; do sleep 1; done")
    assert serves.startswith(".venv/bin/headgate serve")


def test_the_pasted_commands_run_the_stand_in_and_the_service(tmp_path: Path) -> None:
    port, sandbox_port = free_port(), free_port()
    # Only the ports differ, which other tests may have taken.
    pasted = block_of("README.md").replace("8642", str(port))
    pasted = pasted.replace("headgate sandbox ", f"headgate sandbox --port {sandbox_port} ")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    settings = {"HEADGATE_PORT": str(port), "HEADGATE_LOG_FORMAT": "json"}
    shell = subprocess.Popen(
        ["bash", "-c", pasted],
        cwd=tmp_path,
        env=processes.environment(**settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with shell:
        try:
            assert shell.stderr is not None
            assert any('"event":"ready"' in line for line in shell.stderr)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/llms.txt") as answer:
                assert answer.status == 200
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
