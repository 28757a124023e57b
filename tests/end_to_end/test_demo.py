"""`headgate demo --once --json`: every story, proved by git, within a minute."""

import json
import re
import subprocess

import pytest

from tests.cli import processes

# Number to (branch, state, reason); what the stories promise.
EXPECTED = {
    1: ("main", "MERGED", "landed"),
    2: ("main", "MERGED", "landed"),
    3: ("main", "FAILED", "required_status_failed"),
    4: ("main", "MERGED", "landed"),
    5: ("main", "FAILED", "conflict_target"),
    6: ("main", "MERGED", "landed"),
    7: ("main", "MERGED", "landed"),
    12: ("release", "MERGED", "landed"),
    13: ("release", "MERGED", "landed"),
    14: ("release", "MERGED", "landed"),
    15: ("release", "FAILED", "required_status_failed"),
    16: ("lanes", "MERGED", "landed"),
    17: ("lanes", "MERGED", "landed"),
    18: ("optimistic", "MERGED", "landed"),
    19: ("optimistic", "MERGED", "landed"),
}
LANDED = {
    "main": [1, 2, 4, 7, 6],
    "release": [12, 13, 14],
    "lanes": [17, 16],
    "optimistic": [18, 19],
}
COUNTS = {
    "merged": 12,
    "failed": 3,
    "conflicts": 1,
    "urgent_interrupts": 1,
    "batches_failed": 1,
    "bisection_runs": 4,
    "landed_beside_others": 1,
    "units_of_several": 2,
}


# 33 s on two cores; under -n auto it shares them with everything else.
@pytest.mark.first
@pytest.mark.timeout(150)
def test_the_demo_tells_its_stories_and_proves_them(tmp_path, needs):
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
    ended = {n: (each["branch"], each["state"], each["reason"]) for n, each in found.items()}
    assert ended == EXPECTED
    assert (found[3]["failed_check"], found[1]["failed_check"]) == ("test", None)
    assert told["counts"] == COUNTS
    assert [proof["name"] for proof in told["proofs"] if not proof["ok"]] == []
    assert len(told["proofs"]) == 6
    stories = {story["branch"]: story for story in told["stories"]}
    assert_a_batch_is_bisected(stories["release"], found)
    assert_lanes_land_independently(stories["lanes"], found)
    assert_a_failure_is_cleared(stories["optimistic"])
    assert (stories["main"]["urgent"], stories["main"]["urgent_interrupts"]) == (7, 1)
    assert {branch: story["landed"] for branch, story in stories.items()} == LANDED
    assert {branch: landed_in(tmp_path / "state", branch) for branch in LANDED} == LANDED
    log = [json.loads(line) for line in (tmp_path / "state/headgate.log").read_text().splitlines()]
    assert [line for line in log if line["level"] == "error"] == []
    assert "hgt_" not in json.dumps(log)


def assert_a_batch_is_bisected(told, found):
    """The four failed together, the search tested parts of them, and the last alone is blamed."""
    runs = {run["id"]: run for run in told["runs"]}
    batch = runs[told["batch_run"]]
    assert (batch["pull_requests"], batch["status"]) == ([12, 13, 14, 15], "failed")
    assert [runs[run]["pull_requests"] for run in told["probes"]] == [[12, 13], [12, 13, 14]]
    assert [runs[run]["failed_checks"] for run in told["confirmations"]] == [["test"]]
    assert told["culprit"] == 15
    assert found[15]["failed_check"] == "test"
    assert [unit["pull_requests"] for unit in told["units"]] == [[12, 13], [14]]


def assert_lanes_land_independently(told, found):
    """Neither stood on the other, and the one that came later landed first."""
    assert told["targets"] == {"16": ["//api"], "17": ["//web"]}
    assert (told["submitted"], told["landed"]) == ([16, 17], [17, 16])
    assert told["tested_at_the_same_time"] is True
    assert [run["on_top_of"] for run in told["runs"]] == [[], []]
    assert (found[17]["proof"], found[16]["proof"]) == ("EXACT_TREE", "SAME_CHANGE")


def assert_a_failure_is_cleared(told):
    """The run of the first failed; the run on top of it passed, and both landed by that one."""
    runs = {run["id"]: run for run in told["runs"]}
    failed, passed = runs[told["failed_run"]], runs[told["cleared_by"]]
    assert (failed["pull_requests"], failed["failed_checks"]) == ([18], ["test"])
    assert (passed["pull_requests"], passed["on_top_of"]) == ([19], [18])
    assert told["units"] == [{"run": passed["id"], "pull_requests": [18, 19]}]


def landed_in(state, branch):
    """Numbers of the pull requests in a branch's history, first parents, oldest first."""
    bare = next((state / "sandbox").glob("*.git"))
    shown = ["git", "--git-dir", str(bare), "log", "--first-parent", "--reverse", "--format=%s"]
    titles = subprocess.run([*shown, branch], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in re.findall(r"#(\d+)", titles)]
