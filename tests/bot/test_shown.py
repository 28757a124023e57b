"""What the demo's stories must show: each as promised has no fault, and each sees what is missing.

Here the API's answers are written by hand; tests/end_to_end plays them.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bot.demo import shown, story
from bot.demo.proofs import EXACT_TREE, SAME_CHANGE
from bot.demo.shown import Played, Run
from bot.demo.stage import Json

FIRST, LATER, LAST = (f"2026-03-02T14:{minute}:00.000Z" for minute in (10, 20, 30))


def a_run(name, numbers, **differences):
    """A run that passed, on the tip."""
    made = Run(name, "main", tuple(numbers), (), "succeeded", (), f"c-{name}", FIRST, LATER)
    return replace(made, **differences)


def a_record(role, **differences):
    """The record of a pull request that ended as it was to."""
    reason = role.reason or "landed"
    return {
        "state": role.expected,
        "reason": reason,
        "restarts": {},
        "verifiedByTestRun": None,
        **differences,
    }


def records_of(played):
    return {role.number: a_record(role) for role in played.roles if role.expected}


def main():
    records = records_of(story.MAIN)
    records[story.SLOW.number]["restarts"] = {shown.INTERRUPTED: 1}
    return Played(story.MAIN, records, (), (1, 5, 2, 3, 4, 7, 6))


def release():
    records = records_of(story.RELEASE)
    for number, run in ((12, "half"), (13, "half"), (14, "more")):
        records[number]["verifiedByTestRun"] = run
    failed = {"status": "failed", "failed": ("test",)}
    runs = (
        a_run("batch", (12, 13, 14, 15), **failed),
        a_run("half", (12, 13), kind="probe"),
        a_run("more", (12, 13, 14), kind="probe"),
        a_run("again", (12, 13, 14, 15), kind="confirmation", **failed),
    )
    return Played(story.RELEASE, records, runs, (12, 13, 14, 15))


def lanes():
    records = records_of(story.LANES)
    records[16]["verifiedByTestRun"], records[17]["verifiedByTestRun"] = "slow", "quick"
    runs = (a_run("slow", (16,), ended=LAST), a_run("quick", (17,)))
    return Played(story.LANES, records, runs, (17, 16), {17: EXACT_TREE, 16: SAME_CHANGE})


def optimistic():
    records = records_of(story.OPTIMISTIC)
    records[18]["verifiedByTestRun"] = records[19]["verifiedByTestRun"] = "both"
    records[18]["timeline"] = [{"from": "PENDING_FAILURE", "reason": shown.CLEARED}]
    runs = (
        a_run("flake", (18,), status="failed", failed=("test",)),
        a_run("both", (19,), base=(18,)),
    )
    return Played(story.OPTIMISTIC, records, runs, (18, 19))


PLAYS = {"main": main, "release": release, "lanes": lanes, "optimistic": optimistic}


def changed(name, number=None, differences=(), **members):
    """A story as promised but for a pull request's record, or members of the story."""
    played = PLAYS[name]()
    if number is not None:
        played.records[number].update(differences)
    return replace(played, **members)


@pytest.mark.parametrize("name", PLAYS)
def test_a_story_as_promised_has_no_fault(name):
    assert shown.of(PLAYS[name]()).faults == ()
    assert shown.of(PLAYS[name]()).facts["ok"] is True


def test_the_facts_name_the_culprit_and_what_landed_together():
    facts = shown.of(release()).facts
    assert (facts["batch"], facts["culprit"]) == ([12, 13, 14, 15], 15)
    assert facts["units"] == [
        {"run": "half", "pull_requests": [12, 13]},
        {"run": "more", "pull_requests": [14]},
    ]
    assert (facts["probes"], facts["confirmations"]) == (["half", "more"], ["again"])


def test_the_documentation_names_every_fact():
    page = Path(__file__).parents[2] / "docs/explanation/demo.md"
    named = set(re.findall(r"`(\w+)`", page.read_text("utf-8"))) | {"branch"}
    facts = {name for told in PLAYS.values() for name in shown.of(told()).facts}
    runs = {name for name in a_run("r1", (1,)).as_json() if name != "id"}
    assert facts | runs <= named


BLAMED = {"state": "FAILED", "reason": "interaction"}
LANDED = {"state": "MERGED", "reason": "landed"}

CASES = [
    (changed("main", 1, BLAMED), "#1 is FAILED (interaction), expected MERGED"),
    (changed("main", 3, LANDED), "#3 is MERGED (landed), expected FAILED"),
    (changed("main", 3, {"reason": "run_timed_out"}), "#3 failed by run_timed_out, expected"),
    (changed("main", 6, {"restarts": {}}), "#7 interrupted nobody"),
    (changed("main", order=(1, 2, 3, 4, 5, 6, 7)), "#7 is urgent and left after #6"),
    (changed("release", runs=release().runs[1:]), "no batch of four failed"),
    (
        changed("release", runs=(release().runs[0], release().runs[3])),
        "nobody searched the failed batch",
    ),
    (changed("release", runs=release().runs[:3]), "the culprit was blamed without a second"),
    (changed("release", 14, BLAMED), "failed are [14, 15], expected only #15"),
    (changed("lanes", order=(16, 17)), "#17 did not land first"),
    (changed("lanes", proofs={16: EXACT_TREE}), "#16 did not land beside #17: EXACT_TREE"),
    (
        changed("lanes", runs=(a_run("slow", (16,)), a_run("quick", (17,), base=(16,)))),
        "#16 and #17 were not tested apart from each other",
    ),
    (
        changed(
            "lanes",
            runs=(a_run("slow", (16,)), a_run("quick", (17,), began=LATER, ended=LAST)),
        ),
        "#16 and #17 were not tested at the same time",
    ),
    (changed("optimistic", 18, {"timeline": []}), "#18 was not cleared of its failure"),
    (changed("optimistic", runs=optimistic().runs[1:]), "no run of #18 failed"),
    (
        changed("optimistic", 18, {"verifiedByTestRun": "flake"}),
        "#18 and #19 did not land as one unit",
    ),
    (
        changed("optimistic", runs=(optimistic().runs[0], a_run("both", (19,)))),
        "#19 was not tested on top of #18",
    ),
]


@pytest.mark.parametrize(("played", "fault"), CASES, ids=[fault for _, fault in CASES])
def test_what_is_missing_is_a_fault_of_its_story(played, fault):
    found = shown.of(played)
    assert [each for each in found.faults if each.startswith(fault)]
    assert found.facts["ok"] is False


@pytest.mark.parametrize("name", PLAYS)
def test_a_pull_request_that_never_came_is_a_fault(name):
    played = PLAYS[name]()
    number = played.story.roles[1].number
    del played.records[number]
    order = tuple(each for each in played.order if each != number)
    assert f"#{number} is never queued (None), expected MERGED" in (
        shown.of(replace(played, order=order)).faults
    )


@pytest.mark.parametrize("name", PLAYS)
def test_a_story_that_was_never_begun_has_only_faults(name):
    empty = Played(PLAYS[name]().story, {}, (), ())
    assert len(shown.of(empty).faults) >= len([each for each in empty.story.roles if each.expected])


def test_a_run_is_read_from_the_details_of_the_api():
    details: Json = {
        "testRunId": "r1",
        "kind": "probe",
        "testedPullRequests": [{"prNumber": 12}, {"prNumber": 13}],
        "dependentPrs": [11],
        "status": "failed",
        "failedStatuses": ["test"],
        "testBranchSha": "c1",
        "createdAt": FIRST,
        "finishedAt": None,
    }
    assert Run.of(details) == Run(
        "r1", "probe", (12, 13), (11,), "failed", ("test",), "c1", FIRST, None
    )
