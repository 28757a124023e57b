"""A queue in shadow lands nothing, whatever happens to it (docs/design/shadow.md 1)."""

import random
from datetime import timedelta

import pytest

from service.errors import InvariantBroken
from service.mergequeue.engine import invariants
from service.mergequeue.engine.config import QueueConfig, changed
from service.mergequeue.engine.inputs import Configure
from service.mergequeue.engine.model import MergeQueue, ShadowTime
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunStatus
from service.vocabulary import SYSTEM
from tests.mergequeue.script import Script
from tests.mergequeue.stage import ALICE, START, Stage

QUEUES = (
    "queue SINGLE shadow=yes concurrency=3",
    "queue SINGLE shadow=yes concurrency=3 batch=3 batching_max_wait_time_minutes=0",
    "queue SINGLE shadow=yes concurrency=4 optimistic depth=1",
    "queue SINGLE shadow=yes concurrency=4 batch=2 batch_sizing=ADAPTIVE",
    "queue PARALLEL shadow=yes concurrency=4",
    "queue SINGLE shadow=yes concurrency=3 direct_merge_mode=ALWAYS",
)
STEPS = 40
PRS = range(1, 9)


def next_line(script: Script, chance: random.Random) -> str:
    """Something that people, CI or the other queue may do now."""
    queue = script.stage.queue
    running = [run for run in queue.runs.values() if run.status is RunStatus.IN_PROGRESS]
    passed = [one.pr for one in queue.entries.values() if one.state is EntryState.TESTS_PASSED]
    number = chance.choice(PRS)
    lines = [f"submit {number} t={chance.choice(('a', 'b', 'a,b'))}", "foreign", "+30m", "+25h"]
    lines += [f"cancel {number}"] if number in queue.entries else []
    lines += [f"pass r{run.number}" for run in running] * 2
    lines += [f"fail r{run.number}" for run in running[:1]]
    lines += [f"foreign with {pr}" for pr in passed] * 2
    return chance.choice(lines)


@pytest.mark.parametrize("title", QUEUES)
@pytest.mark.parametrize("seed", range(3))
def test_it_never_lands(title: str, seed: int) -> None:
    script, chance = Script(title), random.Random(f"{title}{seed}")
    passed = 0
    for _ in range(STEPS):
        lines = script.play(next_line(script, chance))
        queue = script.stage.queue
        assert queue.landing is None
        assert not any(" lands by" in line or "tip moved, landed" in line for line in lines)
        passed += any("-> TESTS_PASSED" in line for line in lines)
    assert passed
    assert script.stage.lands == {}


def passed_queue() -> MergeQueue:
    """A queue in shadow whose only pull request has passed."""
    script = Script(QUEUES[0])
    for line in ("submit 1", "pass r1"):
        script.play(line)
    return script.stage.queue


def test_its_time_begins_and_ends_with_the_setting() -> None:
    stage = Stage(QueueConfig())
    assert stage.queue.shadow_time is None
    stage.tell(Configure({"shadow": True}, ALICE))
    assert stage.queue.shadow_time is not None
    began = stage.queue.shadow_time.since
    stage.passes(timedelta(hours=1))
    stage.tell(Configure({"shadow": False}, ALICE))
    ended = stage.queue.shadow_time
    assert ended is not None
    assert (ended.since, ended.until) == (began, began + timedelta(hours=1))
    stage.tell(Configure({"shadow": True}, ALICE))
    assert stage.queue.shadow_time == ShadowTime(ended.until)


def test_a_landing_in_shadow_breaks_an_invariant() -> None:
    queue = passed_queue()
    lit = replace(queue, config=changed(queue.config, {"shadow": False}))
    draft = Draft(lit, START, SYSTEM)
    landing.land(draft)
    assert draft.queue.landing is not None
    draft.put_queue(replace(draft.queue, config=queue.config))
    with pytest.raises(InvariantBroken, match="lets nothing land"):
        invariants.check(draft)


def test_a_verdict_of_an_earlier_time_in_shadow_ends_nothing() -> None:
    script = Script(QUEUES[0])
    for line in ("submit 1", "pass r1", "hold freeze LAND", "configure shadow=no", "+25h"):
        script.play(line)
    assert script.stage.queue.entries[1].would_land_at is not None
    lines = script.play("configure shadow=yes")
    assert not any("decided_in_shadow" in line for line in lines)
    assert script.stage.queue.entries[1].would_land_at is None
    script.play("release freeze")
    assert script.stage.queue.entries[1].would_land_at == script.stage.now
