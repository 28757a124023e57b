"""`headgate demo --once --json`: every story, proved by git, within GitHub's limits.

All traffic of the demo is held against GitHub's published descriptions.
"""

import contextlib
import json
import re
import sqlite3
import subprocess

import pytest

from bot.demo import run
from bot.demo.run import DemoOptions
from bot.demo.stage import Parts, Ports
from tests.cli import processes
from tests.harness.clock import FastClock
from tests.harness.machine import free_port
from tests.harness.published import Traffic
from tests.harness.signed_landings import Files, clone

LANDED = {
    "main": [1, 2, 4, 7, 6],
    "release": [8, 9, 10],
    "lanes": [13, 12],
    "optimistic": [14, 15],
    "weather": [16],
    "agents": [17],
}
FAILED = {
    "main": {3: "required_status_failed", 5: "conflict_target"},
    "release": {11: "required_status_failed"},
    "lanes": {},
    "optimistic": {},
    "weather": {},
    "agents": {},
}


# Calls are paced as for github.com, in time that jumps; the tests on the CI machine really run.
@pytest.mark.first
@pytest.mark.jumping
@pytest.mark.timeout(330)
async def test_the_demo_plays_its_stories_and_proves_them(tmp_path, needs, capsys, monkeypatch):
    needs("git")
    monkeypatch.setenv("HEADGATE_GITHUB_APP_ID", "not read by the demo")
    traffic = Traffic()
    clock = FastClock(1)
    parts = Parts(clock, clock.shared, traffic)
    ports = Ports(free_port(), free_port())
    options = DemoOptions(as_json=True, keep=tmp_path / "state", ports=ports, parts=parts)
    with processes.log_kept():
        is_proved = await run.demo(options)
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert (is_proved, report["ok"], report["faults"]) == (True, True, []), said.err
    traffic.check()
    assert [proof["name"] for proof in report["proofs"] if not proof["ok"]] == []
    assert len(report["proofs"]) == 6
    assert "same change of #12" in report["proofs"][2]["detail"]
    stories = {each["branch"]: each for each in report["stories"]}
    assert {branch: each["landed"] for branch, each in stories.items()} == LANDED
    assert {branch: failed_of(each) for branch, each in stories.items()} == FAILED
    assert {branch: landed_in(tmp_path / "state", branch) for branch in LANDED} == LANDED
    assert_its_landings_are_proved_on_a_fresh_clone(tmp_path / "state", tmp_path / "verified")
    assert_a_batch_is_bisected(stories["release"])
    assert [runs_of(stories["lanes"])[number]["dependentPrs"] for number in (12, 13)] == [[], []]
    assert_a_failure_is_cleared(stories["optimistic"])
    assert_a_known_flake_is_excused(stories["weather"])
    assert "headgate explain 11: test failed." in said.err
    assert "it would take back #17" in said.err
    log = [json.loads(line) for line in (tmp_path / "state/headgate.log").read_text().splitlines()]
    assert [line for line in log if line["level"] == "error"] == []
    assert "hgt_" not in json.dumps(log)


def failed_of(shown):
    """The reason of each failed pull request, by number."""
    failed = [each for each in shown["pullRequests"] if each["state"] == "FAILED"]
    return {each["prNumber"]: each["reason"] for each in failed}


def runs_of(shown):
    """The run by which each pull request landed, by number."""
    runs = {run["testRunId"]: run for run in shown["testRuns"]}
    pulls = [each for each in shown["pullRequests"] if each["state"] == "MERGED"]
    return {each["prNumber"]: runs[each["verifiedByTestRun"]] for each in pulls}


def numbers_in(run):
    return [each["prNumber"] for each in run["testedPullRequests"]]


def assert_a_batch_is_bisected(shown):
    """The four failed together, the search tested parts of them, and the last alone is blamed."""
    runs = [(run["kind"], numbers_in(run), run["failedStatuses"]) for run in shown["testRuns"]]
    everything = [8, 9, 10, 11]
    assert runs == [
        ("main", everything, ["test"]),
        ("probe", [8, 9], []),
        ("probe", [8, 9, 10], []),
        ("confirmation", everything, ["test"]),
    ]
    landed_by = {number: numbers_in(run) for number, run in runs_of(shown).items()}
    assert landed_by == {8: [8, 9], 9: [8, 9], 10: [8, 9, 10]}


def assert_a_failure_is_cleared(shown):
    """The run of the first failed; the run on top of it passed, and both landed by that one."""
    failed, passed = shown["testRuns"]
    assert (numbers_in(failed), failed["failedStatuses"]) == ([14], ["test"])
    assert (numbers_in(passed), passed["dependentPrs"]) == ([15], [14])
    assert runs_of(shown) == {14: passed, 15: passed}


def assert_a_known_flake_is_excused(shown):
    """The only run failed in one test, which is flaky by earlier reports, and it landed."""
    (run,) = shown["testRuns"]
    assert (run["status"], run["failedStatuses"]) == ("succeeded", ["test"])
    assert run["failedTests"] == [{"name": "test_picnic", "excused": True}]


def assert_its_landings_are_proved_on_a_fresh_clone(state, folder):
    """Each landed commit is proved by `headgate verify`; with one byte changed it is refused."""
    (database,) = (state / "headgate").glob("*.db")
    with contextlib.closing(sqlite3.connect(database)) as stored:
        rows = stored.execute(
            "SELECT sha, envelope, pr FROM landing_evidence ORDER BY no"
        ).fetchall()
        keys = stored.execute("SELECT id, public FROM signing_key").fetchall()
    assert len(rows) == sum(map(len, LANDED.values()))
    folder.mkdir()
    shown = [
        {"keyid": name, "keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": public}}
        for name, public in keys
    ]
    files = Files(folder / "clone", folder / "evidence.jsonl", folder / "keys.json")
    files.keys.write_text(json.dumps({"keys": shown}))
    files.evidence.write_text("\n".join(envelope for _, envelope, _ in rows))
    clone(next((state / "sandbox").glob("*.git")), files.clone)
    # The tree on which a lane tested #12 is gone: git makes it again.
    found = {number: files.verify(sha) for sha, _, number in rows}
    assert found == dict.fromkeys(found, 0)
    sha, envelope, _ = rows[0]
    files.evidence.write_text(envelope.replace("i", "j", 1))
    assert files.verify(sha) == 1


def landed_in(state, branch):
    """Numbers of the pull requests in a branch's history, first parents, oldest first."""
    bare = next((state / "sandbox").glob("*.git"))
    shown = ["git", "--git-dir", str(bare), "log", "--first-parent", "--reverse", "--format=%s"]
    titles = subprocess.run([*shown, branch], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in re.findall(r"#(\d+)", titles)]
