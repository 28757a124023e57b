"""Why a pull request is not merged yet, over queues made by hand: batches, lanes, searches."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import BatchingRule, BatchSizing, Mode, QueueConfig
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode, Next
from service.mergequeue.engine.model import (
    Bisection,
    Breaker,
    Entry,
    Hold,
    KeptMove,
    Landing,
    LandMode,
    Member,
    MergeQueue,
    Run,
    RunStep,
)
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus
from service.mergequeue.engine.targets import Targets
from service.vocabulary import SYSTEM, Blocker, BlockerCode, CheckOutcome, Mergeability
from tests.mergequeue import stage, trees
from tests.mergequeue.stage import ALICE, REQUIRED, START, a_check
from tests.mergequeue.trees import Target

BATCHES = QueueConfig(batch=True, batching_min_size=4, batching_max_wait_time_minutes=5)
LANES = QueueConfig(mode=Mode.PARALLEL, concurrency=9)
TIP = Target().tip


def an_entry(pr: int, state: EntryState = EntryState.PENDING, **differences: Any) -> Entry:
    """A pull request, PENDING and waiting; `seq` is its number."""
    entry = Entry(
        id=f"e{pr}",
        pr=pr,
        facts=stage.facts_of(pr),
        head=trees.head_of(pr, 1),
        submitted_by=ALICE,
        submitted_at=START,
        priority=100,
        no_batch=False,
        state=state,
        state_since=START,
        reason=Reason.NOW_READY,
        seq=pr,
    )
    return replace(entry, **differences)


def members(prs: Iterable[int]) -> tuple[Member, ...]:
    return tuple(Member(pr, f"e{pr}", trees.head_of(pr, 1)) for pr in prs)


def a_run(number: int, prs: tuple[int, ...], base: tuple[int, ...] = (), **more: Any) -> Run:
    """A run in progress of these pull requests on top of those."""
    run = Run(
        id=f"r{number}",
        number=number,
        kind=RunKind.MAIN,
        entries=members(prs),
        base=members(base),
        base_tip=TIP,
        status=RunStatus.IN_PROGRESS,
        phase=RunPhase.TESTING,
        required=REQUIRED.names,
        required_source=REQUIRED.source,
        config=QueueConfig(),
        created_at=START,
        checks=(a_check("unit", CheckOutcome.RUNNING),),
    )
    return replace(run, **more)


def a_queue(config: QueueConfig, *parts: Entry | Run | Bisection) -> MergeQueue:
    return replace(
        stage.a_queue(),
        config=config,
        entries={one.pr: one for one in parts if isinstance(one, Entry)},
        runs={one.id: one for one in parts if isinstance(one, Run)},
        bisections={one.id: one for one in parts if isinstance(one, Bisection)},
    )


def waiting(count: int, **differences: Any) -> list[Entry]:
    return [an_entry(pr, **differences) for pr in range(1, count + 1)]


def the(code: ConditionCode, queue: MergeQueue, pr: int, minutes: float = 0) -> Condition:
    """The one condition of this code."""
    now = START + timedelta(minutes=minutes)
    (found,) = [one for one in explain.explain(queue, pr, now).conditions if one.code is code]
    return found


def codes(queue: MergeQueue, pr: int) -> list[str]:
    """All conditions in order: `+` met, `-` open."""
    found = explain.explain(queue, pr, START).conditions
    return [f"{'+' if one.met else '-'}{one.code.value}" for one in found]


def test_a_batch_says_how_many_it_has_and_when_it_starts_at_the_latest() -> None:
    queue = a_queue(BATCHES, *waiting(3))
    batch = the(ConditionCode.BATCH_COMPLETE, queue, 2)
    assert (batch.met, batch.count, batch.total, batch.prs) == (False, 3, 4, (1, 3))
    assert batch.at == START + timedelta(minutes=5)
    following = explain.explain(queue, 2, START).next
    assert following is not None
    assert (following.what, following.at) == (Next.BATCH_FILLS, batch.at)
    assert codes(queue, 2) == [
        *("+queue_running", "+no_hold", "+no_conflict_ahead", "+its_turn", "-batch_complete"),
        *("+base_startable", "+free_slot"),
    ]


def test_who_goes_into_the_same_batch_does_not_go_first() -> None:
    queue = a_queue(BATCHES, *waiting(6))
    assert the(ConditionCode.ITS_TURN, queue, 4).met
    turn = the(ConditionCode.ITS_TURN, queue, 6)
    assert (turn.prs, turn.count) == ((1, 2, 3, 4), 4)
    assert the(ConditionCode.BATCH_COMPLETE, queue, 1).met
    assert the(ConditionCode.BATCH_COMPLETE, queue, 6).count == 2


@pytest.mark.parametrize("minutes", [5, 6])
def test_a_batch_that_has_waited_for_long_enough_waits_no_more(minutes: int) -> None:
    batch = the(ConditionCode.BATCH_COMPLETE, a_queue(BATCHES, *waiting(2)), 1, minutes)
    assert (batch.met, batch.count, batch.at) == (True, 2, None)


def test_nobody_joins_past_an_isolated_entry() -> None:
    parts = [an_entry(1), an_entry(2), an_entry(3, no_batch=True), an_entry(4)]
    queue = a_queue(BATCHES, *parts)
    assert the(ConditionCode.BATCH_COMPLETE, queue, 1).met
    assert the(ConditionCode.BATCH_COMPLETE, queue, 1).count == 2
    assert not the(ConditionCode.BATCH_COMPLETE, queue, 4).met
    assert the(ConditionCode.ITS_TURN, queue, 4).prs == (1, 2, 3)


RULES = replace(BATCHES, batching_rules=(BatchingRule("//infra/*"), BatchingRule("//exact")))


@pytest.mark.parametrize(
    ("config", "differences", "is_alone"),
    [
        (BATCHES, {}, False),
        (replace(BATCHES, batch=False), {}, True),
        (replace(BATCHES, batch_sizing=BatchSizing.ADAPTIVE), {}, True),
        (BATCHES, {"no_batch": True}, True),
        (BATCHES, {"priority": 0}, True),
        (BATCHES, {"taken_apart": True}, True),
        (BATCHES, {"failed_batches": 2}, False),
        (BATCHES, {"failed_batches": 3}, True),
        (RULES, {"targets": targets.of(["//infra/net"])}, True),
        (RULES, {"targets": targets.of(["//exact"])}, True),
        (RULES, {"targets": targets.of(["//exact/not"])}, False),
        (RULES, {"targets": targets.ALL}, True),
        (RULES, {}, True),
    ],
)
def test_only_who_may_share_a_run_waits_for_a_batch(
    config: QueueConfig, differences: dict[str, Any], is_alone: bool
) -> None:
    queue = a_queue(config, an_entry(1, **differences))
    assert ("-batch_complete" not in codes(queue, 1)) == is_alone


def test_placed_entries_wait_for_no_batch() -> None:
    queue = a_queue(BATCHES, an_entry(1, rank=10), an_entry(2, rank=20), an_entry(3))
    assert "batch_complete" not in " ".join(codes(queue, 1))
    assert the(ConditionCode.ITS_TURN, queue, 2).met
    assert the(ConditionCode.BASE_STARTABLE, queue, 2).met
    assert the(ConditionCode.BATCH_COMPLETE, queue, 3).count == 1
    assert the(ConditionCode.BASE_STARTABLE, queue, 3).prs == (1, 2)


def touching(pr: int, *names: str, **differences: Any) -> Entry:
    return an_entry(pr, targets=Targets(frozenset(names)), **differences)


def test_in_lanes_only_those_that_it_meets_go_first_directly_or_through_others() -> None:
    queue = a_queue(
        LANES, touching(1, "a"), touching(2, "b"), touching(3, "a", "c"), touching(4, "c")
    )
    assert the(ConditionCode.ITS_TURN, queue, 2).met
    assert the(ConditionCode.ITS_TURN, queue, 4).prs == (1, 3)
    everything = replace(touching(5), targets=targets.ALL)
    unknown = replace(touching(6), targets=None)
    queue = replace(queue, entries={**queue.entries, 5: everything, 6: unknown})
    assert the(ConditionCode.ITS_TURN, queue, 5).prs == (1, 2, 3, 4)
    assert the(ConditionCode.ITS_TURN, queue, 6).prs == (1, 2, 3, 4, 5)


def test_a_batch_stays_in_its_lane() -> None:
    lanes = replace(BATCHES, mode=Mode.PARALLEL)
    queue = a_queue(lanes, touching(1, "a"), touching(2, "b"), touching(3, "a"), touching(4, "b"))
    assert the(ConditionCode.BATCH_COMPLETE, queue, 1).prs == (3,)
    assert the(ConditionCode.ITS_TURN, queue, 4).met


def test_slots_are_taken_by_main_runs_screens_and_hedges_which_give_way() -> None:
    config = QueueConfig(concurrency=3, bisection_concurrency=1)
    kinds = (RunKind.MAIN, RunKind.SCREEN, RunKind.HEDGE, RunKind.PROBE)
    runs = [a_run(number, (number,), kind=kind) for number, kind in enumerate(kinds, 11)]
    slot = the(ConditionCode.FREE_SLOT, a_queue(config, an_entry(1), *runs), 1)
    assert (slot.met, slot.count, slot.total, slot.prs) == (True, 3, 3, (11, 12, 13))
    shared = replace(config, bisection_concurrency=0)
    slot = the(ConditionCode.FREE_SLOT, a_queue(shared, an_entry(1), *runs), 1)
    assert (slot.met, slot.count, slot.prs) == (False, 4, (11, 12, 13, 14))


def test_impacted_targets_are_asked_for_in_lanes_alone() -> None:
    missing = (Reason.IMPACTED_TARGETS_MISSING,)
    entry = an_entry(1, EntryState.NOT_READY, unmet=missing)
    code = "impacted_targets_missing"
    assert f"-{code}" in codes(a_queue(LANES, entry), 1)
    ready = replace(entry, unmet=(Reason.DRAFT,))
    assert f"+{code}" in codes(a_queue(LANES, ready), 1)
    assert code not in " ".join(codes(a_queue(BATCHES, ready), 1))


def test_a_screened_entry_is_explained_without_a_place() -> None:
    run = a_run(1, (1,), kind=RunKind.SCREEN)
    entry = an_entry(1, EntryState.TESTING, run=run.id)
    assert codes(a_queue(QueueConfig(), entry, run), 1) == ["+branch_built", "-status_passed"]


def kept(depth: int, *behind: Run) -> MergeQueue:
    """1 has failed and is still counted on; 2 to 4 stand behind it, with these runs."""
    config = QueueConfig(can_optimistically_merge=True, pending_failure_depth=depth, concurrency=4)
    failed = a_run(1, (1,), status=RunStatus.FAILED, config=config)
    runs = {pr: run.id for run in behind for pr in run.prs}
    entries = [
        an_entry(pr, EntryState.TESTING, rank=pr, run=runs[pr])
        if pr in runs
        else an_entry(pr, rank=pr)
        for pr in (2, 3, 4)
    ]
    first = an_entry(1, EntryState.PENDING_FAILURE, rank=1, run="r1", kept=True)
    return a_queue(config, first, *entries, failed, *behind)


def test_levels_of_successors_are_counted_up_to_the_depth() -> None:
    second, third = a_run(2, (2,), (1,)), a_run(3, (3,), (1, 2))
    behind = the(ConditionCode.SUCCESSORS_DECIDED, kept(1, second, third), 1)
    assert (behind.met, behind.prs, behind.count, behind.total) == (False, (2,), 0, 1)
    red = replace(second, status=RunStatus.FAILED)
    behind = the(ConditionCode.SUCCESSORS_DECIDED, kept(2, red, third), 1)
    assert (behind.met, behind.prs, behind.count, behind.total) == (False, (3,), 1, 2)
    behind = the(ConditionCode.SUCCESSORS_DECIDED, kept(1, red, third), 1)
    assert (behind.met, behind.prs, behind.count) == (True, (), 1)


def test_a_successor_that_could_still_start_is_awaited() -> None:
    behind = the(ConditionCode.SUCCESSORS_DECIDED, kept(1), 1)
    assert (behind.met, behind.prs) == (False, (2,))
    following = explain.explain(kept(1), 1, START).next
    assert following is not None
    assert following.what is Next.SUCCESSOR_ENDS
    assert "successors_decided" not in " ".join(codes(kept(0), 1))


def searched(lo: int, hi: int, *probes: Run) -> MergeQueue:
    """The batch 1 to 4 failed; the first `lo` are proven."""
    failed = a_run(1, (1, 2, 3, 4), status=RunStatus.FAILED)
    search = Bisection(
        id="b1",
        run="r1",
        entries=failed.entries,
        base=(),
        base_tip=TIP,
        lo=lo,
        hi=hi,
        reds={4: ("r1",)},
    )
    entries = [
        an_entry(pr, EntryState.PENDING_FAILURE, rank=pr, run="r1", bisection="b1")
        for pr in (1, 2, 3, 4)
    ]
    return a_queue(QueueConfig(bisection_concurrency=1), *entries, failed, *probes, search)


def test_a_search_says_whom_it_is_about_and_how_far_it_is() -> None:
    probe = a_run(2, (1, 2), kind=RunKind.PROBE, bisection="b1")
    queue = searched(0, 4, probe)
    done = the(ConditionCode.BISECTION_DONE, queue, 3)
    assert (done.met, done.prs, done.count, done.total, done.runs) == (
        *(False, (1, 2, 3, 4), 0, 4, 1),
    )
    assert codes(queue, 3) == ["+ahead_decided", "-bisection_done"]
    following = explain.explain(queue, 3, START).next
    assert following is not None
    assert following.what is Next.PROBE_ENDS


def test_a_search_without_a_run_says_what_it_waits_for() -> None:
    other = a_run(9, (7,), kind=RunKind.CONFIRMATION, bisection="b2")
    assert codes(searched(2, 4, other), 3) == [
        *("+ahead_decided", "+queue_running", "+no_hold", "-free_slot", "-bisection_done"),
    ]
    slot = the(ConditionCode.FREE_SLOT, searched(2, 4, other), 3)
    assert (slot.count, slot.total, slot.prs) == (1, 1, (7,))


def test_a_search_that_has_come_down_to_one_waits_for_its_confirmation() -> None:
    again = a_run(5, (1, 2, 3), kind=RunKind.CONFIRMATION, bisection="b1")
    queue = searched(2, 3, again)
    assert codes(queue, 3) == ["+ahead_decided", "+bisection_done", "-confirmed"]
    assert the(ConditionCode.CONFIRMED, queue, 3).prs == ()
    assert the(ConditionCode.CONFIRMED, queue, 4).prs == (3,)


def passed(*, landing: bool = False) -> MergeQueue:
    """2 and 3 passed together on top of 1, which is under test; 4 is elsewhere."""
    first = a_run(1, (1,))
    steps = tuple(
        RunStep(pr, trees.head_of(pr, 1), trees.sha(str(pr)), TIP.tree, contained=False)
        for pr in (1, 2, 3)
    )
    both = a_run(2, (2, 3), (1,), status=RunStatus.SUCCEEDED, steps=steps)
    both = replace(both, checks=(a_check("unit", CheckOutcome.PASSED),))
    unit = [
        an_entry(pr, EntryState.TESTS_PASSED, rank=pr, run="r2", verified_by="r2") for pr in (2, 3)
    ]
    queue = a_queue(
        QueueConfig(), an_entry(1, EntryState.TESTING, rank=1, run="r1"), *unit, first, both
    )
    under_way = Landing(1, "r2", (3,), LandMode.CALL, TIP, START)
    return replace(queue, landing=under_way) if landing else queue


def test_what_has_passed_waits_for_the_base_of_the_run_that_verified_it() -> None:
    ahead = the(ConditionCode.AHEAD_LANDED, passed(), 3)
    assert (ahead.met, ahead.prs) == (False, (1,))
    queue = passed()
    cleared = replace(queue.entries[1], state=EntryState.TESTS_PASSED, verified_by="r2")
    queue = replace(queue, entries={**queue.entries, 1: cleared})
    assert the(ConditionCode.AHEAD_LANDED, queue, 3).met


def test_who_lands_together_waits_for_all_to_be_ready() -> None:
    queue = passed()
    unready = replace(queue.entries[2], unmet=(Reason.REVIEW_REQUIRED,), unready_since=START)
    queue = replace(queue, entries={**queue.entries, 2: unready})
    found = explain.explain(queue, 3, START).conditions
    lost = [one for one in found if one.code is ConditionCode.STILL_READY and not one.met]
    assert [(one.prs, one.word) for one in lost] == [((2,), "review_required")]


def test_ones_own_landing_is_not_that_of_another() -> None:
    queue = passed(landing=True)
    assert the(ConditionCode.LANDING_FREE, queue, 3).word == "own"
    other = the(ConditionCode.LANDING_FREE, queue, 2)
    assert (other.met, other.prs, other.word) == (False, (3,), "")


def test_a_branch_that_is_yet_to_be_read_is_no_hold() -> None:
    queue = a_queue(QueueConfig(), an_entry(1))
    moved = KeptMove(TIP, prs=(), rewritten=False)
    for unread in (replace(queue, kept_move=moved), replace(queue, required=None)):
        hold = the(ConditionCode.NO_HOLD, unread, 1)
        assert (hold.met, hold.name) == (False, "")
        following = explain.explain(unread, 1, START).next
        assert following is not None
        assert following.what is Next.RETRY


@pytest.mark.parametrize(("minutes", "is_named"), [(14, True), (15, False), (16, False)])
def test_the_next_try_of_an_ill_ci_is_named_until_it_may_begin(
    minutes: float, is_named: bool
) -> None:
    reason, at = HoldReason.CI_UNHEALTHY, START + timedelta(minutes=15)
    held = Hold("h1", reason, reason.record.scope, SYSTEM, "", START)
    queue = a_queue(QueueConfig(), an_entry(1))
    queue = replace(queue, holds=(held,), breaker=Breaker(try_at=at))
    assert the(ConditionCode.NO_HOLD, queue, 1, minutes).at == (at if is_named else None)


def test_what_is_tried_now_is_named() -> None:
    reason = HoldReason.BASE_RED
    held = Hold("h1", reason, reason.record.scope, SYSTEM, "", START)
    tries = [a_run(number, (number,), kind=RunKind.TRY) for number in (1, 2)]
    queue = a_queue(QueueConfig(), *waiting(3), *tries)
    assert the(ConditionCode.NO_HOLD, replace(queue, holds=(held,)), 3).prs == (1, 2)


@pytest.mark.parametrize(
    ("outcome", "what"),
    [
        (CheckOutcome.RUNNING, Next.CHECK_REPORTS),
        (CheckOutcome.FAILED, Next.FAILURE_COUNTS),
    ],
)
def test_while_a_failed_check_may_still_be_reported_anew_no_report_is_awaited(
    outcome: CheckOutcome, what: Next
) -> None:
    run = a_run(1, (1,), checks=(a_check("unit", outcome),), sha=TIP.sha)
    queue = a_queue(QueueConfig(), an_entry(1, EntryState.TESTING, run=run.id), run)
    following = explain.explain(queue, 1, START).next
    assert following is not None
    assert following.what is what


KNOWN_AT_ALL_TIMES = {"base_mismatch", "draft", "review_required", "changes_requested"}
"""What GitHub shows of a pull request in each answer."""


@pytest.mark.parametrize("mergeability", [Mergeability.UNSPECIFIED, Mergeability.IN_PROGRESS])
def test_a_list_shows_no_condition_as_met_of_which_nothing_is_known(
    mergeability: Mergeability,
) -> None:
    missing = (Blocker(BlockerCode.CHECK_MISSING, "unit"),)
    facts = replace(stage.facts_of(1), mergeability=mergeability, blockers=missing, is_fork=True)
    config = QueueConfig(mode=Mode.PARALLEL)
    barred = (Reason.FORK_NEEDS_PERSON, Reason.IMPACTED_TARGETS_MISSING)
    unmet = (Reason.MERGEABILITY_UNKNOWN, *barred, Reason.WORKFLOWS_PERMISSION_MISSING)
    entry = an_entry(1, EntryState.NOT_READY, facts=facts, unmet=unmet)
    queue = replace(a_queue(config, entry), required=None, tip=None)
    met = {code[1:] for code in codes(queue, 1) if code[0] == "+"}
    assert met == KNOWN_AT_ALL_TIMES
    assert {"-mergeability_unknown", "-fork_needs_person"} <= set(codes(queue, 1))


@pytest.mark.parametrize(
    ("differences", "code"),
    [
        ({"mergeability": Mergeability.IN_PROGRESS}, "conflict_target"),
        ({"blockers": (Blocker(BlockerCode.CHECK_MISSING, "unit"),)}, "check_pending"),
    ],
)
def test_a_condition_is_met_only_where_its_fact_is_known(
    differences: dict[str, Any], code: str
) -> None:
    known = an_entry(1, EntryState.NOT_READY, unmet=(Reason.DRAFT,))
    unknown = replace(known, facts=replace(known.facts, **differences))
    for entry, is_shown in ((known, True), (unknown, False)):
        assert (f"+{code}" in codes(a_queue(QueueConfig(), entry), 1)) == is_shown


def test_several_are_explained_as_each_is_alone() -> None:
    queue = passed()
    queue = replace(queue, entries={**queue.entries, 4: an_entry(4, seq=4), 5: an_entry(5, seq=5)})
    alone = {pr: explain.explain(queue, pr, START) for pr in queue.entries}
    assert explain.explain_each(queue, sorted(queue.entries), START) == alone
