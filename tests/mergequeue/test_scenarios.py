"""Each file of `scenarios/` leads to exactly the timeline written below its inputs."""

import difflib
from pathlib import Path

import pytest

from tests.mergequeue.script import Script

SCENARIOS = Path(__file__).parent / "scenarios"
RULE = "---"


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.txt")))
def test_scenario(name: str, pytestconfig: pytest.Config) -> None:
    file = SCENARIOS / f"{name}.txt"
    inputs, _, golden = file.read_text("utf-8").partition(f"{RULE}\n")
    found = "".join(f"{line}\n" for line in _played(inputs))
    if pytestconfig.getoption("--update-golden"):
        file.write_text(f"{inputs.rstrip()}\n{RULE}\n{found}", "utf-8")
    elif found != golden:
        wanted = golden.splitlines()
        diff = difflib.unified_diff(
            wanted, found.splitlines(), str(file), "found", lineterm="", n=5
        )
        pytest.fail("\n".join(diff), pytrace=False)


def _played(inputs: str) -> list[str]:
    lines = [line for line in inputs.splitlines() if line and not line.startswith("#")]
    script = Script(lines[0])
    timeline = []
    for line in lines[1:]:
        assert line.startswith("> "), line
        for part in line[2:].split(" ; "):
            timeline.append(f"> {part}")
            timeline += [f"  {said}" for said in script.play(part)]
    return timeline
