"""The commands that try Headgate without GitHub work when they are pasted as one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md"])
def test_serve_starts_when_the_stand_in_has_written_its_settings(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    (block,) = re.findall(r"```sh\n(\S+ sandbox [^`]*)```", text)
    starts, waits, serves = block.splitlines()
    assert starts.endswith(" > .env &")
    assert waits.startswith("until [ -s .env ]; do sleep 1; done")
    assert serves.startswith(".venv/bin/headgate serve")
