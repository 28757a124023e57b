"""`headgate demo --once --json`: the whole story, proved by git, within a minute."""

import json
import re
import subprocess

import pytest

from tests.cli import processes

# Number to (state, reason); what the story promises.
EXPECTED = {
    1: ("MERGED", "landed"),
    2: ("MERGED", "landed"),
    3: ("FAILED", "required_status_failed"),
    4: ("MERGED", "landed"),
    5: ("FAILED", "conflict_target"),
    6: ("MERGED", "landed"),
    7: ("MERGED", "landed"),
}


# 35 s on two idle cores; under -n auto it shares them with everything else.
@pytest.mark.first
@pytest.mark.timeout(150)
def test_the_demo_tells_the_story_and_proves_it(tmp_path, needs):
    needs("git")
    done = subprocess.run(
        [*processes.COMMAND, "demo", "--once", "--json", "--keep", "state"],
        cwd=tmp_path,
        env=processes.environment(HEADGATE_GITHUB_APP_ID="not read by the demo"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["faults"]) == (0, True, []), done.stderr
    found = {each["number"]: each for each in told["pull_requests"]}
    assert {number: (each["state"], each["reason"]) for number, each in found.items()} == EXPECTED
    assert (found[3]["failed_check"], found[1]["failed_check"]) == ("test", None)
    assert told["counts"] == {"merged": 5, "failed": 2, "conflicts": 1, "urgent_interrupts": 1}
    assert [proof["name"] for proof in told["proofs"] if not proof["ok"]] == []
    assert len(told["proofs"]) == 6
    assert landed_in(tmp_path / "state") == [1, 2, 4, 7, 6]
    log = [json.loads(line) for line in (tmp_path / "state/headgate.log").read_text().splitlines()]
    assert [line for line in log if line["level"] == "error"] == []
    assert "hgt_" not in json.dumps(log)


def landed_in(state):
    """Numbers of the pull requests in main's history, first parents, oldest first."""
    bare = next((state / "sandbox").glob("*.git"))
    shown = ["git", "--git-dir", str(bare), "log", "--first-parent", "--reverse", "--format=%s"]
    titles = subprocess.run([*shown, "main"], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in re.findall(r"#(\d+)", titles)]
