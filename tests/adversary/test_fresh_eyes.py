"""Attacks found by a reader who wrote none of the code: facts that change after they were judged.

The first part plays the engine alone, the rest asks the parts that speak to the provider.
"""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bot.sandbox.records import Classic
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.mergequeue.engine import inputs
from service.mergequeue.engine.applying.reports import REFUSED_BY_RULES
from service.mergequeue.engine.config import QueueConfig, Toggle
from service.mergequeue.engine.inputs import LandingStopCode, PlaceHold
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import EntryState, QueueState, RunKind
from service.mergequeue.operations import comments, permits, reconcile, turn
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.queues import QueueRequest
from service.provenance import ProviderTime
from service.provider.errors import Refused
from service.provider.signals import (
    Ask,
    Asked,
    AskPause,
    AskResume,
    AskSource,
    LabelChanged,
    Where,
)
from service.vocabulary import SYSTEM, Actor, ActorKind, Channel, CheckOutcome, MergeMethod, RepoId
from tests.harness.world import World
from tests.mergequeue import trees
from tests.mergequeue.stage import Stage, a_check, facts_of
from tests.provider.stage import on_sandbox


def _own_facts(stage: Stage, outcome: CheckOutcome) -> Facts:
    """Facts of pull request 1, whose head contains the tip, with this outcome of `unit`."""
    tree = stage.target.tree | {trees.change_of(1, stage.head(1))}
    return replace(
        facts_of(1),
        own_checks=(a_check("unit", outcome),),
        contains_tip=stage.target.tip.sha,
        head_tree=trees.tree_id(tree),
    )


@pytest.fixture(name="direct")
def _direct() -> Stage:
    """A landing of a pull request's own head is in flight."""
    config = QueueConfig(merge_method=MergeMethod.SQUASH, direct_merge_mode=Toggle.ALWAYS)
    stage = Stage(config, manual_land=True)
    stage.facts[1] = _own_facts(stage, CheckOutcome.PASSED)
    stage.tell(stage.submit(1))
    (run,) = stage.queue.runs.values()
    assert run.kind is RunKind.DIRECT
    assert stage.queue.landing is not None
    return stage


def _landing(stage: Stage) -> Land:
    (action,) = stage.lands.values()
    return action


@pytest.mark.parametrize("outcome", [CheckOutcome.FAILED, CheckOutcome.RUNNING])
def test_a_head_that_turns_red_gets_no_permit(direct: Stage, outcome: CheckOutcome) -> None:
    """Hurts everybody on the target: a head lands although its check failed meanwhile."""
    action = _landing(direct)
    assert permits.against(direct.queue, action, direct.now, ()) is None
    direct.tell(inputs.FactsChanged(_own_facts(direct, outcome)))
    assert (
        permits.against(direct.queue, action, direct.now, ()) == "A required status has not passed."
    )


@pytest.mark.parametrize("outcome", [CheckOutcome.FAILED, CheckOutcome.RUNNING])
def test_a_head_that_turned_red_is_tested(direct: Stage, outcome: CheckOutcome) -> None:
    """Hurts everybody on the target: the red head is tried again and again, or lands at last."""
    (run,) = direct.queue.runs.values()
    direct.tell(inputs.FactsChanged(_own_facts(direct, outcome)))
    direct.lands.clear()
    direct.tell(inputs.LandingStopped(run.id, 1, LandingStopCode.STALE, "not green"))
    entry = direct.queue.entries[1]
    (again,) = direct.queue.runs.values()
    assert entry.state is EntryState.TESTING
    assert again.kind is RunKind.MAIN


async def test_one_failed_call_does_not_hide_the_providers_own_queue() -> None:
    """Hurts every repository of the host: for an hour nothing shows that GitHub's queue is there.

    The hold is lifted, and each pull request is refused at its landing instead.
    """
    async with on_sandbox() as stage:
        stage.world.protected["main"] = Classic(queue=True)
        for trouble in (False, True, False):
            if trouble:
                await stage.fault("fail_before", graphql="MergeQueue", nth=None, status=502)
            with pytest.raises(Refused):
                await stage.provider.required(stage.repo, "main")
            stage.clear_faults()
            await stage.clock.sleep(301)


async def test_a_host_that_failed_once_is_asked_again() -> None:
    """Hurts the same: the first look fails, and GitHub's queue is found an hour later."""
    async with on_sandbox() as stage:
        stage.world.protected["main"] = Classic(queue=True)
        await stage.fault("fail_before", graphql="MergeQueue", nth=None, status=502)
        await stage.provider.required(stage.repo, "main")
        stage.clear_faults()
        await stage.clock.sleep(301)
        with pytest.raises(Refused):
            await stage.provider.required(stage.repo, "main")


async def test_a_queue_of_the_provider_is_seen_at_once_when_rules_change() -> None:
    """Hurts authors: for five minutes their landings are refused by a queue that nobody names."""
    async with on_sandbox() as stage:
        await stage.provider.required(stage.repo, "main")
        stage.world.protected["main"] = Classic(queue=True)
        await stage.provider.forget_rules(stage.repo)
        with pytest.raises(Refused):
            await stage.provider.required(stage.repo, "main")
        await stage.fault("fail_before", graphql="MergeQueue", nth=None, status=502)
        await stage.provider.forget_rules(stage.repo)
        with pytest.raises(Refused):
            await stage.provider.required(stage.repo, "main")


@pytest.mark.parametrize("reason", sorted(REFUSED_BY_RULES))
async def test_rules_that_change_end_every_hold_by_rules(world: World, reason: HoldReason) -> None:
    """Hurts a team that has just mended its rules: the queue stays held all the same."""
    await world.make_queue()
    queue = await world.queue()
    await turn.take(world.runtime, queue.id, [PlaceHold(reason, None, "no", SYSTEM)])
    await reconcile.rules_changed(world.runtime, queue)
    assert (await world.value()).holds == ()


async def test_rules_that_change_end_the_wait_of_a_refused_pull_request(world: World) -> None:
    """Hurts an author: the rule that refused the merge is gone, and the wait goes on."""
    number = await world.open()
    await world.make_queue()
    message = "Unheard of"
    await world.fault({"path": "*/merge"}, "fail_before", status=405, message=message)
    await world.fault({"graphql": "Advance"}, "fail_before", status=403)
    await world.comment("/merge", on=number)
    await world.settle()
    assert (await world.entry(number)).refusal is not None
    await reconcile.rules_changed(world.runtime, await world.queue())
    assert (await world.entry(number)).refusal is None


async def test_a_pause_is_not_overtaken_by_a_word_to_another_queue(world: World) -> None:
    """Hurts a release: its pause arrives after a later resume of main, and is dropped unseen."""
    await world.make_queue()
    record = await _repository(world)
    await world.act("push", branch="release", files={"r.txt": "r\n"}, message="r", bypass=True)
    wish = QueueRequest({}, QueueState.RUNNING)
    await queue_operations.create(world.runtime, record, "release", wish, SYSTEM)
    on_main, on_release = await world.open(), await world.open(base="release")
    at = world.clock.now()
    await _said(world, on_main, AskResume(), at + timedelta(seconds=1))
    await _said(world, on_release, AskPause("stop"), at)
    assert (await world.value("release")).state is QueueState.PAUSED


async def test_a_late_label_does_not_overtake_a_cancel(world: World) -> None:
    """Hurts the author: a label whose delivery comes again merges what was cancelled since."""
    await world.make_queue(state=QueueState.PAUSED, enqueueing_label="merge it")
    number = await world.open()
    await world.fault({"event": "pull_request", "action": "labeled"}, "drop")
    await world.act("label", by="alice", number=number, label="merge it")
    await world.rest(2)
    await world.comment("/merge cancel", on=number, by="alice")
    await world.settle()
    record = await _repository(world)
    added = LabelChanged(_where(record), number, "merge it")
    await comments.answer_label(world.runtime, record, added)
    assert dict((await world.value()).entries) == {}


async def test_labels_of_the_same_second_are_all_heard(world: World) -> None:
    """Hurts the second author: two labels set in one second count as one command."""
    await world.make_queue(state=QueueState.PAUSED, enqueueing_label="merge it")
    numbers = [await world.open(), await world.open()]
    for number in numbers:
        await world.act("label", by="alice", number=number, label="merge it")
    await world.settle()
    assert sorted((await world.value()).entries) == numbers


def _alice(world: World, channel: Channel) -> Actor:
    account = world.sandbox.world.account("alice")
    assert account is not None
    return Actor(ActorKind.PERSON, "alice", str(account.id), channel)


async def _repository(world: World) -> RepositoryRecord:
    queue = await world.queue()
    record = await world.runtime.store.read(access.repository_by_ref, None, queue.repo)
    assert record is not None
    return record


def _where(record: RepositoryRecord) -> Where:
    return Where(RepoId(record.ref.host, record.provider_id), record.ref)


async def _said(world: World, number: int, ask: Ask, at: datetime) -> None:
    """Alice says this in a comment whose delivery arrives now."""
    record = await _repository(world)
    alice = _alice(world, Channel.COMMENT)
    source_id = f"{number}{at.timestamp():.0f}"
    said_at = ProviderTime(at)
    asked = Asked(_where(record), number, alice, ask, AskSource.COMMENT, source_id, said_at)
    await comments.answer_comment(world.runtime, record, asked)
