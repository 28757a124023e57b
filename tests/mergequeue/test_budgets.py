"""Which submissions a queue refuses for what its head or its submitter did before (budgets.md)."""

from datetime import timedelta
from typing import Any

import pytest

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits import breaker
from service.mergequeue.engine.inputs import Submit
from service.mergequeue.engine.model import Breaker, LandedStep, Tip
from service.mergequeue.engine.past import Blamed, Limits, Past, Spent
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.submitters import identity_of
from service.vocabulary import SYSTEM, Actor, ActorKind, Channel, RequiredName, Sha
from tests.mergequeue.stage import ALICE, START, Stage

BOB = Actor(ActorKind.PERSON, "bob", "2", Channel.COMMENT)
AGENT = Actor(ActorKind.TOKEN, "agent", "7hQ2mX9aLk", Channel.API)
SET = (RequiredName("unit"),)


def a_stage(**settings: int) -> Stage:
    """A queue with these settings, whose test branches are never made."""
    return Stage(QueueConfig(**settings), manual_build=True)  # type: ignore[arg-type]


def blamed(stage: Stage, **more: Any) -> Past:
    """The past of a head that failed on what the target has now."""
    assert stage.queue.tip is not None
    one = Blamed("r1", 2, Sha("c" * 40), stage.queue.tip, SET, START, ())
    return Past(replace(one, **more))


def refused(stage: Stage, one: Submit) -> Reason | None:
    """Why the queue refuses it, None if it enters."""
    refusal = stage.tell(one).refusal
    return refusal.reason if refusal else None


def moved(stage: Stage, *touched: targets.Targets | None) -> None:
    """Let the target have got a landing that touches each of these."""
    tip = stage.queue.tip
    assert tip is not None
    for number, each in enumerate(touched, len(stage.queue.landed)):
        sha = Sha(f"{number:040x}")
        step = LandedStep(90 + number, tip.sha, sha, sha, each)
        tip = Tip(sha, sha)
        stage.queue = replace(stage.queue, landed=(*stage.queue.landed, step), tip=tip)


def test_a_head_that_failed_on_this_very_content_is_refused() -> None:
    stage = a_stage()
    assert refused(stage, stage.submit(1, past=blamed(stage))) is Reason.FAILED_BEFORE
    assert refused(stage, stage.submit(1, past=blamed(stage), again=True)) is None


def test_new_options_of_a_queued_head_meet_no_rule() -> None:
    stage = a_stage(open_entries_per_submitter=1)
    stage.tell(stage.submit(1))
    assert refused(stage, stage.submit(1, past=blamed(stage), priority=10)) is None


@pytest.mark.parametrize(("times", "needed"), [(1, 1), (2, 2), (3, 4), (4, 8), (9, 16)])
def test_after_each_blame_twice_as_many_landings_must_come(times: int, needed: int) -> None:
    stage = a_stage()
    past = blamed(stage, times=times)
    moved(stage, *[None] * (needed - 1))
    told = stage.tell(stage.submit(1, past=past))
    assert told.refusal is not None
    assert told.refusal.blamed is not None
    assert told.refusal.blamed.missing == 1
    moved(stage, None)
    assert refused(stage, stage.submit(1, past=past)) is None


def test_a_landing_that_meets_nothing_of_it_does_not_count() -> None:
    stage = a_stage()
    past, api, web = blamed(stage), targets.of(["api"]), targets.of(["web"])
    moved(stage, web)
    assert refused(stage, stage.submit(1, past=past, targets=api)) is Reason.FAILED_BEFORE
    moved(stage, api)
    assert refused(stage, stage.submit(1, past=past, targets=api)) is None


def test_targets_that_are_unknown_meet_every_landing() -> None:
    stage = a_stage()
    past = blamed(stage)
    moved(stage, targets.of(["web"]))
    assert refused(stage, stage.submit(1, past=past)) is None


def test_a_landing_that_was_taken_back_leaves_the_content_that_failed() -> None:
    stage = a_stage()
    past = blamed(stage)
    tip = stage.queue.tip
    moved(stage, None)
    assert stage.queue.tip is not None
    assert tip is not None
    stage.queue = replace(stage.queue, tip=Tip(stage.queue.tip.sha, tip.tree))
    assert refused(stage, stage.submit(1, past=past)) is Reason.FAILED_BEFORE


def test_a_base_that_never_became_the_target_proves_nothing() -> None:
    stage = a_stage()
    base = Tip(Sha("d" * 40), Sha("e" * 40))
    assert refused(stage, stage.submit(1, past=blamed(stage, base=base))) is None


@pytest.mark.parametrize(
    ("old", "is_same"),
    [
        ((RequiredName("unit", "7"),), True),
        ((RequiredName("unit"), RequiredName("lint")), False),
        ((RequiredName("lint"),), False),
    ],
)
def test_only_the_same_checks_are_the_same_question(
    old: tuple[RequiredName, ...], *, is_same: bool
) -> None:
    stage = a_stage()
    code = refused(stage, stage.submit(1, past=blamed(stage, required=old)))
    assert (code is Reason.FAILED_BEFORE) is is_same


def test_a_failure_that_is_explained_by_now_is_no_blame() -> None:
    stage = a_stage()
    past = blamed(stage)
    one = stage.submit(1, past=past, taken_back="r0")
    assert refused(stage, one) is Reason.FAILED_BEFORE
    assert refused(stage, replace(one, taken_back="r1")) is None


def test_a_head_that_timed_out_may_enter_once_the_limit_was_raised() -> None:
    stage = a_stage(testing_timeout_minutes=60)
    one = stage.submit(1, past=blamed(stage, timeout_min=60))
    assert refused(stage, one) is Reason.FAILED_BEFORE
    assert refused(stage, replace(one, past=blamed(stage, timeout_min=59))) is None


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_failure_around_a_breaker_hold_is_no_blame(sign: int) -> None:
    stage = a_stage()
    past = blamed(stage)
    near, far = breaker.WINDOW, breaker.WINDOW + timedelta(seconds=1)
    stage.queue = replace(stage.queue, breaker=Breaker(since=START + sign * far))
    assert refused(stage, stage.submit(1, past=past)) is Reason.FAILED_BEFORE
    stage.queue = replace(stage.queue, breaker=Breaker(since=START + sign * near))
    assert refused(stage, stage.submit(1, past=past)) is None


def test_one_of_a_stack_that_failed_before_keeps_all_out() -> None:
    stage = a_stage()
    lower = stage.submit(1, past=blamed(stage))
    told = stage.tell(stage.submit(2, below=(lower,)))
    assert told.refusal is not None
    assert (told.refusal.reason, told.refusal.prs) == (Reason.FAILED_BEFORE, (1,))
    assert stage.queue.entries == {}


def test_a_submitter_has_so_many_open_entries_and_no_more() -> None:
    stage = a_stage(open_entries_per_submitter=2)
    assert [refused(stage, stage.submit(pr)) for pr in (1, 2, 3)] == [
        None,
        None,
        Reason.OVER_BUDGET,
    ]
    assert refused(stage, replace(stage.submit(3), actor=BOB)) is None
    stage.versions[1] = 2
    assert refused(stage, stage.submit(1)) is None


def test_the_members_of_a_stack_count_one_by_one() -> None:
    stage = a_stage(open_entries_per_submitter=2)
    below = (stage.submit(1), stage.submit(2))
    assert refused(stage, stage.submit(3, below=below)) is Reason.OVER_BUDGET
    assert stage.queue.entries == {}


def test_the_limits_of_a_token_count_all_queues() -> None:
    stage = a_stage()
    past = Past(token=Limits(3, 60), spent=Spent(2, 0.0, 59.9))
    first, second = (replace(stage.submit(pr, past=past), actor=AGENT) for pr in (1, 2))
    assert refused(stage, first) is None
    told = stage.tell(second).refusal
    assert told is not None
    assert told.over is not None
    assert (told.over.used, told.over.limit, told.over.token) == (3, 3, True)
    # Of a person no limit of a token counts.
    assert refused(stage, stage.submit(2, past=past)) is None


def test_minutes_that_are_used_up_come_back_at_midnight() -> None:
    stage = a_stage(ci_minutes_per_submitter=60)
    past = Past(spent=Spent(0, 60.0, 60.0))
    told = stage.tell(stage.submit(1, past=past)).refusal
    assert told is not None
    assert told.over is not None
    assert told.over.until == START.replace(hour=0) + timedelta(days=1)
    almost = replace(past, spent=Spent(0, 59.9, 500.0))
    assert refused(stage, stage.submit(1, past=almost)) is None


@pytest.mark.parametrize(
    ("actor", "identity"),
    [
        (BOB, "bob"),
        (AGENT, "token/7hQ2mX9aLk"),
        (Actor(ActorKind.BOT, "renovate[bot]", "9", Channel.COMMENT), "renovate[bot]"),
        (Actor(ActorKind.SYSTEM, "ready", channel=Channel.RULE), "carol"),
        (SYSTEM, "carol"),
        (ALICE, "alice"),
    ],
)
def test_who_a_submission_counts_for(actor: Actor, identity: str) -> None:
    assert identity_of(actor, "carol") == identity
