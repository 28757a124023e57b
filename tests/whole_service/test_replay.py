"""One line replays a history: a seed is the same history in every process."""

import os
import subprocess
import sys

import pytest

from tests.whole_service import properties
from tests.whole_service.play import Broken, play

SEED = 17
"""A short history with faults."""


@pytest.mark.timeout(180)
def test_a_seed_is_one_history_in_every_process() -> None:
    told: list[str] = []
    played = play(SEED, told.append)
    again = subprocess.run(
        [sys.executable, "-m", "tests.whole_service", str(SEED)],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert played.digest in again
    assert "\n".join(told) in again


def test_a_history_that_breaks_names_the_line_that_replays_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(properties, "_words", lambda *_: ["something is wrong"])
    with pytest.raises(Broken, match=rf"python -m tests.whole_service {SEED}\nsomething is wrong"):
        play(SEED)
