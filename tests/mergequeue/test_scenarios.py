"""Each scenario leads to exactly the timeline below its inputs, with sound texts on the way.

A scenario is played once. After each input the estimates and all texts are checked, at its end
the messages of its events and the metrics that count it.
"""

import difflib

import pytest

from tests.mergequeue import sound_counts, sound_texts, sound_times
from tests.mergequeue.scenario import FILES, RULE, Play, Step


@pytest.mark.parametrize("name", sorted(FILES))
def test_scenario(name: str, pytestconfig: pytest.Config) -> None:
    file = FILES[name]
    inputs, _, golden = file.read_text("utf-8").partition(f"{RULE}\n")
    play = Play(file)
    timeline = []
    for step in play.steps():
        timeline += _written(step)
        sound_times.check(play.stage)
        sound_texts.check_step(step)
    sound_texts.check_history(play)
    sound_counts.check(play.stage)
    found = "".join(f"{line}\n" for line in timeline)
    if pytestconfig.getoption("--update-golden"):
        file.write_text(f"{inputs.rstrip()}\n{RULE}\n{found}", "utf-8")
    elif found != golden:
        wanted = golden.splitlines()
        diff = difflib.unified_diff(
            wanted, found.splitlines(), str(file), "found", lineterm="", n=5
        )
        pytest.fail("\n".join(diff), pytrace=False)


def _written(step: Step) -> list[str]:
    return [f"> {step.part}", *(f"  {line}" for line in step.lines)]
