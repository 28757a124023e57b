"""Rules of entry, from what people do on GitHub to what is merged, and when."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.rules import EntryRule, Period
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import entering, facts, queues, reconcile
from service.mergequeue.operations.queues import QueueRequest
from service.vocabulary import SYSTEM, Channel, Sha
from tests.harness.world import CI, World, WorldOptions

ENTERS = EntryRule("ready", '"ship it" in labels && approvals.size() >= 1', enter=True)
AUTO = EntryRule("auto-merge", "auto_merge", enter=True)
HOTFIX = EntryRule("hotfix", '"hotfix" in labels', priority=10)


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """A check takes 3 s, or as long as a test says."""
    return WorldOptions(ci=CI.replace("seconds: 3", f"seconds: {getattr(request, 'param', 3)}"))


async def change_rules(world: World, *rules: EntryRule) -> None:
    request = QueueRequest({"rules": rules})
    await queues.update(world.runtime, await world.queue(), request, SYSTEM)


async def unmet(world: World, number: int) -> tuple[Reason, ...]:
    return (await world.entry(number)).unmet


async def is_queued(world: World, number: int) -> bool:
    return number in (await world.value()).entries


def period(world: World, after_s: float, minutes: int) -> Period:
    start = (world.clock.now() + timedelta(seconds=after_s)).replace(microsecond=0)
    return Period(start.strftime("%Y-%m-%dT%H:%M:%S"), "UTC", minutes)


async def test_a_label_and_an_approval_let_it_in_by_themselves(world: World):
    await world.make_queue(rules=(ENTERS,))
    number = await world.open()
    await world.act("label", number=number, label="ship it")
    await world.settle()
    assert not await is_queued(world, number)
    await world.act("approve", by="alice", number=number)
    await world.settle()
    assert await world.merged() == [number]
    author = (await world.entry(number)).submitted_by
    assert (author.login, author.channel) == ("ready", Channel.RULE)
    assert "rule `ready`" in world.comment_on(number)


async def test_auto_merge_lets_it_in_once_its_checks_have_passed(world: World):
    await world.make_queue(rules=(AUTO,))
    number = await world.open()
    await world.act("auto_merge", number=number)
    await world.settle()
    assert await world.merged() == [number]


async def test_one_whose_events_were_lost_is_found_by_the_sweep(world: World):
    await world.make_queue(rules=(AUTO,))
    await world.fault({"event": "pull_request"}, "drop")
    number = await world.open()
    await world.act("auto_merge", number=number)
    await world.settle()
    assert not await is_queued(world, number)
    await entering.enter_everywhere(world.runtime)
    await world.settle()
    assert await world.merged() == [number]


async def test_what_is_not_ready_does_not_enter_by_a_rule(world: World):
    await world.make_queue(rules=(AUTO,), state=QueueState.PAUSED)
    number = await world.open()
    await world.act("draft", number=number)
    await world.act("auto_merge", number=number)
    await world.settle()
    await entering.enter_everywhere(world.runtime)
    assert not await is_queued(world, number)
    await world.act("draft", number=number, draft=False)
    await world.settle()
    assert await is_queued(world, number)


async def test_a_failed_head_comes_back_only_with_another_head(world: World):
    await world.make_queue(rules=(AUTO,))
    other, number = (
        await world.open(files={"a.txt": "x\n"}),
        await world.open(files={"b.txt": "x\n"}),
    )
    await world.act("auto_merge", number=other)
    await world.settle()
    await world.act("auto_merge", number=number)
    await world.settle()
    assert await world.state(number) == "FAILED"
    first = await world.entry(number)
    await world.act("label", number=number, label="again")
    await world.rest(700)
    await entering.enter_everywhere(world.runtime)
    await world.settle()
    assert (await world.entry(number)).id == first.id
    await world.act("push", number=number, files={"b.txt": None, "good.txt": "x\n"})
    await world.settle()
    assert await world.merged() == [other, number]


async def test_what_a_person_took_out_stays_out(world: World):
    await world.make_queue(rules=(AUTO,), state=QueueState.PAUSED)
    number = await world.open()
    await world.act("auto_merge", number=number)
    await world.settle()
    await world.comment("/merge cancel", on=number)
    await world.settle()
    await entering.enter_everywhere(world.runtime)
    assert await world.state(number) == "CANCELLED"


async def test_a_head_enters_once_however_many_look_at_once(world: World):
    await world.make_queue(rules=(AUTO,), state=QueueState.PAUSED)
    await world.fault({"event": "pull_request"}, "drop")
    number = await world.open()
    await world.act("auto_merge", number=number)
    await world.settle()
    pull = world.repository.issues[number].pull
    assert pull is not None
    queue, head = await world.queue(), Sha(pull.head_sha)
    looks = [entering.enter_one(world.runtime, queue, number, head) for _ in range(4)]
    await asyncio.gather(*looks)
    assert await is_queued(world, number)
    value = await world.value()
    assert value.next_entry == 2


async def test_a_rule_that_has_changed_under_its_name_lets_nothing_in(world: World):
    await world.make_queue(rules=(AUTO,), state=QueueState.PAUSED)
    await world.fault({"event": "pull_request"}, "drop")
    number = await world.open()
    await world.act("auto_merge", number=number)
    await world.settle()
    queue, runtime = await world.queue(), world.runtime
    pull = await runtime.providers[queue.repo.host].pull_request(queue.repo, number)
    config = (await world.value()).config
    read = await facts.facts_of(runtime, queue, config, pull)
    await change_rules(world, replace(AUTO, when="auto_merge && !draft"))
    await entering.enter_judged(runtime, queue, pull, read, config.rules)
    assert not await is_queued(world, number)
    now_in_force = (await world.value()).config.rules
    await entering.enter_judged(runtime, queue, pull, read, now_in_force)
    assert await is_queued(world, number)


@pytest.mark.parametrize("world_options", [60], indirect=True)
async def test_a_freeze_that_begins_while_it_is_tested_keeps_it_until_its_end(world: World):
    await world.make_queue()
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.until(lambda: _is(world, number, EntryState.TESTING))
    freeze = EntryRule("freeze", during=period(world, 5, 10), wait_for="the release")
    await change_rules(world, freeze)
    await reconcile.read_live_queues(world.runtime)
    await world.until(lambda: _is(world, number, EntryState.TESTS_PASSED))
    assert await unmet(world, number) == (Reason.WAITS_FOR_RULE,)
    await world.until(lambda: _is(world, number, EntryState.NOT_READY))
    assert await world.merged() == []
    await world.settle()
    assert "the release" in world.comment_on(number)
    await world.rest(600)
    await world.settle()
    assert await world.merged() == [number]


async def _is(world: World, number: int, state: EntryState) -> bool:
    entry = (await world.value()).entries.get(number)
    return entry is not None and entry.state is state


async def test_it_waits_for_those_on_which_it_depends(world: World):
    await world.make_queue()
    first, second = await world.open(), await world.open()
    upper = await world.open(body=f"Change it.\r\n\r\nDepends-On: #{first}, #{second}\r\n")
    await world.comment("/merge", on=upper)
    await world.settle()
    assert await unmet(world, upper) == (Reason.DEPENDS_ON,)
    assert f"`#{first}` and `#{second}`, on which it depends" in world.comment_on(upper)
    await world.comment("/merge", on=first)
    await world.settle()
    assert await world.state(upper) == "NOT_READY"
    await world.act("merge", by="alice", number=second, bypass=True)
    await world.settle()
    assert (await world.merged())[-1] == upper


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("Depends-On: #{closed}", "`#{closed}` was closed without a merge"),
        ("Depends-On: #900", "no PR of this repository"),
        ("Depends-On: nothing", "it names no PR"),
        ("Not-Before: soon", "`soon` cannot"),
    ],
)
async def test_a_line_that_cannot_be_met_says_so_until_it_is_corrected(
    world: World, lines: str, words: str
):
    await world.make_queue()
    closed = await world.open()
    await world.act("close", number=closed)
    number = await world.open(body=lines.format(closed=closed))
    await world.comment("/merge", on=number)
    await world.settle()
    assert words.format(closed=closed) in world.comment_on(number)
    await world.act("edit", number=number, body="Depends-On: none of it `Depends-On`"[12:])
    await world.settle()
    assert await world.merged() == [number]


async def test_dependencies_that_go_round_are_named(world: World):
    await world.make_queue()
    first = await world.open()
    second = await world.open(body=f"Depends-On: #{first}")
    await world.act("edit", number=first, body=f"depends-on: #{second}")
    await world.comment("/merge", on=first)
    await world.settle()
    assert f"`#{second}` depends on it" in world.comment_on(first)
    await world.act("edit", number=first, body=f"Depends-On: #{first}")
    await world.settle()
    assert "it names itself" in world.comment_on(first)


async def test_it_is_not_merged_before_its_time(world: World):
    await world.make_queue()
    at = world.clock.now() + timedelta(minutes=30)
    number = await world.open(body=f"Not-Before: {at.isoformat()}")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await unmet(world, number) == (Reason.NOT_BEFORE,)
    assert f"{at:%H:%M} UTC" in world.comment_on(number)
    await world.rest(1800)
    await world.settle()
    assert await world.merged() == [number]


async def test_a_rule_gives_the_priority_and_a_person_gives_it_for_good(world: World):
    await world.make_queue(rules=(HOTFIX,), state=QueueState.PAUSED)
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.act("label", number=number, label="hotfix")
    await world.settle()
    assert (await world.entry(number)).priority == 10
    assert "rule `hotfix`" in world.comment_on(number)
    await world.act("unlabel", number=number, label="hotfix")
    await world.settle()
    assert (await world.entry(number)).priority == 100
    await world.comment("/merge -p low", on=number)
    await world.act("label", number=number, label="hotfix")
    await world.settle()
    assert (await world.entry(number)).priority == 200


async def test_a_rule_that_is_removed_makes_nothing_wait(world: World):
    waits = EntryRule("reviews", "approvals.size() < 2", wait_for="two approvals")
    await world.make_queue(rules=(waits,))
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await unmet(world, number) == (Reason.WAITS_FOR_RULE,)
    await change_rules(world)
    await reconcile.read_live_queues(world.runtime)
    await world.settle()
    assert await world.merged() == [number]


async def test_rules_see_the_paths_that_it_changes(world: World):
    docs: Any = EntryRule("docs", 'only("docs/*")', enter=True)
    await world.make_queue(rules=(docs,))
    code = await world.open(files={"docs/a.md": "x\n", "a.py": "x\n"})
    number = await world.open(files={"docs/b.md": "x\n"})
    await world.settle()
    await entering.enter_everywhere(world.runtime)
    await world.settle()
    assert await world.merged() == [number]
    assert not await is_queued(world, code)
