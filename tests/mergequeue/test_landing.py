"""What lands next and what its answer means, as values: one landing, by its rules.

Refusals that come again and again are in test_stops.py, units that land whole in test_units.py.
See docs/design/landing.md 1, 5.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from service.errors import InvariantBroken
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.inputs import AdvanceRefused, Landed, LandingStopCode, LandingStopped
from service.mergequeue.engine.model import (
    Entry,
    Hold,
    KeptMove,
    LandedStep,
    LandMode,
    MergeQueue,
    Proof,
    RequiredSet,
    Run,
    Tip,
    Unexplained,
)
from service.mergequeue.engine.outputs import Event, Land, LandingHalted, TipMoved
from service.mergequeue.engine.planning import landing, landing_stops
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.state import holds
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import (
    SYSTEM,
    Blocker,
    BlockerCode,
    CheckOutcome,
    MergeMethod,
    RequiredName,
    Sha,
)
from tests.mergequeue.stage import REQUIRED, START, Stage, a_check

SECOND = timedelta(seconds=1)
ELSEWHERE = Tip(Sha("e" * 40), Sha("f" * 40))
BELOW = LandedStep(9, ELSEWHERE.sha, ELSEWHERE.sha, ELSEWHERE.tree)
MERGES, SQUASHES = MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH


def a_unit(count: int, method: MergeMethod = MERGES, below: int = 0) -> MergeQueue:
    """Pull requests that one run has proved; the first `below` are its base."""
    stage = Stage(QueueConfig(concurrency=count, merge_method=method))
    for pr in range(1, count + 1):
        stage.tell(stage.submit(pr))
    run = stage.run(count)
    members = (*run.base, *run.entries)
    run = replace(
        run,
        entries=members[below:],
        base=members[:below],
        status=RunStatus.SUCCEEDED,
        checks=(a_check("unit", CheckOutcome.PASSED),),
    )
    entries = {
        pr: replace(entry, state=EntryState.TESTS_PASSED, run=run.id, verified_by=run.id)
        for pr, entry in stage.queue.entries.items()
    }
    return replace(stage.queue, entries=entries, runs={run.id: run})


def the_run(queue: MergeQueue) -> Run:
    """The only run."""
    (run,) = queue.runs.values()
    return run


def with_run(queue: MergeQueue, **changes: object) -> MergeQueue:
    """The queue with its only run changed."""
    run = the_run(queue)
    return replace(queue, runs={run.id: replace(run, **changes)})  # type: ignore[arg-type]


def with_entry(queue: MergeQueue, pr: int, **changes: object) -> MergeQueue:
    """The queue with one entry changed."""
    entry = replace(queue.entries[pr], **changes)  # type: ignore[arg-type]
    return replace(queue, entries={**queue.entries, pr: entry})


def a_stack(count: int = 2, under: tuple[int, ...] = ()) -> MergeQueue:
    """The unit as a native stack; each member has those before it below, the first one `under`."""
    queue = a_unit(count, SQUASHES)
    for pr in range(1, count + 1):
        blockers = (Blocker(BlockerCode.STACKED, " ".join(map(str, (*under, *range(1, pr))))),)
        facts = replace(queue.entries[pr].facts, in_stack=True, blockers=blockers)
        queue = with_entry(queue, pr, facts=facts)
    return queue


def bringing_nothing(queue: MergeQueue, *prs: int) -> MergeQueue:
    """The queue; the heads of these pull requests were in the base already."""
    steps = (replace(step, contained=step.pr in prs) for step in the_run(queue).steps)
    return with_run(queue, steps=tuple(steps))


def a_draft(queue: MergeQueue) -> Draft:
    return Draft(queue, START, SYSTEM)


def landing_of(queue: MergeQueue) -> Land | None:
    """The landing that is asked for now, if any."""
    draft = a_draft(queue)
    landing.land(draft)
    return next((action for action in draft.actions if isinstance(action, Land)), None)


def landed_at_once(queue: MergeQueue) -> list[int]:
    action = landing_of(queue)
    return [] if action is None else [step.pr for step in action.steps]


def in_flight(queue: MergeQueue) -> Draft:
    """A draft whose landing was asked for."""
    draft = a_draft(queue)
    landing.land(draft)
    after = a_draft(draft.value())
    assert after.queue.landing is not None
    return after


def answer(run: Run, position: int) -> Landed:
    step = run.steps[position - 1]
    return Landed(run.id, position, step.commit, step.tree)


def events(draft: Draft) -> list[Event]:
    return [recorded.event for recorded in draft.events]


# Whether anything may land.


def test_a_passed_run_lands_on_the_tip_with_what_was_tested() -> None:
    queue = a_unit(1)
    run = the_run(queue)
    action = landing_of(queue)
    assert action is not None
    assert (action.run, action.mode, action.proof) == (run.id, LandMode.CAS, Proof.EXACT_TREE)
    (step,) = action.steps
    assert (step.parent_tree, step.tree) == (run.base_tip.tree, run.steps[0].tree)


def test_nothing_lands_before_the_target_is_known() -> None:
    assert landing_of(replace(a_unit(1), tip=None)) is None


def test_nothing_lands_while_a_landing_is_in_flight_or_a_move_of_the_target_waits() -> None:
    queue = a_unit(2, SQUASHES)
    assert landing_of(in_flight(queue).value()) is None
    assert landing_of(replace(queue, kept_move=KeptMove(ELSEWHERE, (), rewritten=False))) is None


@pytest.mark.parametrize(
    ("wait", "lands"), [(None, True), (SECOND, False), (timedelta(0), True), (-SECOND, True)]
)
def test_a_landing_that_was_put_off_waits_for_its_time(wait: timedelta | None, lands: bool) -> None:
    queue = replace(a_unit(1), land_after=None if wait is None else START + wait)
    assert (landing_of(queue) is not None) is lands


def a_hold(scope: HoldScope) -> Hold:
    return Hold("h1", HoldReason.FREEZE, scope, SYSTEM, "wait", START)


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ({}, True),
        ({"state": QueueState.DRAINING}, True),
        ({"state": QueueState.PAUSED}, False),
        ({"holds": (a_hold(HoldScope.START),)}, True),
        ({"holds": (a_hold(HoldScope.LAND),)}, False),
        ({"required": None}, False),
        ({"required": RequiredSet()}, False),
    ],
    ids=["running", "draining", "paused", "starts held", "landings held", "unread", "no source"],
)
def test_the_queue_lands_while_it_runs_is_not_held_and_knows_what_is_required(
    changes: dict[str, object], is_open: bool
) -> None:
    queue = replace(a_unit(1), **changes)  # type: ignore[arg-type]
    assert landing.is_open(a_draft(queue)) is is_open
    assert (landing_of(queue) is not None) is is_open


def test_a_run_stands_while_it_is_there_and_its_base_holds() -> None:
    queue = a_unit(1)
    run = the_run(queue)
    assert landing.stands(queue, run.id, START)
    assert not landing.stands(queue, "another", START)
    foreign = LandedStep(0, run.base_tip.sha, ELSEWHERE.sha, ELSEWHERE.tree)
    moved = replace(queue, tip=ELSEWHERE, landed=(*queue.landed, foreign))
    assert not landing.stands(moved, run.id, START)


# What lands next.


@pytest.mark.parametrize(
    "changes", [{"unmet": (Reason.DRAFT,)}, {"cancel": Reason.USER_REQUESTED}], ids=str
)
def test_a_unit_lands_only_if_each_of_its_entries_may(changes: dict[str, object]) -> None:
    assert landing_of(a_unit(2)) is not None
    assert landing_of(with_entry(a_unit(2), 2, **changes)) is None


def test_a_run_whose_checks_are_not_green_any_more_does_not_land() -> None:
    red = (a_check("unit", CheckOutcome.FAILED),)
    assert landing_of(with_run(a_unit(1), checks=red, failed_at=START)) is None


def test_no_entry_of_the_base_is_left_behind() -> None:
    queue = a_unit(2, below=1)
    behind = with_entry(queue, 1, run=None, verified_by=None, state=EntryState.PENDING, rank=9**9)
    assert landing_of(behind) is None
    left = replace(behind, entries={2: behind.entries[2]})
    action = landing_of(left)
    assert action is not None
    assert [step.position for step in action.steps] == [2]


def test_a_unit_that_has_begun_to_land_goes_on_before_any_other() -> None:
    stage = Stage(QueueConfig(mode=Mode.PARALLEL, concurrency=3), manual_land=True)
    for pr, name in ((1, "a"), (2, "b"), (3, "b")):
        stage.tell(stage.submit(pr, targets=targets.of([name])))
    first, unit = stage.run(1), stage.run(3)
    passed = {"status": RunStatus.SUCCEEDED, "checks": (a_check("unit", CheckOutcome.PASSED),)}
    unit = replace(unit, entries=(*unit.base, *unit.entries), base=(), **passed)  # type: ignore[arg-type]
    first = replace(first, **passed)  # type: ignore[arg-type]
    of_run = {1: first.id, 2: unit.id, 3: unit.id}
    entries = {
        pr: replace(entry, state=EntryState.TESTS_PASSED, run=of_run[pr], verified_by=of_run[pr])
        for pr, entry in stage.queue.entries.items()
    }
    runs = {first.id: first, unit.id: unit}
    queue = replace(stage.queue, entries=entries, runs=runs)
    action = landing_of(replace(queue, landed=()))
    assert action is not None
    assert action.run == first.id
    step = unit.steps[0]
    move = LandedStep(2, unit.base_tip.sha, step.commit, step.tree, targets.of(["b"]), run=unit.id)
    begun = replace(
        queue,
        tip=Tip(step.commit, step.tree),
        landed=(*queue.landed, move),
        entries={pr: entry for pr, entry in entries.items() if pr != 2},
    )
    action = landing_of(begun)
    assert action is not None
    assert (action.run, [each.pr for each in action.steps]) == (unit.id, [3])


def test_a_member_of_a_stack_waits_until_all_below_it_have_landed() -> None:
    queue = a_stack(2, under=(9,))
    assert landing_of(queue) is None
    assert landing_of(replace(queue, landed=(*queue.landed, BELOW))) is not None


# How it lands.


def test_one_merge_call_lands_the_members_of_a_stack() -> None:
    assert landed_at_once(a_stack()) == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"config": QueueConfig(merge_method=SQUASHES, commit_title="{{ title }}")},
        {"config": QueueConfig(merge_method=SQUASHES, commit_body="{{ body }}")},
        {"advance_refused_at": START},
        {"tip": ELSEWHERE},
    ],
)
def test_members_of_a_stack_land_one_by_one_where_one_call_would_not_do(
    changes: dict[str, object],
) -> None:
    assert landed_at_once(replace(a_stack(), **changes)) == [1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes", [{"blockers": (Blocker(BlockerCode.STACKED, "2"),)}, {"in_stack": False}]
)
def test_pull_requests_of_no_one_stack_land_one_by_one(changes: dict[str, object]) -> None:
    queue = a_stack(3)
    facts = replace(queue.entries[3].facts, **changes)  # type: ignore[arg-type]
    assert landed_at_once(with_entry(queue, 3, facts=facts)) == [1]


@pytest.mark.parametrize(
    ("method", "kind", "mode"),
    [
        (MERGES, RunKind.MAIN, LandMode.CAS),
        (MERGES, RunKind.DIRECT, LandMode.CALL),
        (SQUASHES, RunKind.MAIN, LandMode.CALL),
        (MergeMethod.REBASE, RunKind.MAIN, LandMode.CALL),
    ],
)
def test_only_merge_commits_of_a_test_branch_become_the_branch_themselves(
    method: MergeMethod, kind: RunKind, mode: LandMode
) -> None:
    action = landing_of(with_run(a_unit(1, method), kind=kind))
    assert action is not None
    assert action.mode is mode


@pytest.mark.parametrize(
    "changes",
    [{"in_stack": True}, {"blockers": (Blocker(BlockerCode.STACKED, "9"),)}],
)
def test_a_member_of_a_stack_never_becomes_the_branch_itself(changes: dict[str, object]) -> None:
    queue = a_unit(1)
    facts = replace(queue.entries[1].facts, **changes)  # type: ignore[arg-type]
    action = landing_of(replace(with_entry(queue, 1, facts=facts), landed=(BELOW, *queue.landed)))
    assert action is not None
    assert action.mode is LandMode.CALL


@pytest.mark.parametrize(
    ("ago", "mode"),
    [
        (landing.ADVANCE_PAUSE - SECOND, LandMode.CALL),
        (landing.ADVANCE_PAUSE, LandMode.CAS),
    ],
)
def test_after_a_refused_advance_the_merge_call_is_used_for_a_while(
    ago: timedelta, mode: LandMode
) -> None:
    action = landing_of(replace(a_unit(1), advance_refused_at=START - ago))
    assert action is not None
    assert action.mode is mode


def test_another_tip_with_the_tested_tree_takes_the_merge_call() -> None:
    queue = a_unit(1)
    tip = Tip(ELSEWHERE.sha, the_run(queue).base_tip.tree)
    action = landing_of(replace(queue, tip=tip))
    assert action is not None
    assert (action.mode, action.proof) == (LandMode.CALL, Proof.EXACT_TREE)


def test_beside_others_that_landed_only_the_same_change_can_be_shown() -> None:
    action = landing_of(replace(a_unit(1, SQUASHES), tip=ELSEWHERE))
    assert action is not None
    assert action.proof is Proof.SAME_CHANGE


def test_the_rest_of_a_unit_becomes_the_branch_if_the_tip_is_the_commit_below_it() -> None:
    queue = a_unit(2, below=1)
    run = the_run(queue)
    step = run.steps[0]
    move = LandedStep(1, run.base_tip.sha, step.commit, step.tree)
    landed = replace(
        queue,
        tip=Tip(step.commit, step.tree),
        landed=(*queue.landed, move),
        entries={2: queue.entries[2]},
    )
    action = landing_of(landed)
    assert action is not None
    assert (action.mode, [each.position for each in action.steps]) == (LandMode.CAS, [2])
    assert action.steps[0].parent_tree == step.tree


def test_a_head_that_brings_nothing_parts_a_unit() -> None:
    action = landing_of(bringing_nothing(a_unit(3), 2))
    assert action is not None
    assert (action.mode, [step.pr for step in action.steps]) == (LandMode.CALL, [1])


def test_what_is_in_the_target_already_ends_without_a_landing() -> None:
    for queue in (with_run(a_unit(1), contained=True), bringing_nothing(a_unit(2), 1)):
        draft = a_draft(queue)
        landing.land(draft)
        assert not [action for action in draft.actions if isinstance(action, Land)]
        (final,) = draft.finished_entries.values()
        assert (final.pr, final.state) == (1, EntryState.MERGED)
        assert final.reason is Reason.ALREADY_CONTAINED


# It has landed.


def test_each_position_that_landed_is_the_new_tip_and_ends_its_entry() -> None:
    draft = in_flight(a_unit(2))
    run = the_run(draft.queue)
    landing.landed(draft, answer(run, 1))
    assert draft.queue.tip == Tip(run.steps[0].commit, run.steps[0].tree)
    assert TipMoved(run.steps[0].commit, landed=True, adopted=False) in events(draft)
    assert draft.queue.landing is not None
    assert draft.queue.landing.positions == (2,)
    assert (sorted(draft.entries), list(draft.runs)) == ([2], [run.id])
    landing.landed(draft, answer(run, 2))
    after = draft.value()
    assert (after.landing, after.entries, after.runs) == (None, {}, {})
    assert {final.reason for final in draft.finished_entries.values()} == {Reason.LANDED}


def test_a_direct_merge_lands_directly() -> None:
    draft = in_flight(with_run(a_unit(1), kind=RunKind.DIRECT))
    landing.landed(draft, answer(the_run(draft.queue), 1))
    (final,) = draft.finished_entries.values()
    assert final.reason is Reason.LANDED_DIRECTLY


def test_another_tree_than_was_tested_lands_only_beside_others() -> None:
    draft = in_flight(a_unit(1))
    other = replace(answer(the_run(draft.queue), 1), tree=ELSEWHERE.tree)
    with pytest.raises(InvariantBroken):
        landing.landed(draft, other)
    beside = in_flight(replace(a_unit(1, SQUASHES), tip=ELSEWHERE))
    landing.landed(beside, other)
    assert beside.entries == {}


def a_move_waits(draft: Draft) -> Draft:
    """The draft; others have moved the target since the landing was asked for."""
    draft.put_queue(replace(draft.queue, kept_move=KeptMove(ELSEWHERE, (), rewritten=False)))
    return draft


def test_a_move_of_the_target_is_taken_in_once_all_positions_have_landed() -> None:
    draft = a_move_waits(in_flight(a_unit(2)))
    run = the_run(draft.queue)
    landing.landed(draft, answer(run, 1))
    assert draft.queue.kept_move is not None
    landing.landed(draft, answer(run, 2))
    after = draft.value()
    assert (after.kept_move, after.tip) == (None, ELSEWHERE)


def one_landing() -> Draft:
    """A landing in flight."""
    return in_flight(a_unit(1))


def no_landing() -> Draft:
    """A run that has passed, and no landing."""
    return a_draft(a_unit(1))


def two_runs() -> Draft:
    """A landing in flight, and a second run with the same steps."""
    queue = a_unit(1)
    run = the_run(queue)
    draft = in_flight(queue)
    draft.start(replace(run, id="second"))
    return draft


@pytest.mark.parametrize(
    ("make_draft", "run_id"),
    [(one_landing, "unknown"), (no_landing, None), (two_runs, "second")],
    ids=["of no run", "without a landing", "of another run"],
)
def test_an_answer_to_another_landing_than_the_one_in_flight_changes_nothing(
    make_draft: Callable[[], Draft], run_id: str | None
) -> None:
    draft = make_draft()
    run = next(iter(draft.runs.values()))
    before, revision = draft.queue, draft.revision
    run_id = run_id or run.id
    landing.landed(draft, replace(answer(run, 1), run=run_id))
    landing_stops.stopped(draft, LandingStopped(run_id, 1, LandingStopCode.RETRY, "no"))
    landing.advance_refused(draft, AdvanceRefused(run_id, "no"))
    assert draft.queue is before
    assert draft.revision == revision


def test_a_position_that_landed_before_is_not_recorded_again() -> None:
    draft = in_flight(a_unit(2))
    run = the_run(draft.queue)
    landing.landed(draft, answer(run, 1))
    before = draft.queue
    landing.landed(draft, answer(run, 1))
    assert draft.queue is before


# It was refused.


def stop(
    queue: MergeQueue, code: LandingStopCode, text: str = "no", blockers: tuple[Blocker, ...] = ()
) -> Draft:
    """The draft after the landing of the first position was refused."""
    draft = in_flight(queue)
    run = the_run(draft.queue)
    landing_stops.stopped(draft, LandingStopped(run.id, 1, code, text, blockers))
    assert draft.queue.landing is None
    return draft


def the_entry(draft: Draft) -> Entry:
    """The only entry, also if it has left."""
    (entry,) = (*draft.entries.values(), *draft.finished_entries.values())
    return entry


def test_a_refused_advance_is_noted_with_its_position() -> None:
    queue = a_unit(2, below=1)
    queue = replace(queue, entries={2: queue.entries[2]}, tip=ELSEWHERE)
    draft = in_flight(queue)
    run = the_run(draft.queue)
    landing.advance_refused(draft, AdvanceRefused(run.id, "no such update"))
    assert draft.queue.advance_refused_at == START
    assert draft.queue.landing is None
    assert LandingHalted(run.id, 2, "advance_refused", "no such update") in events(draft)


def test_a_refusal_ends_a_landing_whose_entry_has_left() -> None:
    draft = in_flight(a_unit(2))
    run = the_run(draft.queue)
    landing.landed(draft, answer(run, 1))
    landing_stops.stopped(draft, LandingStopped(run.id, 1, LandingStopCode.RETRY, "no"))
    assert (draft.queue.landing, draft.queue.land_after) == (None, None)


@pytest.mark.parametrize(
    ("cancel", "reacts"),
    [(None, True), (Reason.RESTARTED_BY_USER, True), (Reason.USER_REQUESTED, False)],
)
def test_a_refusal_is_answered_unless_the_entry_leaves_anyway(
    cancel: Reason | None, reacts: bool
) -> None:
    draft = in_flight(a_unit(1))
    draft.put(replace(draft.entries[1], cancel=cancel))
    run = the_run(draft.queue)
    landing_stops.stopped(draft, LandingStopped(run.id, 1, LandingStopCode.RETRY, "no"))
    assert (draft.queue.land_after is not None) is reacts
    assert (draft.entries[1].stops == {"retry": 1}) is reacts


def test_a_passing_refusal_is_tried_again_once_and_then_sets_the_entry_aside() -> None:
    first = stop(a_unit(1), LandingStopCode.RETRY)
    assert first.queue.land_after == START + landing_stops.LAND_AGAIN
    assert first.entries[1].state is EntryState.TESTS_PASSED
    again = with_entry(a_unit(1), 1, stops={"retry": 1, "stale": 2})
    second = stop(again, LandingStopCode.RETRY)
    entry = second.entries[1]
    assert (entry.state, entry.reason) == (EntryState.NOT_READY, Reason.MERGE_REFUSED)
    assert entry.stops == {"stale": 2}


LINT = RequiredName("lint")


def test_a_check_that_became_required_meanwhile_is_waited_for() -> None:
    draft = in_flight(a_unit(1))
    run = the_run(draft.queue)
    draft.put_run(replace(run, required=(*REQUIRED.names, LINT)))
    landing_stops.stopped(draft, LandingStopped(run.id, 1, LandingStopCode.CHECKS_MISSING, "no"))
    assert draft.queue.land_after == START + landing_stops.LAND_AGAIN
    assert draft.entries[1].state is EntryState.TESTS_PASSED


@pytest.mark.parametrize(
    "borrowed", [{"reused_from": "r0"}, {"kind": RunKind.DIRECT}], ids=["reused", "direct"]
)
def test_a_borrowed_result_is_replaced_by_a_real_run_twice(borrowed: dict[str, object]) -> None:
    code = LandingStopCode.CHECKS_MISSING
    for earlier in (0, 1):
        queue = with_entry(a_unit(1), 1, stops={code.value: earlier})
        entry = stop(with_run(queue, **borrowed), code).entries[1]
        assert (entry.state, entry.reason) == (EntryState.PENDING, Reason.RETRY_ON_NEW_BRANCH)
        assert entry.fresh
    queue = with_entry(a_unit(1), 1, stops={code.value: landing_stops.BORROWED_TRIES})
    entry = stop(with_run(queue, **borrowed), code).entries[1]
    assert (entry.state, entry.reason) == (EntryState.NOT_READY, Reason.CHECK_MISSING)


def test_a_result_of_its_own_is_not_replaced() -> None:
    entry = stop(a_unit(1), LandingStopCode.CHECKS_MISSING).entries[1]
    assert (entry.state, entry.reason) == (EntryState.NOT_READY, Reason.CHECK_MISSING)
    assert not entry.fresh


@pytest.mark.parametrize(("text", "shown"), [("it is closed", "it is closed"), ("", "closed")])
def test_a_refusal_that_ends_the_submission_shows_its_words(text: str, shown: str) -> None:
    final = the_entry(stop(a_unit(1), LandingStopCode.CLOSED, text))
    assert (final.state, final.reason) == (EntryState.CANCELLED, Reason.PR_CLOSED)
    assert final.detail.text == shown


@pytest.mark.parametrize(
    ("code", "is_tried_again"),
    [
        (LandingStopCode.RULE_DENIED, True),
        (LandingStopCode.STRICT, True),
        (LandingStopCode.METHOD_DENIED, True),
        (LandingStopCode.PROVIDER_QUEUE, False),
        (LandingStopCode.NOT_PERMITTED, False),
    ],
)
def test_a_refusal_by_a_rule_of_the_branch_is_tried_again_a_lost_right_waits(
    code: LandingStopCode, is_tried_again: bool
) -> None:
    (hold,) = stop(a_unit(1), code, "the rule says no").queue.holds
    assert hold.until == (START + holds.TRY_AGAIN if is_tried_again else None)
    assert hold.text == "the rule says no"
    (bare,) = stop(a_unit(1), code, "").queue.holds
    assert bare.text == code.value


def refused_before(times: int, queue: MergeQueue) -> MergeQueue:
    return with_entry(queue, 1, refusals=times)


def test_an_entry_that_was_set_aside_too_often_leaves_at_the_next_refusal() -> None:
    last = landing_stops.REFUSALS_MAX - 1
    entry = stop(refused_before(last, a_unit(1)), LandingStopCode.PR_REFUSED).entries[1]
    assert (entry.state, entry.refusals) == (EntryState.NOT_READY, landing_stops.REFUSALS_MAX)
    assert entry.refusal is not None
    assert entry.refusal.until == START + landing_stops.REFUSED_FOR[last]
    draft = stop(refused_before(landing_stops.REFUSALS_MAX, a_unit(1)), LandingStopCode.PR_REFUSED)
    final = the_entry(draft)
    assert (final.state, final.reason) == (EntryState.FAILED, Reason.MERGE_REFUSED)


def lost_a_review(times: int) -> Draft:
    """Refused for its own sake, and the facts read with the refusal say why."""
    draft = in_flight(refused_before(times, a_unit(1)))
    entry = draft.entries[1]
    facts = replace(entry.facts, blockers=(Blocker(BlockerCode.REVIEW_REQUIRED),))
    draft.put(replace(entry, facts=facts))
    run = the_run(draft.queue)
    landing_stops.stopped(draft, LandingStopped(run.id, 1, LandingStopCode.PR_REFUSED, "no"))
    return draft


def test_a_refusal_that_the_facts_explain_waits_for_the_facts_as_often_as_any_other() -> None:
    entry = the_entry(lost_a_review(landing_stops.REFUSALS_MAX - 1))
    assert (entry.state, entry.reason) == (EntryState.NOT_READY, Reason.REVIEW_REQUIRED)
    assert (entry.refusal, entry.refusals) == (None, landing_stops.REFUSALS_MAX)
    final = the_entry(lost_a_review(landing_stops.REFUSALS_MAX))
    assert (final.state, final.reason) == (EntryState.FAILED, Reason.MERGE_REFUSED)


@pytest.mark.parametrize(
    ("code", "text", "blockers", "reason", "name"),
    [
        (LandingStopCode.PR_REFUSED, "so be it", (), Reason.MERGE_REFUSED, "so be it"),
        (LandingStopCode.PR_REFUSED, "", (), Reason.MERGE_REFUSED, "pr_refused"),
        (LandingStopCode.CHECKS_MISSING, "so be it", (), Reason.CHECK_MISSING, ""),
        (
            LandingStopCode.PR_REFUSED,
            "so be it",
            (Blocker(BlockerCode.CLOSED), Blocker(BlockerCode.CHECK_FAILING, "lint")),
            Reason.CHECK_FAILING,
            "lint",
        ),
        (
            LandingStopCode.PR_REFUSED,
            "so be it",
            (Blocker(BlockerCode.UNSIGNED),),
            Reason.UNSIGNED,
            "",
        ),
    ],
)
def test_a_refusal_is_named_by_the_first_condition_that_it_tells_of_or_by_its_words(
    code: LandingStopCode, text: str, blockers: tuple[Blocker, ...], reason: Reason, name: str
) -> None:
    entry = stop(a_unit(1), code, text, blockers).entries[1]
    assert entry.refusal is not None
    assert (entry.reason, entry.refusal.reason, entry.refusal.name) == (reason, reason, name)


@pytest.mark.parametrize(
    ("pr", "words", "ago", "is_held"),
    [
        (2, "the moon is full", SECOND, True),
        (2, "the moon is full", landing_stops.UNEXPLAINED_FOR - SECOND, True),
        (2, "the moon is full", landing_stops.UNEXPLAINED_FOR, False),
        (1, "the moon is full", SECOND, False),
        (2, "the moon is new", SECOND, False),
    ],
)
def test_a_refusal_that_nothing_explains_holds_the_queue_if_another_met_it_within_the_hour(
    pr: int, words: str, ago: timedelta, is_held: bool
) -> None:
    known = Unexplained(pr, words, START - ago)
    queue = replace(a_unit(1), unexplained=(known,))
    draft = stop(queue, LandingStopCode.OTHER, "The moon is full.")
    reasons = [hold.reason for hold in draft.queue.holds]
    assert reasons == ([HoldReason.RULE_DENIED] if is_held else [])
    assert draft.queue.unexplained[-1] == Unexplained(1, "the moon is full", START)
    assert the_entry(draft).reason is Reason.MERGE_REFUSED
