"""The search for the landing that broke a check: what each set of results decides."""

from dataclasses import replace

import pytest

from service.mergequeue.breaks import search
from service.mergequeue.breaks.search import (
    Blame,
    Break,
    Decision,
    End,
    Probe,
    Result,
    Revert,
    RevertState,
    Stop,
    TargetCommit,
    Test,
)
from service.mergequeue.wording import breaks as wording
from service.vocabulary import RequiredName, Sha

RESULTS = {"g": Result.GREEN, "r": Result.RED, "s": Result.SILENT, "?": None}


def broken(*results: str, runs_max: int = 12, trees: str = "", wary: bool = False) -> Break:
    """A break whose commits have these results; `trees` names the tree of each."""
    names = trees or "abcdefghijklmnopqrstuvwxyz"
    commits = tuple(
        TargetCommit(Sha(f"c{each}"), Sha(names[each]), each or None)
        for each in range(len(results))
    )
    probes = tuple(
        Probe(f"p{place}-{each}", place, Sha(f"s{place}{each}"), None, RESULTS[letter], True)
        for place, letters in enumerate(results)
        for each, letter in enumerate(letters)
    )
    return Break("b", RequiredName("slow"), "", commits, runs_max, True, True, wary, probes)


@pytest.mark.parametrize(
    ("one", "decision"),
    [
        # One landing: three failures of it, and a pass of the commit before it.
        (broken("", ""), Test((1, 1, 1, 0))),
        (broken("g", "rrr"), Blame(1)),
        (broken("g", "rr?"), None),
        (broken("g", "rr"), Test((1,))),
        # Failures of later commits count, too: two of its own and three in all.
        (broken("g", "rr", "r"), Blame(1)),
        (broken("g", "rr", ""), Test((1,))),
        # Several landings are tested at once where the runs suffice.
        (broken("", "", ""), Test((1, 1, 2, 2, 2, 0))),
        (broken("", "", "", "", "", ""), Test((1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 0))),
        # Otherwise a few of them, and the newest commit once.
        (broken("", "", "", "", "", runs_max=7), Test((4, 1, 2, 3))),
        # The commit before the culprit needs a pass of its own.
        (broken("", "rr", "rr"), Test((0,))),
        # A failure beside a pass of the same commit was a flake.
        (broken("g", "rg", "rrr"), Blame(2)),
        # The newest commit passes: it was a flake, whatever else failed.
        (broken("", "rr", "g"), Stop(End.FLAKE)),
        (broken("", "", "rrg"), Stop(End.FLAKE)),
        # The commit that passed before fails now.
        (broken("rr", "rrr"), Stop(End.OUTSIDE)),
        # It fails each time, and a later commit passes.
        (broken("g", "rr", "g", "rr"), Stop(End.UNSTEADY, (3,))),
        # Commits with one tree share their results.
        (broken("g", "rr", "", "r", trees="abab"), Stop(End.UNSTEADY, (3,))),
        (broken("g", "rr", "", trees="abb"), Test((1,))),
        (broken("g", "rr", "r", trees="abb"), Blame(1)),
        # The check does not run on the branches of a search.
        (broken("", "ss"), Stop(End.SILENT, (1,))),
        (broken("g", "ss"), Test((1, 1, 1))),
        # The runs are used: those that may be it are named.
        (broken("g", "", "rr", runs_max=3), Stop(End.SPENT, (1, 2))),
        (broken("", "", "", runs_max=0), Stop(End.SPENT, (1, 2))),
        # After a flake the newest commit goes first, and the proof is longer.
        (broken("", "", wary=True), Test((1,))),
        (broken("", "r", wary=True), Test((1, 1, 1, 1, 0))),
        (broken("g", "rrrr", wary=True), Test((1,))),
        (broken("g", "rrrrr", wary=True), Blame(1)),
    ],
)
def test_what_the_results_decide(one: Break, decision: Decision) -> None:
    assert search.decide(one) == decision


def test_a_long_history_is_narrowed_by_probes_side_by_side() -> None:
    decision = search.decide(broken(*[""] * 25))
    assert isinstance(decision, Test)
    assert len(decision.places) <= 9
    assert 24 in decision.places


def test_a_culprit_has_the_confirming_runs_of_both_commits() -> None:
    one = search.concluded(broken("g", "rr", "r"))
    assert one.culprit == 1
    assert [probe.branch for probe in one.red_runs] == ["p1-0", "p1-1"]
    assert [probe.branch for probe in one.green_runs] == ["p0-0"]
    assert one.revert == Revert()
    assert not search.is_to_be_told(one)
    told = replace(one, revert=Revert(RevertState.OPEN, 7))
    assert search.is_to_be_told(told)
    assert not search.is_to_be_told(replace(told, is_told=True))


def test_a_commit_that_no_pull_request_brought_is_neither_reverted_nor_told() -> None:
    one = broken("g", "rrr")
    alone = tuple(replace(commit, pr=None) for commit in one.commits)
    one = search.concluded(replace(one, commits=alone))
    assert (one.culprit, one.revert, search.is_to_be_told(one)) == (1, None, False)
    assert one.is_open


def test_a_revert_of_ours_is_told_and_not_reverted() -> None:
    one = broken("g", "rrr")
    ours = tuple(replace(commit, is_revert=True) for commit in one.commits)
    one = search.concluded(replace(one, commits=ours))
    assert (one.culprit, one.revert, search.is_to_be_told(one)) == (1, None, True)


def test_an_end_leaves_no_branch_and_no_revert() -> None:
    one = search.concluded(broken("g", "rrr", "?"))
    probes = tuple(replace(probe, is_retired=False) for probe in one.probes)
    one = replace(one, probes=probes, revert=Revert(RevertState.OPEN, 7))
    ended = search.ended(one, End.REPAIRED)
    work = {"retire p0-0", "retire p1-0", "retire p1-1", "retire p1-2", "retire p2-0"}
    assert search.work_of(ended) == {*work, "revert unwanted"}
    assert not ended.is_open
    assert search.decide(replace(ended, probes=())) is not None
    assert search.concluded(ended) == ended


def test_the_end_of_the_watch_leaves_an_open_revert_to_people() -> None:
    one = replace(broken("g", "rrr"), culprit=1, revert=Revert(RevertState.OPEN, 7))
    assert search.ended(one, End.UNWATCHED).revert == one.revert
    wanted = replace(one, revert=Revert())
    assert search.ended(wanted, End.UNWATCHED).revert == Revert(RevertState.UNWANTED)
    assert not search.ended(one, End.UNWATCHED).is_open


def test_a_flake_passed_on_the_commit_that_was_red() -> None:
    one = search.concluded(broken("", "rrg"))
    assert (one.stopped, one.passed) == (End.FLAKE, one.commits[1].sha)


def test_a_revert_that_the_queue_refused_is_not_said_to_be_in_it() -> None:
    one = replace(broken("g", "rrr"), culprit=1)
    taken = replace(one, revert=Revert(RevertState.OPEN, 7))
    refused = replace(one, revert=Revert(RevertState.OPEN, 7, "The queue is full."))
    assert "#7 reverts it and is in the queue as urgent." in wording.situation(taken)
    assert wording.situation(refused).endswith(
        "#7 reverts it. The queue did not take that: The queue is full."
    )


def test_a_break_without_a_confirmed_culprit_has_no_runs_to_show() -> None:
    assert broken("g", "").red_runs == ()
    assert broken("g", "").green_runs == ()


def test_what_is_not_built_is_work_and_a_new_round_too() -> None:
    one = search.with_probes(broken("", ""), ["x", "y"], [1, 0])
    assert search.work_of(one) == {"build x", "build y"}
    built = search.with_probe(one, replace(one.probes[0], sha=Sha("s")))
    assert search.work_of(built) == {"build y"}
