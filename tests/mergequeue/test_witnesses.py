"""What a run that goes on with a suspect in its base may say, and against whom."""

import pytest

from service.mergequeue.engine.reasons import Cause, HoldReason
from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.wording import notices
from tests.mergequeue.scenario import FILES, Play
from tests.mergequeue.script import Script

ADAPTIVE = "queue SINGLE concurrency=8 batch=4 batch_sizing=ADAPTIVE can_optimistically_merge=yes"
WHOLE = f"{ADAPTIVE} full_suite=yes"

WITNESS_OF_1 = ("rates unit=20", "submit 9", "submit 1 2 3 risk=0.03", "+5m", "pass r1", "fail r2")
"""1 has failed alone, on what has landed; r3 tests 2 on top of 1 and goes on as its witness."""


def played(first: str, *lines: str) -> Script:
    """The queue after these inputs; everything is checked after each."""
    script = Script(first)
    for line in lines:
        script.play(line)
    return script


def witness_of_1() -> Script:
    """The queue of `WITNESS_OF_1`."""
    script = played(WHOLE, *WITNESS_OF_1)
    assert script.stage.run(3).kind is RunKind.WITNESS
    return script


def state_of(script: Script, pr: int) -> EntryState | None:
    entry = script.stage.queue.entries.get(pr)
    return None if entry is None else entry.state


@pytest.mark.parametrize("leaves", ["push 2", "cancel 2", "facts 2 closed", "gone 2"])
def test_one_is_not_rejected_because_of_one_that_the_failed_run_tested_and_that_has_left(
    leaves: str,
) -> None:
    script = witness_of_1()
    script.play(leaves)
    script.play("fail r3")
    assert state_of(script, 1) is not None


def test_one_is_not_rejected_because_of_one_ahead_of_the_failed_run_that_has_left() -> None:
    script = played(f"{WHOLE} manual build", "rates unit=20", "submit 8")
    for line in ("build r1", "pass r1", "submit 1 9 2 risk=0.03", "build r2", "build r4"):
        script.play(line)
    script.play("fail r2")
    run = script.stage.run(4)
    assert (run.kind, run.prs, run.base_prs) == (RunKind.WITNESS, (2,), (1, 9))
    for line in ("cancel 9", "build r8", "pass r8", "fail r4"):
        script.play(line)
    assert state_of(script, 2) is None
    assert state_of(script, 1) is not None


def test_a_witness_of_one_that_is_not_ready_any_more_fails_without_a_broken_invariant() -> None:
    script = played(f"{WHOLE} evidence=yes", *WITNESS_OF_1[:-1], "facts 1 blocked=review_required")
    for line in ("fail r2", "evidence r2 UNEXPLAINED tests=unit:t1", "fail r3"):
        script.play(line)
    assert state_of(script, 1) is EntryState.NOT_READY


def test_a_witness_whose_check_was_skipped_does_not_clear_one_that_failed_it() -> None:
    script = played(
        WHOLE,
        "require unit lint",
        *("rates unit=20", "submit 9", "submit 1 risk=0.03", "submit 2 risk=0.03 skipped=unit"),
        *("submit 3 risk=0.03", "+5m", "pass r1", "fail r2 unit"),
    )
    assert script.stage.run(3).kind is RunKind.WITNESS
    script.play("report r3 unit=skipped lint=passed")
    assert not script.stage.queue.entries[1].screened


def test_a_witness_rejects_by_the_run_in_which_the_suspect_alone_was_undecided() -> None:
    script = played(
        WHOLE,
        *("rates unit=20", "submit 9", "submit 1 2 3 risk=0.3", "+5m", "pass r1", "fail r2"),
    )
    run = script.stage.run(3)
    assert (run.kind, run.prs, run.base_prs) == (RunKind.WITNESS, (2,), (9, 1))
    blamed = script.stage.run(2)
    assert (blamed.prs, blamed.base_prs) == ((1,), (9,))
    script.play("fail r3")
    assert state_of(script, 2) is EntryState.TESTING
    assert state_of(script, 1) is None
    assert script.stage.last[blamed.id].cause is Cause.PR_FAULT


def test_an_outage_rejects_nobody_before_it_is_recognized() -> None:
    script = played(WHOLE, "rates unit=20", "submit 9", "pass r1", "submit 1 2 3 risk=0.03")
    script.play("+10m")
    while not script.stage.queue.holds:
        queue = script.stage.queue
        oldest = min(queue.runs.values(), key=lambda run: (run.created_at, run.number))
        script.play(f"fail r{oldest.number}")
        script.play("+1m")
        assert {1, 2, 3} <= script.stage.queue.entries.keys(), f"r{oldest.number} rejects one"


def test_fixed_batches_while_entries_are_screened_leave_the_queue_at_rest() -> None:
    script = played("queue SINGLE concurrency=8 batch_sizing=ADAPTIVE", "submit 1 2 risk=0.4")
    assert [run.kind for run in script.stage.queue.runs.values()].count(RunKind.SCREEN)
    script.play("configure batch_sizing=FIXED")
    script.play("submit 3")
    assert state_of(script, 3) is EntryState.TESTING


def test_the_history_of_one_rejected_by_a_witness_tells_of_its_own_run() -> None:
    play = Play(FILES["adaptive-witness-fails"])
    *_, last = play.steps()
    view = next(view for view in last.views if view.entry.pr == 1)
    assert view.entry.state is EntryState.FAILED
    page = notices.status_comment(view)
    assert page.count("another run has to show whether it is the cause") == 1
    assert page.count("testing started") == 2


def test_a_witness_that_fails_as_a_hold_says_of_all_rejects_nobody() -> None:
    def fails(run: int, test: str) -> list[str]:
        evidence = f"evidence r{run} UNEXPLAINED print={test} tests=unit:{test}"
        return [f"fail r{run}", evidence]

    script = played(f"{WHOLE} evidence=yes", *WITNESS_OF_1[:-1], *fails(2, "t1"))
    for line in ("pass r5", "pass r6", "+1m", "submit 4 5 6 risk=0.3"):
        script.play(line)
    for line in (*fails(8, "boom"), *fails(12, "boom"), *fails(10, "boom")):
        script.play(line)
    (hold,) = script.stage.queue.holds
    assert (hold.reason, hold.evidence) == (HoldReason.REPEATED_FAILURE, "boom")
    for line in fails(3, "boom"):
        script.play(line)
    assert state_of(script, 1) is not None
