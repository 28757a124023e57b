"""Whether a pull request may be tested and landed, as values: what is open, and what follows."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.mergequeue.engine import inputs, targets
from service.mergequeue.engine.applying import reports
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import Entry, Refusal, Run, Tip
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.state import readiness
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunPhase
from service.vocabulary import (
    SYSTEM,
    Blocker,
    BlockerCode,
    CheckOutcome,
    Mergeability,
    MergeMethod,
    PullRequestState,
    Sha,
)
from tests.mergequeue.playing import SEEN
from tests.mergequeue.stage import ALICE, START, Stage, a_check, a_queue, facts_of

REVIEW = (Blocker(BlockerCode.REVIEW_REQUIRED),)
STACKED = (Blocker(BlockerCode.STACKED, "7"),)
MISSING = (Blocker(BlockerCode.CHECK_MISSING, "lint"),)
SECOND = timedelta(seconds=1)
AN_HOUR_AGO = START - timedelta(hours=1)
HEAD, OTHER_HEAD = Sha("a" * 40), Sha("b" * 40)


def an_entry(pr: int = 1, **changes: Any) -> Entry:
    """A placed entry that is ready and waits for its tests, unless changed."""
    facts = facts_of(pr)
    entry = Entry(
        id=f"entry-{pr}",
        pr=pr,
        facts=facts,
        head=facts.head,
        submitted_by=ALICE,
        submitted_at=AN_HOUR_AGO,
        priority=100,
        no_batch=False,
        state=EntryState.PENDING,
        state_since=AN_HOUR_AGO,
        reason=Reason.NOW_READY,
        seq=pr,
        rank=pr,
    )
    return replace(entry, **changes)


def set_aside(pr: int = 1, **changes: Any) -> Entry:
    """An entry that waits beside the line and has nothing open, unless changed."""
    aside = an_entry(pr, state=EntryState.NOT_READY, reason=Reason.REVIEW_REQUIRED, rank=None)
    return replace(aside, **changes)


def with_facts(entry: Entry, **changes: Any) -> Entry:
    return replace(entry, facts=replace(entry.facts, **changes))


def a_draft(*entries: Entry, run: Run | None = None, **settings: Any) -> Draft:
    """A draft of a queue with these entries."""
    queue = a_queue(QueueConfig(**settings))
    queue = replace(queue, entries={entry.pr: entry for entry in entries})
    return Draft(queue if run is None else replace(queue, runs={run.id: run}), START, SYSTEM)


def after(*entries: Entry, touched: bool = True, **settings: Any) -> Draft:
    """The draft once readiness is up to date, after facts of all entries changed or of none."""
    draft = a_draft(*entries, **settings)
    draft.touched.update(entry.pr for entry in entries if touched)
    readiness.ready(draft)
    return draft


def a_run(phase: RunPhase = RunPhase.TESTING) -> Run:
    """A run that tests pull request 1."""
    stage = Stage(QueueConfig())
    stage.tell(stage.submit(1))
    run = stage.run(1)
    member = replace(run.entries[0], entry=an_entry().id)
    return replace(run, entries=(member,), phase=phase)


def standing(draft: Draft, pr: int = 1) -> tuple[EntryState, Reason]:
    """Where an entry stands and why, also of one that has left."""
    gone = {entry.pr: entry for entry in draft.finished_entries.values()}
    entry = draft.entries.get(pr) or gone[pr]
    return entry.state, entry.reason


# What facts leave open.


@pytest.mark.parametrize(
    ("changes", "unmet"),
    [
        ({}, ()),
        ({"draft": True}, (Reason.DRAFT,)),
        ({"base": "next"}, (Reason.BASE_MISMATCH,)),
        ({"base": "below", "blockers": STACKED}, (Reason.STACKED,)),
        ({"mergeability": Mergeability.NOT_MERGEABLE}, (Reason.CONFLICT_TARGET,)),
        ({"mergeability": Mergeability.IN_PROGRESS}, (Reason.MERGEABILITY_UNKNOWN,)),
        ({"mergeability": Mergeability.UNSPECIFIED}, (Reason.MERGEABILITY_UNKNOWN,)),
        ({"is_fork": True}, (Reason.FORK_NEEDS_PERSON,)),
        ({"is_fork": True, "authorized_head": OTHER_HEAD}, (Reason.FORK_NEEDS_PERSON,)),
        ({"is_fork": True, "authorized_head": facts_of(1).head}, ()),
        ({"authorized_head": OTHER_HEAD}, ()),
        ({"blockers": REVIEW}, (Reason.REVIEW_REQUIRED,)),
        ({"blockers": MISSING, "draft": True}, (Reason.DRAFT, Reason.CHECK_MISSING)),
    ],
)
def test_a_pull_request_is_ready_if_none_of_its_facts_stands_against_it(
    changes: dict[str, Any], unmet: tuple[Reason, ...]
) -> None:
    facts = replace(facts_of(1), **changes)
    assert readiness.unmet_of(facts, "main") == unmet


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (BlockerCode.OTHER, readiness.WORKFLOWS, Reason.WORKFLOWS_PERMISSION_MISSING),
        (BlockerCode.OTHER, "a rule", Reason.RULE_UNMET),
        (BlockerCode.UNSIGNED, None, Reason.UNSIGNED),
        (BlockerCode.CLOSED, None, None),
    ],
)
def test_a_blocker_leaves_its_own_condition_open(
    code: BlockerCode, name: str | None, reason: Reason | None
) -> None:
    assert readiness.reason_of(Blocker(code, name)) is reason


ENTERED = replace(facts_of(1), head=HEAD)
FORK = replace(ENTERED, is_fork=True, authorized_head=HEAD)


@pytest.mark.parametrize(
    ("before", "changes", "reason"),
    [
        (ENTERED, {}, None),
        (ENTERED, {"state": PullRequestState.MERGED}, Reason.MERGED_BY_HAND),
        (
            ENTERED,
            {"state": PullRequestState.MERGED, "base": "next"},
            Reason.MERGED_INTO_OTHER_BRANCH,
        ),
        (
            ENTERED,
            {"state": PullRequestState.MERGED, "landed_by_us": True},
            Reason.LANDED_UNRECORDED,
        ),
        (
            ENTERED,
            {"state": PullRequestState.MERGED, "landed_by_us": True, "base": "next"},
            Reason.MERGED_INTO_OTHER_BRANCH,
        ),
        (ENTERED, {"state": PullRequestState.CLOSED}, Reason.PR_CLOSED),
        # Its tested commits have landed as they are, and our App closed it.
        (
            ENTERED,
            {"state": PullRequestState.CLOSED, "landed_by_us": True},
            Reason.LANDED_UNRECORDED,
        ),
        (ENTERED, {"head": OTHER_HEAD}, Reason.HEAD_CHANGED),
        (ENTERED, {"base": "next"}, Reason.BASE_CHANGED),
        (ENTERED, {"draft": True}, Reason.CONVERTED_TO_DRAFT),
        # Submitted with another base or as a draft: it waits to become ready.
        (replace(ENTERED, base="next"), {"base": "next"}, None),
        (replace(ENTERED, base="next"), {}, None),
        (replace(ENTERED, draft=True), {"draft": True}, None),
        (replace(ENTERED, draft=True), {}, None),
        (FORK, {"is_fork": True, "authorized_head": HEAD}, None),
        (FORK, {"is_fork": True}, Reason.AUTHORIZATION_LOST),
        (FORK, {"is_fork": True, "authorized_head": OTHER_HEAD}, Reason.AUTHORIZATION_LOST),
        # It was never authorized, or is no fork any more.
        (replace(FORK, authorized_head=None), {"is_fork": True}, None),
        (replace(FORK, authorized_head=OTHER_HEAD), {"is_fork": True}, None),
        (FORK, {"is_fork": False}, None),
    ],
)
def test_fresh_facts_end_a_submission_only_if_they_take_away_what_it_began_with(
    before: Facts, changes: dict[str, Any], reason: Reason | None
) -> None:
    now = replace(ENTERED, **changes)
    assert readiness.leaving_of(before, now, an_entry(head=HEAD), "main") is reason


def test_a_late_read_of_the_base_that_it_had_in_a_chain_does_not_end_a_submission() -> None:
    entry = an_entry(head=HEAD, rested_on="next")
    late, other = replace(ENTERED, base="next"), replace(ENTERED, base="other")
    assert readiness.leaving_of(ENTERED, late, entry, "main") is None
    assert readiness.leaving_of(ENTERED, other, entry, "main") is Reason.BASE_CHANGED


def test_the_base_that_a_pull_request_had_before_the_target_is_remembered() -> None:
    chained = with_facts(an_entry(), base="next")
    draft = a_draft(chained)
    reports.facts_changed(draft, inputs.FactsChanged(replace(chained.facts, base="main")))
    assert draft.entries[1].rested_on == "next"


# What is open for an entry as it stands.


@pytest.mark.parametrize(
    ("method", "unmet"),
    [
        (MergeMethod.MERGE_COMMIT, ()),
        (MergeMethod.SQUASH, (Reason.CHECK_MISSING,)),
        (MergeMethod.REBASE, (Reason.CHECK_MISSING,)),
    ],
)
def test_a_check_missing_on_the_head_counts_unless_the_tested_commits_become_the_branch(
    method: MergeMethod, unmet: tuple[Reason, ...]
) -> None:
    entry = with_facts(an_entry(), blockers=MISSING)
    assert readiness.unmet_now(a_draft(entry, merge_method=method), entry) == unmet


def test_not_knowing_keeps_an_entry_from_becoming_ready_and_takes_no_readiness_away() -> None:
    aside = with_facts(set_aside(), mergeability=Mergeability.IN_PROGRESS)
    assert readiness.unmet_now(a_draft(aside), aside) == (Reason.MERGEABILITY_UNKNOWN,)
    pending = replace(aside, state=EntryState.PENDING)
    assert readiness.unmet_now(a_draft(pending), pending) == ()


@pytest.mark.parametrize(
    ("phase", "unmet"),
    [
        (RunPhase.TESTING, ()),
        (RunPhase.BUILDING, (Reason.CONFLICT_TARGET,)),
        (None, (Reason.CONFLICT_TARGET,)),
    ],
)
def test_a_run_that_was_built_cleanly_knows_better_than_a_reported_conflict(
    phase: RunPhase | None, unmet: tuple[Reason, ...]
) -> None:
    run = a_run(phase) if phase is not None else None
    state = EntryState.PENDING if run is None else EntryState.TESTING
    entry = an_entry(state=state, run=None if run is None else run.id)
    entry = with_facts(entry, mergeability=Mergeability.NOT_MERGEABLE)
    assert readiness.unmet_now(a_draft(entry, run=run), entry) == unmet


def test_facts_a_bar_and_a_refusal_are_open_together() -> None:
    refusal = Refusal(Reason.MERGE_REFUSED, "no", START)
    entry = set_aside(barred=(Reason.NO_EVIDENCE,), refusal=refusal)
    entry = with_facts(entry, draft=True)
    both = (Reason.DRAFT, Reason.NO_EVIDENCE)
    assert readiness.unmet_now(a_draft(entry), entry) == (*both, Reason.MERGE_REFUSED)
    assert readiness.unmet_now(a_draft(entry), replace(entry, refusal=None)) == both


def test_a_time_that_is_to_come_is_open_beside_the_facts() -> None:
    entry = with_facts(set_aside(), draft=True, seen=replace(SEEN, not_before=START + SECOND))
    assert set(readiness.unmet_now(a_draft(entry), entry)) == {Reason.DRAFT, Reason.NOT_BEFORE}


@pytest.mark.parametrize(
    ("mode", "names", "unmet"),
    [
        (Mode.PARALLEL, None, (Reason.IMPACTED_TARGETS_MISSING,)),
        (Mode.PARALLEL, ["a"], ()),
        (Mode.SINGLE, None, ()),
        (Mode.SINGLE, ["a"], ()),
    ],
)
def test_only_lanes_need_to_know_what_a_pull_request_touches(
    mode: Mode, names: list[str] | None, unmet: tuple[Reason, ...]
) -> None:
    entry = an_entry(targets=None if names is None else targets.of(names))
    assert readiness.unmet_now(a_draft(entry, mode=mode), entry) == unmet


def test_an_entry_may_land_if_it_counts_is_ready_and_nobody_took_it_back() -> None:
    assert readiness.may_land(an_entry())
    assert not readiness.may_land(an_entry(held_by=(2,)))
    assert not readiness.may_land(an_entry(unmet=(Reason.DRAFT,)))
    assert not readiness.may_land(an_entry(cancel=Reason.USER_REQUESTED))


# What follows from it.


WAITS = (Blocker(BlockerCode.CHECK_PENDING, "lint"),)
UNREADY = with_facts(an_entry(unmet=(Reason.CHECK_PENDING,)), blockers=WAITS)
A_MINUTE_AGO = START - timedelta(minutes=1)


def test_a_placed_entry_that_is_unready_keeps_its_place_for_a_while_and_says_so() -> None:
    draft = after(with_facts(an_entry(), blockers=WAITS))
    entry = draft.entries[1]
    assert (entry.state, entry.rank) == (EntryState.PENDING, 1)
    assert (entry.unmet, entry.unready_since) == ((Reason.CHECK_PENDING,), START)
    assert draft.actions == [Tell(1, entry.id, entry.state, entry.reason)]


def test_the_clock_of_an_unready_entry_runs_on_until_it_is_ready() -> None:
    unready = replace(UNREADY, unready_since=A_MINUTE_AGO)
    draft = after(unready)
    assert draft.entries[1] == unready
    assert draft.actions == []
    failing = (*WAITS, Blocker(BlockerCode.CHECK_FAILING, "docs"))
    more = after(with_facts(unready, blockers=failing)).entries[1]
    assert set(more.unmet) == {Reason.CHECK_PENDING, Reason.CHECK_FAILING}
    assert more.unready_since == A_MINUTE_AGO
    ready = after(with_facts(unready, blockers=())).entries[1]
    assert (ready.unmet, ready.unready_since) == ((), None)


def test_an_unready_entry_that_has_no_clock_gets_one() -> None:
    assert after(UNREADY).entries[1].unready_since == START


def test_facts_that_change_nothing_are_not_told() -> None:
    draft = after(an_entry())
    assert draft.entries[1] == an_entry()
    assert draft.actions == []


def test_an_entry_without_a_place_waits_for_its_place_while_it_is_ready() -> None:
    waiting = an_entry(rank=None)
    assert standing(after(waiting)) == (EntryState.PENDING, Reason.NOW_READY)
    unready = after(with_facts(waiting, blockers=WAITS))
    assert standing(unready) == (EntryState.NOT_READY, Reason.CHECK_PENDING)


def test_an_entry_that_is_set_aside_has_no_clock() -> None:
    draft = after(with_facts(set_aside(), blockers=WAITS))
    entry = draft.entries[1]
    assert (entry.unmet, entry.unready_since) == ((Reason.CHECK_PENDING,), None)


@pytest.mark.parametrize(
    ("grace", "state"),
    [
        (readiness.GRACE - SECOND, EntryState.PENDING),
        (readiness.GRACE, EntryState.NOT_READY),
    ],
)
def test_an_entry_that_is_unready_too_long_loses_its_place(
    grace: timedelta, state: EntryState
) -> None:
    draft = after(replace(UNREADY, unready_since=START - grace), touched=False)
    assert draft.entries[1].state is state


def test_once_its_tests_have_passed_an_unready_entry_keeps_the_others_waiting_less_long() -> None:
    assert readiness.grace_of(an_entry()) == readiness.GRACE
    passed = an_entry(state=EntryState.TESTS_PASSED)
    assert readiness.grace_of(passed) == readiness.GRACE_PASSED


@pytest.mark.parametrize("state", [EntryState.PENDING, EntryState.TESTS_PASSED])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"blockers": REVIEW}, Reason.REVIEW_REQUIRED),
        ({"blockers": (Blocker(BlockerCode.CHANGES_REQUESTED),)}, Reason.CHANGES_REQUESTED),
        (
            {"blockers": (Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED),)},
            Reason.CONVERSATIONS_UNRESOLVED,
        ),
        ({"draft": True}, Reason.DRAFT),
        ({"is_fork": True}, Reason.FORK_NEEDS_PERSON),
    ],
)
def test_what_people_withdraw_leaves_the_line_at_once(
    state: EntryState, changes: dict[str, Any], reason: Reason
) -> None:
    entry = with_facts(an_entry(state=state), **changes)
    left = after(entry).entries[1]
    assert standing(after(entry)) == (EntryState.NOT_READY, reason)
    assert (left.rank, left.seq) == (None, entry.seq)


def test_a_conflict_takes_the_place_of_an_entry_at_once_unless_its_run_is_being_built() -> None:
    conflict = with_facts(an_entry(), mergeability=Mergeability.NOT_MERGEABLE)
    assert standing(after(conflict)) == (EntryState.NOT_READY, Reason.CONFLICT_TARGET)
    run = a_run(RunPhase.BUILDING)
    building = replace(conflict, state=EntryState.TESTING, run=run.id)
    draft = a_draft(building, run=run)
    draft.touched.add(1)
    readiness.ready(draft)
    assert draft.entries[1].state is EntryState.TESTING
    assert draft.entries[1].unmet == (Reason.CONFLICT_TARGET,)


def test_a_member_of_a_stack_loses_its_place_at_once_while_one_below_it_is_out() -> None:
    stacked = with_facts(an_entry(), blockers=STACKED)
    assert standing(after(stacked)) == (EntryState.NOT_READY, Reason.STACKED)


def passed_and_landing() -> Stage:
    """Pull request 1 has passed, and its landing is in flight."""
    stage = Stage(QueueConfig(), manual_land=True)
    stage.tell(stage.submit(1))
    run = stage.run(1)
    checks = (a_check("unit", CheckOutcome.PASSED),)
    stage.tell(inputs.ChecksReported(run.id, run.sha or Sha(""), checks, complete=True))
    assert stage.queue.landing is not None
    return stage


def entry_after_a_stop(stage: Stage) -> Entry:
    """The entry after its landing did not happen."""
    run_id, action = stage.lands.popitem()
    code = inputs.LandingStopCode.RETRY
    stage.tell(inputs.LandingStopped(run_id, action.steps[0].position, code, "not now"))
    return stage.queue.entries[1]


def test_an_entry_whose_landing_is_in_flight_is_not_set_aside() -> None:
    stage = passed_and_landing()
    stage.tell(inputs.FactsChanged(replace(stage.facts[1], blockers=REVIEW)))
    stage.passes(readiness.GRACE_PASSED)
    assert stage.queue.entries[1].state is EntryState.TESTS_PASSED
    assert entry_after_a_stop(stage).state is EntryState.NOT_READY


def test_new_tests_that_are_asked_for_during_a_landing_wait_for_its_end() -> None:
    stage = passed_and_landing()
    stage.tell(inputs.Restart(1, ALICE))
    assert stage.queue.entries[1].state is EntryState.TESTS_PASSED
    entry = entry_after_a_stop(stage)
    assert (entry.state, entry.cancel, entry.run) == (EntryState.TESTING, None, stage.run_id(2))


# Back into the line.


@pytest.mark.parametrize("wait", [-SECOND, timedelta(0), SECOND, None])
def test_an_entry_whose_tests_ci_did_not_run_tries_again_when_its_wait_is_over(
    wait: timedelta | None,
) -> None:
    entry = set_aside(barred=(Reason.CI_INTERRUPTED,), unmet=(Reason.CI_INTERRUPTED,))
    draft = after(replace(entry, build_after=None if wait is None else START + wait), touched=False)
    is_over = wait is not None and wait <= timedelta(0)
    state = EntryState.PENDING if is_over else EntryState.NOT_READY
    assert draft.entries[1].state is state


@pytest.mark.parametrize(
    ("until", "blockers", "is_over"),
    [
        (START + SECOND, (), False),
        (START, (), True),
        (START + SECOND, MISSING, True),
    ],
)
def test_a_refusal_is_over_in_time_or_once_the_provider_says_otherwise(
    until: datetime, blockers: tuple[Blocker, ...], is_over: bool
) -> None:
    refusal = Refusal(Reason.MERGE_REFUSED, "no", until)
    entry = set_aside(refusal=refusal, unmet=(Reason.MERGE_REFUSED,))
    entry = with_facts(entry, blockers=blockers)
    draft = after(entry, touched=False)
    assert (draft.entries[1].refusal is None) is is_over


def test_an_entry_that_is_ready_again_comes_back_in_the_order_of_its_first_readiness() -> None:
    draft = after(set_aside(1, seq=7), set_aside(2, seq=None))
    assert [standing(draft, pr) for pr in (1, 2)] == [(EntryState.PENDING, Reason.NOW_READY)] * 2
    assert [draft.entries[pr].seq for pr in (1, 2)] == [7, 1]
    assert draft.queue.next_seq == 2


def test_an_entry_that_waits_to_leave_or_is_not_ready_does_not_come_back() -> None:
    # Merged by hand, and the move of the target is not seen yet: it stays until then.
    leaves = set_aside(1, cancel=Reason.MERGED_BY_HAND, run="gone", build_after=START + SECOND)
    unready = set_aside(2, unmet=(Reason.REVIEW_REQUIRED,))
    draft = after(leaves, unready, touched=False)
    assert draft.entries[1] == leaves
    assert draft.entries[2] == unready


@pytest.mark.parametrize(
    ("hours", "waited", "changes", "is_over"),
    [
        (24, timedelta(hours=24), {}, True),
        (24, timedelta(hours=24) - SECOND, {}, False),
        (0, timedelta(days=365), {}, False),
        (24, timedelta(hours=24), {"build_after": START + SECOND}, False),
    ],
)
def test_an_entry_that_does_not_become_ready_leaves_in_the_end(
    hours: float, waited: timedelta, changes: dict[str, Any], is_over: bool
) -> None:
    entry = set_aside(unmet=(Reason.REVIEW_REQUIRED,), state_since=START - waited, **changes)
    draft = after(entry, touched=False, not_ready_timeout_hours=hours)
    left = (EntryState.CANCELLED, Reason.NOT_READY_TIMEOUT)
    assert (standing(draft) == left) is is_over
    assert (1 not in draft.entries) is is_over


# Out of the queue.


def leaving_draft(entry: Entry, landed: Sha | None = None) -> Draft:
    """A queue whose tip is this commit, and an entry in a run that is to leave."""
    run = a_run()
    entry = replace(entry, state=EntryState.TESTING, run=run.id)
    draft = a_draft(entry, run=run)
    if landed is not None:
        draft.put_queue(replace(draft.queue, tip=Tip(landed, Sha("c" * 40))))
    readiness.ready(draft)
    return draft


def test_an_entry_that_was_taken_back_leaves() -> None:
    draft = leaving_draft(an_entry(cancel=Reason.USER_REQUESTED))
    assert standing(draft) == (EntryState.CANCELLED, Reason.USER_REQUESTED)


def test_an_entry_of_which_new_tests_were_asked_begins_anew() -> None:
    draft = leaving_draft(an_entry(cancel=Reason.RESTARTED_BY_USER))
    entry = draft.entries[1]
    assert (entry.state, entry.reason) == (EntryState.PENDING, Reason.RESTARTED_BY_USER)
    assert (entry.cancel, entry.run) == (None, None)


def test_new_tests_that_were_asked_of_an_entry_without_a_run_begin_in_its_turn() -> None:
    draft = after(an_entry(cancel=Reason.RESTARTED_BY_USER))
    assert standing(draft) == (EntryState.PENDING, Reason.NOW_READY)
    assert draft.entries[1].cancel is None


MERGED = with_facts(
    an_entry(cancel=Reason.MERGED_BY_HAND), state=PullRequestState.MERGED, merged_sha=HEAD
)


@pytest.mark.parametrize(
    ("landed", "build_after", "is_seen"),
    [
        (OTHER_HEAD, START + SECOND, False),
        (OTHER_HEAD, None, False),
        (OTHER_HEAD, START, True),
        (HEAD, START + SECOND, True),
    ],
)
def test_an_entry_that_was_merged_by_hand_keeps_its_run_until_the_target_shows_it(
    landed: Sha, build_after: datetime | None, is_seen: bool
) -> None:
    draft = leaving_draft(replace(MERGED, build_after=build_after), landed)
    assert (standing(draft)[0] is EntryState.MERGED) is is_seen


def test_an_entry_that_was_merged_by_hand_without_a_run_leaves_at_once() -> None:
    assert standing(after(MERGED)) == (EntryState.MERGED, Reason.MERGED_BY_HAND)


# Conflicts with entries ahead.


@pytest.mark.parametrize(
    ("others", "is_freed"),
    [
        ((an_entry(1),), False),
        ((set_aside(1, unmet=(Reason.DRAFT,)),), True),
        ((), True),
    ],
    ids=["in the line", "set aside", "gone"],
)
def test_an_entry_waits_for_the_one_that_it_conflicts_with_while_that_one_has_a_place(
    others: tuple[Entry, ...], is_freed: bool
) -> None:
    held = an_entry(2, held_by=(1,), reason=Reason.CONFLICT_AHEAD)
    draft = after(*others, held, touched=False)
    assert (draft.entries[2].held_by == ()) is is_freed
    assert (draft.entries[2].reason is Reason.CONFLICT_CLEARED) is is_freed


def test_an_entry_that_left_and_was_submitted_again_holds_no_other_any_more() -> None:
    held = an_entry(2, held_by=(1,), reason=Reason.CONFLICT_AHEAD)
    draft = a_draft(an_entry(1, id="again"), held)
    draft.finished_entries["entry-1"] = an_entry(1)
    readiness.ready(draft)
    assert draft.entries[2].held_by == ()


def test_entries_that_are_freed_together_come_back_in_the_order_of_their_places() -> None:
    places = {2: 40, 3: 10, 4: 30, 5: 20}
    held = [an_entry(pr, rank=rank, held_by=(1,)) for pr, rank in places.items()]
    draft = after(*held, touched=False)
    told = [action.pr for action in draft.actions if isinstance(action, Tell)]
    assert told == sorted(places, key=lambda pr: places[pr])


@pytest.mark.parametrize(
    ("state", "below", "left", "is_told"),
    [
        (EntryState.MERGED, "1 2", "2", True),
        (EntryState.MERGED, "1", "1", False),
        (EntryState.MERGED, "2", "2", False),
        (EntryState.CANCELLED, "1 2", "1 2", True),
        (EntryState.CANCELLED, "1", "1", True),
        (EntryState.CANCELLED, "11", "11", False),
    ],
)
def test_a_member_of_a_stack_is_told_when_one_that_it_waits_for_has_left(
    state: EntryState, below: str, left: str, is_told: bool
) -> None:
    stacked = (*REVIEW, Blocker(BlockerCode.STACKED, below))
    waiting = set_aside(3, facts=replace(facts_of(3), blockers=stacked), unmet=(Reason.STACKED,))
    lowest = an_entry(1, facts=replace(facts_of(1), in_stack=True))
    draft = a_draft(lowest, waiting)
    reason = Reason.LANDED if state is EntryState.MERGED else Reason.USER_REQUESTED
    draft.move(draft.entries[1], state, reason)
    found = draft.entries[3].facts.blockers
    assert found == (*REVIEW, Blocker(BlockerCode.STACKED, left))
    told = sorted(one.pr for one in draft.actions if isinstance(one, Tell))
    assert told == ([1, 3] if is_told else [1])


def test_a_member_of_a_stack_needs_the_checks_of_its_own_head_for_the_merge_call() -> None:
    assert Reason.CHECK_MISSING not in unmet_with(in_stack=False)
    assert Reason.CHECK_MISSING in unmet_with(in_stack=True)


def unmet_with(*, in_stack: bool) -> tuple[Reason, ...]:
    """What is open for one without a required check on its head, under MERGE_COMMIT."""
    facts = replace(facts_of(1), blockers=MISSING, in_stack=in_stack)
    entry = set_aside(facts=facts)
    return readiness.unmet_now(a_draft(entry, merge_method=MergeMethod.MERGE_COMMIT), entry)
