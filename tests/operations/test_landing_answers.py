"""What one landing reads, when it sends, and what follows from each answer.

Nothing of this depends on the kind of database: one is enough.

See docs/design/landing.md 3.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from service.clock import RandomIds
from service.database import outbox
from service.database.database import Store, open_store
from service.database.outbox import Lane
from service.mergequeue.engine.config import Toggle
from service.mergequeue.engine.model import Hold, LandMode, MergeQueue
from service.mergequeue.engine.outputs import Land, Step, Tell
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import EntryState, QueueState, RunKind
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import head_branches, landing
from service.mergequeue.operations.head_branches import DeleteHeadBranch
from service.mergequeue.reasons.record import HoldScope
from service.mergequeue.store import landings
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.mergequeue.store.landings import LandingOutcome
from service.mergequeue.store.rows import queues
from service.provider.errors import OutcomeUnknown
from service.provider.values import LandStopCode, Merged, MergeRequest
from service.runtime import Runtime
from service.vocabulary import SYSTEM, MergeMethod
from tests.harness.databases import SetClock, connected
from tests.operations.landing_stage import Unit, a_unit, runtime_of, three
from tests.operations.test_landing import MERGES, Struck, counted, states
from tests.provider.stage import Stage

MERGE_CALL = {"method": "PUT", "path": "*/merge"}
IN_PROGRESS = "Merge already in progress"


class Moments:
    """A crash point at which something happens, by its name."""

    def __init__(self) -> None:
        self.at: dict[str, Callable[[int], object]] = {}
        self.passed: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        self.passed[name] += 1
        if name in self.at:
            self.at[name](self.passed[name])


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Instead of one of each kind."""
    return sqlite_url


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def runtime(stage: Stage, store: Store, moments: Moments) -> Runtime:
    return runtime_of(stage, store, moments)


@pytest.fixture
def one(runtime, stage):
    """A unit of one pull request."""

    async def made(**settings) -> Unit:
        return await a_unit(runtime, stage, [await stage.open({"a.txt": "a\n"})], **settings)

    return made


async def land(unit: Unit, mode: LandMode = LandMode.CALL) -> str:
    """Land everything; what became of the first position, with its evidence."""
    positions = list(range(1, len(unit.run.steps) + 1))
    action = await unit.land(positions, mode)
    await landing.land(unit.runtime, unit.queue, action)
    record = (await unit.records())[0]
    return record.evidence or record.state.value


async def change(unit: Unit, **changes) -> None:
    """Write another value of the queue, as if its own turns had led there."""

    def write(session) -> None:
        before = stored_queues.load(session, unit.queue.id)
        after: MergeQueue = replace(before, **changes)
        gone = tuple(run for run in before.runs.values() if run.id not in after.runs)
        step = Step(after, (), (), None, None, finished_runs=gone)
        stored_queues.save(session, before, step)

    await unit.runtime.store.run(write)
    unit.runtime.store.caches.of(QueueCache).drop(unit.queue.id)


async def notices(unit: Unit) -> list[object]:
    """What waits to be said or done beside the queue."""
    soon = unit.runtime.clock.now() + head_branches.DELAY
    rows = await unit.runtime.store.read(outbox.claim, soon, 99, (Lane.NOTICE,))
    return [row.effect for row in rows]


def a_hold(reason: HoldReason, unit: Unit) -> Hold:
    now = unit.runtime.clock.now()
    return Hold(reason.value, reason, HoldScope.START, SYSTEM, "wait", now)


# Whether anything is sent.


async def test_a_landing_that_has_ended_is_not_carried_out_again(stage, runtime, one):
    unit = await one()
    for state in (
        LandingState.LANDED,
        LandingState.REFUSED,
        LandingState.VOID,
        LandingState.MISMATCH,
    ):
        action = await unit.land([1], LandMode.CALL)
        record = (await unit.records())[-1]
        await runtime.store.run(landings.settle, record.id, LandingOutcome(state))
        before = len(stage.calls())
        await landing.land(runtime, unit.queue, action)
        assert len(stage.calls()) == before


async def test_a_landing_that_the_queue_does_not_know_is_not_sent(stage, runtime, one):
    unit = await one()
    action = replace(await unit.land([1], LandMode.CALL), number=99)
    before = len(stage.calls())
    await landing.land(runtime, unit.queue, action)
    assert len(stage.calls()) == before


async def test_a_landing_whose_answer_was_lost_is_read_back_and_lifts_its_hold_alone(
    stage, runtime, one
):
    unit = await one()
    action = await unit.land([1], LandMode.CALL)
    await stage.fault("reset_after", **MERGE_CALL)
    with pytest.raises(OutcomeUnknown):
        await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.UNKNOWN]
    reasons = (HoldReason.LANDING_UNRESOLVED, HoldReason.CI_UNHEALTHY)
    await change(unit, holds=tuple(a_hold(reason, unit) for reason in reasons))
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.LANDED]
    assert stage.called("PUT", "/merge") == 1
    assert [hold.reason for hold in (await unit.value()).holds] == [HoldReason.CI_UNHEALTHY]


async def paused_without_an_answer(stage: Stage, unit: Unit) -> Land:
    """Lose the answer to a landing, and pause its queue: a second try has no permit."""
    action = await unit.land([1], LandMode.CALL)
    await stage.fault("reset_before", **MERGE_CALL)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            await landing.land(unit.runtime, unit.queue, action)
        await change(unit, state=QueueState.PAUSED)
    return action


async def test_a_call_that_may_still_be_carried_out_is_not_recorded_as_refused(stage, runtime, one):
    unit = await one()
    action = await paused_without_an_answer(stage, unit)
    # GitHub may carry out a call whose connection was cut.
    (step,) = action.steps
    late = MergeRequest(
        stage.repo, "main", step.pr, step.head, action.method, action.expected_tip.sha
    )
    assert isinstance(await stage.provider.merge(late), Merged)
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.LANDED]
    assert stage.called("PUT", "/merge") == 2


async def test_a_call_that_was_lost_is_recorded_as_refused_when_its_permit_has_ended(
    stage, runtime, one
):
    unit = await one()
    action = await paused_without_an_answer(stage, unit)
    stage.clock.advance(landing.PERMIT_FOR.total_seconds())
    await landing.land(runtime, unit.queue, action)
    assert [(one.state, one.evidence) for one in await unit.records()] == [
        (LandingState.REFUSED, "The queue is paused.")
    ]


async def test_another_landing_that_is_open_keeps_this_one_from_being_sent(stage, runtime, one):
    unit = await one()
    await unit.land([1], LandMode.CALL)
    (other,) = await unit.records()
    assert await runtime.store.run(landings.permit, other.id, runtime.clock.now())
    action = await unit.land([1], LandMode.CALL)
    await landing.land(runtime, unit.queue, action)
    assert (await unit.records())[1].evidence == "Another landing is still open."
    assert stage.called("PUT", "/merge") == 0


@pytest.mark.parametrize(("spent_s", "permits"), [(15.0, 1), (15.5, 2)])
async def test_a_permit_that_has_nearly_run_out_is_renewed_before_the_call_is_sent(
    stage, moments, one, spent_s, permits
):
    unit = await one()
    moments.at["landing.after_permit"] = lambda count: (
        stage.clock.advance(spent_s) if count == 1 else None
    )
    assert await land(unit) == "landed"
    assert moments.passed["landing.after_permit"] == permits
    assert stage.called("PUT", "/merge") == 1


async def test_a_run_that_is_gone_lands_nothing(stage, one):
    unit = await one()
    action = await unit.land([1], LandMode.CALL)
    waiting = {"state": EntryState.PENDING, "run": None, "verified_by": None}
    entries = (await unit.value()).entries
    pending = {pr: replace(entry, **waiting) for pr, entry in entries.items()}
    await change(unit, runs={}, entries=pending, landing=None)
    await landing.land(unit.runtime, unit.queue, action)
    (record,) = await unit.records()
    assert record.evidence == "The queue does not ask for this landing any more."
    assert stage.called("PUT", "/merge") == 0


async def test_a_pull_request_that_is_gone_says_nothing_of_the_target(stage, one):
    unit = await one()
    await stage.delete_issue(unit.run.steps[0].pr)
    assert await land(unit) == "Pull request 1 must not land now."


# What is read.


async def test_the_target_is_read_beside_the_pull_requests_only_if_it_moved(stage, one):
    unit = await one()
    before = stage.called("GET", "/commits/heads/main")
    assert await land(unit) == "landed"
    assert stage.called("GET", "/commits/heads/main") - before == 1


@pytest.mark.parametrize(("kind", "reads"), [(RunKind.MAIN, 0), (RunKind.DIRECT, 1)])
async def test_the_checks_of_the_own_head_are_read_only_for_a_direct_merge(stage, one, kind, reads):
    unit = await one(direct_merge_mode=Toggle.ALWAYS, status_reporters=("unit=any",))
    unit.run = replace(unit.run, kind=kind)
    own, test_branch = unit.run.steps[0].head, unit.run.sha
    before = stage.checks_read(own), stage.checks_read(test_branch)
    assert await land(unit) == "landed"
    after = stage.checks_read(own), stage.checks_read(test_branch)
    assert (after[0] - before[0], after[1] - before[1]) == (reads, 1 - reads)


# What is sent.


TEXTS = {"commit_title": "{{ title }} [queue]", "commit_body": "{{ co_authors }}"}


async def test_the_commit_of_a_squash_has_the_texts_of_the_templates(stage, one):
    unit = await one(merge_method=MergeMethod.SQUASH, **TEXTS)
    assert await land(unit) == "landed"
    assert "[queue]" in stage.message(stage.tip())


@pytest.mark.parametrize(
    ("method", "mode"), [(MergeMethod.REBASE, LandMode.CALL), (MERGES, LandMode.CAS)]
)
async def test_commits_that_land_as_they_are_need_no_texts(stage, one, method, mode):
    unit = await one(merge_method=method, **TEXTS)
    before = len(stage.calls())
    assert await land(unit, mode) == "landed"
    sent = [str(call["body"]) for call in stage.calls(before)]
    assert not [body for body in sent if "CommitAuthors" in body or "commit_title" in body]


# Our own check.


async def test_rules_that_require_our_own_check_see_it_succeed_before_the_call(stage, one):
    unit = await one()
    await stage.rules(required_checks=["unit", "Headgate (main)"])
    assert await land(unit) == "landed"
    assert stage.own_checks(unit.run.steps[0].head) == [("completed", "success")]


async def test_our_own_check_is_not_completed_for_a_landing_where_nothing_requires_it(stage, one):
    unit = await one()
    await stage.rules(required_checks=["unit"])
    assert await land(unit) == "landed"
    assert stage.own_checks(unit.run.steps[0].head) == []


async def test_a_landing_that_is_to_be_tried_later_takes_back_the_success_of_our_own_check(
    stage, one
):
    unit = await one()
    await stage.rules(required_checks=["unit", "Headgate (main)"])
    await stage.fault("refuse", status=405, message=IN_PROGRESS, times=10, **MERGE_CALL)
    assert await land(unit) == IN_PROGRESS
    assert stage.own_checks(unit.run.steps[0].head) == [("completed", "success")]
    told = [(one.pr, one.state) for one in await notices(unit) if isinstance(one, Tell)]
    assert told == [(1, EntryState.TESTS_PASSED)]


async def test_a_landing_that_is_to_be_tried_later_leaves_a_check_that_it_did_not_complete(
    stage, one
):
    unit = await one()
    await stage.fault("refuse", status=405, message=IN_PROGRESS, times=10, **MERGE_CALL)
    assert await land(unit) == IN_PROGRESS
    assert await notices(unit) == []


# What follows from a refusal.


async def test_a_refusal_that_passes_by_itself_is_tried_again(stage, one):
    unit = await one()
    await stage.fault("refuse", status=405, message=IN_PROGRESS, times=2, **MERGE_CALL)
    before = stage.clock.monotonic_s()
    assert await land(unit) == "landed"
    assert stage.called("PUT", "/merge") == 3
    wait_s = landing.TRY_AGAIN_S[LandStopCode.RETRY]
    assert stage.clock.monotonic_s() - before == 2 * wait_s


async def test_missing_checks_are_tried_three_times(stage, one):
    unit = await one(merge_method=MERGES)
    await stage.rules(required_checks=["never"])
    assert "never" in await land(unit)
    assert stage.called("PUT", "/merge") == landing.TRIES_MAX[LandStopCode.CHECKS_MISSING] == 3


async def test_the_reason_of_a_refusal_is_told_although_our_permit_says_no_afterwards(
    stage, moments, one
):
    unit = await one()
    pull = stage.issue(unit.run.steps[0].pr).pull
    moments.at["act.land.after_send"] = lambda _: setattr(pull, "draft", True)
    await stage.fault("refuse", status=405, message=IN_PROGRESS, **MERGE_CALL)
    assert await land(unit) == IN_PROGRESS
    assert stage.called("PUT", "/merge") == 1


async def test_without_an_earlier_refusal_our_permit_gives_the_reason(stage, one):
    unit = await one()
    await stage.act("draft", number=unit.run.steps[0].pr)
    assert await land(unit) == "Pull request 1 must not land now."
    assert stage.called("PUT", "/merge") == 0


async def test_an_advance_that_rules_or_rights_deny_leaves_the_way_by_the_merge_call(stage, one):
    unit = await one(merge_method=MERGES)
    await stage.rules(rulesets=[stage.ruleset("pull_request", **stage.conversations())])
    await land(unit, LandMode.CAS)
    value = await unit.value()
    assert value.advance_refused_at == unit.runtime.clock.now()
    assert value.holds == ()
    await change(unit, advance_refused_at=None)
    await stage.rules(rulesets=[])
    await stage.permit(contents="read")
    await land(unit, LandMode.CAS)
    value = await unit.value()
    assert value.advance_refused_at == unit.runtime.clock.now()
    assert value.holds == ()


async def test_an_advance_for_which_github_is_too_slow_says_nothing_of_its_way(
    stage, moments, runtime
):
    unit = await a_unit(runtime, stage, await three(stage), merge_method=MERGES)
    moments.at["landing.after_permit"] = lambda _: stage.clock.advance(20)
    assert await land(unit, LandMode.CAS) == landing.TOO_SLOW
    value = await unit.value()
    assert value.advance_refused_at is None
    assert [hold.reason for hold in value.holds] == [HoldReason.PROVIDER_UNAVAILABLE]


@pytest.fixture
async def stack(runtime, stage) -> Unit:
    """A native stack of two, which passed as one unit."""
    lower, lower_head = await stage.open({"a.txt": "a\n"}, head="lower")
    upper, upper_head = await stage.open({"b.txt": "b\n"}, head="upper", base="lower")
    await stage.act("stack", numbers=[lower, upper])
    return await a_unit(runtime, stage, [(lower, lower_head), (upper, upper_head)])


async def test_a_stack_lands_by_one_call_for_its_top(stage, stack):
    assert await land(stack) == "landed"
    assert await states(stack) == [LandingState.LANDED] * 2
    assert stage.called("PUT", "/merge-async") == 1


async def test_a_stack_whose_call_is_refused_leaves_the_way_one_by_one(stage, stack):
    await stage.fault("fail_before", method="PUT", path="*/merge-async", status=422)
    await land(stack)
    value = await stack.value()
    assert value.advance_refused_at == stack.runtime.clock.now()
    assert value.holds == ()


async def test_a_stack_of_other_members_than_were_tested_says_nothing_of_its_way(stage, stack):
    stage.world.stacks.clear()
    assert await land(stack) == "The stack is not as it was tested."
    assert (await stack.value()).advance_refused_at is None


async def test_a_stack_whose_target_moved_meanwhile_says_nothing_of_its_way(stage, stack):
    push = {"as": "alice", "act": "push", "branch": "main", "files": {"m.txt": "m\n"}}
    act = {"repo": stage.full_name, "bypass": True, **push}
    await stage.fault("before", method="PUT", path="*/merge-async", act=act)
    await stage.fault("refuse", method="PUT", path="*/merge-async", status=409, message="no")
    await land(stack)
    assert (await stack.value()).advance_refused_at is None


async def test_an_advance_that_is_out_of_date_says_nothing_of_its_way(stage, one):
    unit = await one(merge_method=MERGES)
    await stage.act("push", branch="main", files={"m.txt": "m\n"})
    action = await unit.land([1], LandMode.CAS)
    await landing.land(unit.runtime, unit.queue, action)
    assert (await unit.value()).advance_refused_at is None


async def test_a_merge_call_that_a_rule_denies_holds_the_queue(stage, one):
    unit = await one()
    await stage.rules(rulesets=[stage.ruleset("update")])
    await land(unit)
    value = await unit.value()
    assert value.advance_refused_at is None
    assert [hold.reason for hold in value.holds] == [HoldReason.RULE_DENIED]


async def test_the_checks_of_a_direct_merge_stay_known_after_a_refusal(stage, one):
    unit = await one(direct_merge_mode=Toggle.ALWAYS, status_reporters=("unit=any",))
    unit.run = replace(unit.run, kind=RunKind.DIRECT)
    await stage.rules(settings={"squash": False})
    await land(unit)
    known = (await unit.value()).entries[1].facts
    assert {check.name for check in known.own_checks} == {"unit"}
    assert known.head_tree == stage.tree(known.head)


# What follows from a landing.


@pytest.mark.parametrize(("deletes", "numbers"), [(True, [1, 2, 3]), (False, [])])
async def test_a_queue_that_deletes_head_branches_does_so_for_what_has_landed(
    stage, runtime, deletes, numbers
):
    pulls = await three(stage)
    unit = await a_unit(runtime, stage, pulls, merge_method=MERGES, delete_branch=deletes)
    assert await land(unit, LandMode.CAS) == "landed"
    deletions = [one for one in await notices(unit) if isinstance(one, DeleteHeadBranch)]
    assert [one.number for one in deletions] == numbers


async def test_a_queue_that_deletes_head_branches_spares_those_of_a_refused_landing(stage, one):
    unit = await one(delete_branch=True)
    await stage.fault("fail_before", status=422, **MERGE_CALL)
    await land(unit)
    assert not [each for each in await notices(unit) if isinstance(each, DeleteHeadBranch)]


async def test_another_tree_than_was_tested_shows_the_real_tip_and_ends_what_landed(stage, one):
    unit = await one()
    await stage.fault("other_tree", **MERGE_CALL)
    await land(unit)
    value = await unit.value()
    assert value.kept_move is not None
    assert value.kept_move.tip.sha == stage.tip()
    assert [hold.reason for hold in value.holds] == [HoldReason.LANDING_MISMATCH]
    assert value.entries == {}


async def test_a_pull_request_that_is_gone_during_the_proof_leaves_the_mismatch_known(
    stage, moments, one
):
    unit = await one()
    await stage.fault("other_tree", **MERGE_CALL)
    moments.at["landing.before_proof"] = lambda _: stage.world.issues.pop(1)
    assert (await land(unit)).startswith("other_tree: ")
    assert await states(unit) == [LandingState.MISMATCH]
    value = await unit.value()
    assert [hold.reason for hold in value.holds] == [HoldReason.LANDING_MISMATCH]
    assert list(value.entries) == [1]


async def test_a_mismatch_holds_the_queue_at_once_although_github_shows_no_merge_yet(
    stage, moments, one
):
    unit = await one()
    await stage.fault("other_tree", **MERGE_CALL)

    def show_no_merge(_count):
        issue = stage.issue(1)
        issue.open, issue.pull.merged_at = True, None

    moments.at["landing.before_proof"] = show_no_merge
    await stage.fault("mergeable_null", method="PUT", path="*/merge", s=600)
    before = stage.clock.monotonic_s()
    assert (await land(unit)).startswith("other_tree: ")
    assert stage.clock.monotonic_s() == before
    value = await unit.value()
    assert [hold.reason for hold in value.holds] == [HoldReason.LANDING_MISMATCH]
    assert list(value.entries) == [1]


async def test_a_large_unit_is_told_of_in_parts_and_is_one_attempt(
    stage, runtime, moments, monkeypatch
):
    monkeypatch.setattr(landing, "TOLD_AT_ONCE", 2)
    unit = await a_unit(runtime, stage, await three(stage), merge_method=MERGES)
    action = await unit.land([1, 2, 3], LandMode.CAS)

    def strike(count):
        if count == 2:
            raise Struck

    moments.at["act.land.before_settle"] = strike
    with pytest.raises(Struck):
        await landing.land(runtime, unit.queue, action)
    two = [LandingState.LANDED, LandingState.LANDED]
    assert await states(unit) == [*two, LandingState.PERMITTED]
    assert await counted(unit) == {}
    await stage.act("push", branch="main", files={"m.txt": "m\n"})
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [*two, LandingState.LANDED]
    assert await counted(unit) == {"landed": 1}
    tip = (await unit.value()).tip
    assert tip is not None
    assert tip.sha == stage.tip()


async def test_a_permit_keeps_the_turns_of_its_queue_out_until_it_is_committed(
    stage, postgres_url, moments
):
    found = []

    def look(_count):
        with connected(postgres_url) as connection:
            try:
                connection.execute(select(queues.c.id).with_for_update(nowait=True, key_share=True))
            except OperationalError:
                found.append("locked")
            else:
                found.append("free")

    moments.at["tx.permit.before_commit"] = moments.at["tx.permit.after_commit"] = look
    store = await open_store(postgres_url, clock=SetClock(), ids=RandomIds(), crash_points=moments)
    runtime = runtime_of(stage, store, moments)
    unit = await a_unit(runtime, stage, [await stage.open({"a.txt": "a\n"})])
    assert await land(unit) == "landed"
    assert found == ["locked", "free"]
    await store.close()
