"""Fair shares inside a priority (docs/design/fair-shares.md 1)."""

import random
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine import engine, inputs
from service.mergequeue.engine.config import BatchSizing, FairShares, Mode, QueueConfig
from service.mergequeue.engine.explaining import explain, previews
from service.mergequeue.engine.explaining.conditions import ConditionCode
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import RuleWait
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.state.places import indexed
from service.mergequeue.engine.states import RunKind, RunStatus
from service.vocabulary import (
    Actor,
    ActorKind,
    Blocker,
    BlockerCode,
    Channel,
    CheckOutcome,
)
from tests.harness import fair_turns
from tests.mergequeue.stage import ALICE, Stage, a_check

BOB = Actor(ActorKind.PERSON, "bob", "2", Channel.COMMENT)
TOKEN = Actor(ActorKind.TOKEN, "ci", "tok_1", Channel.API)
APP = Actor(ActorKind.BOT, "renovate[bot]", "9", Channel.COMMENT)
OFF, SUBMITTERS, SPLIT = FairShares
WHO = (ALICE, BOB, TOKEN, APP)


def a_stage(fair_shares: FairShares = SUBMITTERS, **settings) -> Stage:
    """A queue whose one slot is taken by a pull request of somebody else."""
    stage = Stage(QueueConfig(fair_shares=fair_shares, **settings))
    submits(stage, Actor(ActorKind.PERSON, "zoe"), 99)
    return stage


def submits(stage: Stage, actor: Actor, *prs: int, **options) -> None:
    for pr in prs:
        stage.tell(stage.submit(pr, actor=actor, **options))


def order(queue: MergeQueue) -> list[int]:
    entries = indexed(queue.entries)
    return shares.in_order(queue, entries, entries.places)


def passes(stage: Stage) -> None:
    """The tests of what runs pass, and it lands."""
    for run in list(stage.queue.runs.values()):
        if run.status is RunStatus.IN_PROGRESS and run.sha is not None:
            checks = (a_check("unit", CheckOutcome.PASSED),)
            stage.tell(inputs.ChecksReported(run.id, run.sha, checks, True))


def waiting_for_a_rule(stage: Stage, pr: int) -> Facts:
    known = stage.facts[pr]
    wait = RuleWait("freeze", "the end of the freeze", None)
    return replace(known, ruled=replace(known.ruled, waits=(wait,)))


def test_a_person_who_comes_after_twelve_of_one_token_is_among_the_first():
    stage = a_stage()
    submits(stage, TOKEN, *range(1, 13))
    submits(stage, BOB, 50)
    assert order(stage.queue)[:3] == [1, 50, 2]


def test_where_nobody_has_two_open_entries_the_order_is_that_of_arrival():
    stage = a_stage()
    for number, actor in enumerate(WHO, start=1):
        submits(stage, actor, number)
    passes(stage)
    submits(stage, Actor(ActorKind.PERSON, "zoe"), 98)
    assert order(stage.queue) == [2, 3, 4, 98]


def test_without_fair_shares_the_order_is_that_of_arrival():
    stage = a_stage(OFF)
    submits(stage, TOKEN, 1, 2, 3)
    submits(stage, BOB, 50)
    assert order(stage.queue) == [1, 2, 3, 50]
    assert stage.queue.turns == ()


def test_who_was_idle_for_long_gains_nothing_by_it():
    stage = a_stage()
    submits(stage, TOKEN, *range(1, 9))
    submits(stage, ALICE, *range(11, 19))
    for _ in range(6):
        passes(stage)
    submits(stage, BOB, 50, 51, 52, 53)
    found = order(stage.queue)
    between = found[found.index(50) : found.index(53)]
    assert sum(pr in between for pr in range(1, 9)) == 3
    assert sum(pr in between for pr in range(11, 19)) == 3


def test_time_in_which_an_entry_was_not_ready_earns_nothing():
    stage = a_stage()
    submits(stage, TOKEN, 1, 2, 3)
    for pr in (1, 2, 3):
        stage.tell(inputs.FactsChanged(waiting_for_a_rule(stage, pr)))
    submits(stage, ALICE, *range(11, 17))
    for _ in range(4):
        passes(stage)
    for pr in (1, 2, 3):
        stage.tell(inputs.FactsChanged(stage.facts[pr]))
    assert order(stage.queue) == [1, 2, 15, 3, 16]


def test_people_and_agents_take_turns_with_each_other():
    stage = a_stage(SPLIT)
    submits(stage, TOKEN, 1, 2)
    submits(stage, APP, 11, 12)
    submits(stage, Actor(ActorKind.BOT, "other[bot]"), 21)
    submits(stage, BOB, 50, 51)
    assert order(stage.queue) == [1, 50, 11, 51, 21, 2, 12]


def test_entries_tested_apart_from_the_line_do_not_push_the_turn_that_is_reached():
    stage = a_stage(mode=Mode.SINGLE, batch_sizing=BatchSizing.ADAPTIVE, concurrency=8)
    submits(stage, TOKEN, *range(1, 7), p_fail=0.4)
    kinds = [run.kind for run in stage.queue.runs.values()]
    assert kinds.count(RunKind.SCREEN) == 6
    assert stage.queue.entries[6].turn == 5
    submits(stage, BOB, 50)
    assert stage.queue.entries[50].turn == 0


def test_a_change_of_the_setting_deals_new_turns():
    stage = a_stage(OFF)
    submits(stage, TOKEN, 1, 2, 3)
    submits(stage, BOB, 50)
    stage.tell(inputs.Configure({"fair_shares": SUBMITTERS}, ALICE))
    assert order(stage.queue) == [1, 50, 2, 3]
    stage.tell(inputs.Configure({"fair_shares": OFF}, ALICE))
    assert order(stage.queue) == [1, 2, 3, 50]


def test_the_first_start_after_an_upgrade_deals_turns_to_what_waited_before_it():
    stage = a_stage(OFF)
    submits(stage, TOKEN, 1, 2, 3)
    stage.queue = replace(stage.queue, config=replace(stage.queue.config, fair_shares=SUBMITTERS))
    submits(stage, BOB, 50)
    submits(stage, TOKEN, 4)
    passes(stage)
    assert order(stage.queue) == [50, 2, 3, 4]


def test_a_change_of_the_setting_deals_turns_to_thousands_at_once():
    stage = a_stage(OFF)
    submits(stage, TOKEN, 1)
    one = stage.queue.entries[1]
    many = {pr: replace(one, pr=pr, id=f"{pr}", seq=pr) for pr in range(1_000, 3_000)}
    entries = indexed({**stage.queue.entries, **many})
    queue = replace(stage.queue, entries=entries)
    began_s = time.process_time()
    dealt = engine.step(queue, inputs.Configure({"fair_shares": SUBMITTERS}, ALICE), stage.now)
    assert time.process_time() - began_s < 10
    assert [dealt.queue.entries[pr].turn for pr in (1, 1_000, 2_999)] == [0, 1, 2_000]


def test_a_new_priority_is_a_new_turn():
    stage = a_stage()
    submits(stage, TOKEN, 1, 2, 3)
    submits(stage, BOB, 50)
    stage.tell(stage.submit(3, actor=TOKEN, priority=10))
    assert order(stage.queue) == [3, 1, 50, 2]
    stage.tell(stage.submit(3, actor=TOKEN, priority=100))
    assert order(stage.queue) == [1, 50, 2, 3]


def test_a_stack_takes_one_turn_as_a_whole_and_counts_in_full_afterwards():
    stage = a_stage(merge_method="MERGE_COMMIT")
    lower, *above = [stage.submit(pr, actor=TOKEN) for pr in (1, 2, 3)]
    commands = [replace(lower, facts=replace(lower.facts, in_stack=True))]
    for below, each in enumerate(above, start=1):
        names = " ".join(map(str, range(1, below + 1)))
        blockers = (Blocker(BlockerCode.STACKED, names),)
        facts = replace(each.facts, in_stack=True, base=f"part-{below}", blockers=blockers)
        commands.append(replace(each, facts=facts))
    stage.tell(replace(commands[-1], below=tuple(commands[:-1])))
    submits(stage, TOKEN, 4)
    submits(stage, BOB, 50, 51, 52, 53)
    assert order(stage.queue) == [1, 2, 3, 50, 51, 52, 4, 53]


def test_what_is_tested_is_not_overtaken():
    stage = a_stage(concurrency=3)
    submits(stage, TOKEN, 1, 2, 3)
    running = {run.id for run in stage.queue.runs.values()}
    submits(stage, BOB, 50)
    assert {run.id for run in stage.queue.runs.values()} == running
    assert order(stage.queue) == [50, 3]


def test_explain_says_the_share_and_the_next_turn():
    stage = a_stage(concurrency=2)
    stage.tell(inputs.RatesMeasured(0.02, 0.03, {"unit": 10.0}))
    submits(stage, TOKEN, 1, 2, 3)
    submits(stage, BOB, 50)
    stage.passes(timedelta(minutes=4))

    def share(pr: int):
        found = explain.explain(stage.queue, pr, stage.now).conditions
        return next(one for one in found if one.code is ConditionCode.FAIR_SHARE)

    assert (share(2).met, share(2).count, share(2).total, share(2).word) == (False, 1, 2, "6")
    assert (share(50).met, share(50).count, share(50).word) == (True, 0, "6")


def test_a_preview_knows_the_order_of_turns():
    stage = a_stage(SPLIT)
    submits(stage, TOKEN, 1, 2, 3)
    submits(stage, BOB, 50)
    found = previews.of_command(
        stage.queue, inputs.Cancel(50, Reason.USER_REQUESTED, BOB), stage.now
    )
    assert isinstance(found, previews.Preview)
    assert found.moved_up == (2, 3)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("fair_shares", FairShares)
def test_a_history_keeps_every_rule_of_turns_and_its_repetition_is_the_same(fair_shares, seed):
    ends = []
    for _ in range(2):
        chance = random.Random(seed)
        stage = a_stage(fair_shares, concurrency=chance.choice((1, 2, 4)), mode=Mode.SINGLE)
        for pr in range(1, 40):
            act = chance.random()
            if act < 0.6:
                submits(stage, chance.choice(WHO), pr, priority=chance.choice((None, None, 10)))
            elif act < 0.85:
                passes(stage)
            elif stage.queue.entries:
                some = chance.choice(sorted(stage.queue.entries))
                stage.tell(inputs.Cancel(some, Reason.USER_REQUESTED, ALICE))
        for before, step in stage.steps:
            fair_turns.judge(before, step)
        ends.append((stage.queue, order(stage.queue)))
    assert ends[0] == ends[1]
    if fair_shares is OFF:
        entries = stage.queue.entries
        arrived = sorted(order(stage.queue), key=lambda pr: (entries[pr].priority, entries[pr].seq))
        assert order(stage.queue) == arrived


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fair_shares", [SUBMITTERS, SPLIT])
def test_of_one_submitter_the_order_is_that_of_arrival(fair_shares, seed):
    chance = random.Random(seed)
    stage = a_stage(fair_shares)
    for pr in range(1, 20):
        submits(stage, TOKEN, pr)
        some = chance.choice(sorted(stage.queue.entries))
        waits = chance.random() < 0.5
        facts = waiting_for_a_rule(stage, some) if waits else stage.facts[some]
        stage.tell(inputs.FactsChanged(facts))
        stage.passes(timedelta(minutes=chance.choice((0, 11))))
        if chance.random() < 0.3:
            passes(stage)
        entries = stage.queue.entries
        found = [pr for pr in order(stage.queue) if pr != 99]
        assert found == sorted(found, key=lambda pr: entries[pr].seq or 0)
