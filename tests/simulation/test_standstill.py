"""The watchdog never calls a healthy history a standstill, and always a planted one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine import engine
from service.mergequeue.engine.explaining.standstill import (
    OpenEffect,
    Standstill,
    StandstillKind,
    standstills,
)
from service.mergequeue.engine.inputs import FactsChanged, Input, SetState, Submit
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import QueueState
from tests.mergequeue.script import Script
from tests.mergequeue.stage import ALICE, START, a_queue, facts_of
from tests.simulation.world import World

SEEDS = 12
LONG = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


class Watched(World):
    """A world that is looked at after each step as if nothing had moved for an hour."""

    def tell(self, one: Input) -> None:
        super().tell(one)
        found = self.watched()
        assert found == (), f"{found} after {one}"

    def watched(self) -> tuple[Standstill, ...]:
        """What is found; a landing under way has its effect until its outcome is told."""
        now, queue = self.now, self.queue
        effects = [OpenEffect(each.run, "build", each.run, True, now, now) for each in self.builds]
        if queue.landing is not None:
            run = queue.landing.run
            effects.append(OpenEffect(run, "land", run, True, now, now))
        return standstills(queue, effects, self.wake_at, now - LONG, now)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_healthy_history_is_called_a_standstill(seed: int) -> None:
    Watched(seed).play()


def building() -> tuple[MergeQueue, str]:
    """A queue whose first run is being built, and the run."""
    queue = engine.step(a_queue(), Submit(facts_of(1), ALICE), START).queue
    run = next(iter(queue.runs))
    return queue, run


def found_in(
    queue: MergeQueue, *effects: OpenEffect, after: timedelta = 4 * MINUTE
) -> dict[StandstillKind, str]:
    """Kinds and subjects of what is found when the queue has been the same since the start."""
    found = standstills(queue, effects, None, START, START + after)
    return {one.kind: one.subject for one in found}


def test_an_effect_that_is_never_settled_is_named() -> None:
    queue, run = building()
    sent = OpenEffect(f"{run}/build", "build", run, True, START, START, heads=1)
    assert found_in(queue, sent, after=2 * MINUTE) == {}
    assert found_in(queue, sent) == {StandstillKind.EFFECT_UNDER_WAY: f"{run}/build"}


def test_a_long_test_branch_has_more_time() -> None:
    queue, run = building()
    sent = OpenEffect(f"{run}/build", "build", run, True, START, START, heads=100)
    assert found_in(queue, sent) == {}


def test_an_effect_that_nobody_takes_up_is_named() -> None:
    queue, run = building()
    ready = OpenEffect(f"{run}/build", "build", run, False, None, START)
    assert found_in(queue, ready) == {StandstillKind.EFFECT_NOT_TAKEN: f"{run}/build"}
    behind = replace(ready, is_first=False)
    assert found_in(queue, behind) == {}


def test_an_effect_that_waits_for_the_providers_limit_is_no_standstill() -> None:
    queue, run = building()
    later = START + LONG
    ready = OpenEffect(f"{run}/build", "build", run, False, START, later, throttled=True)
    assert found_in(queue, ready) == {}


def test_a_run_in_building_without_an_effect_is_named() -> None:
    queue, run = building()
    assert found_in(queue, after=2 * MINUTE) == {}
    assert found_in(queue) == {StandstillKind.BUILD_MISSING: run}


def test_a_landing_without_an_effect_is_named() -> None:
    script = Script("queue SINGLE manual land")
    for line in ("submit 1", "pass r1"):
        script.play(line)
    queue, run = script.stage.queue, script.stage.run_id(1)
    sent = OpenEffect(f"{run}/land", "land", run, True, START + 3 * MINUTE, START)
    assert found_in(queue, sent) == {}
    assert found_in(queue) == {StandstillKind.LANDING_MISSING: run}


def test_a_lost_turn_is_named_with_its_entry() -> None:
    paused = engine.step(a_queue(), SetState(QueueState.PAUSED, None, ALICE), START).queue
    waiting = engine.step(paused, Submit(facts_of(1), ALICE), START).queue
    assert found_in(waiting) == {}
    entry = waiting.entries[1]
    assert found_in(replace(waiting, state=QueueState.RUNNING)) == {
        StandstillKind.ENTRY_FORGOTTEN: f"entry {entry.id}",
        StandstillKind.TURN_MISSED: "turn",
    }


def test_a_pull_request_that_is_not_ready_is_no_standstill() -> None:
    queue = engine.step(a_queue(), Submit(replace(facts_of(1), draft=True), ALICE), START).queue
    assert found_in(queue) == {}
    ready = engine.step(queue, FactsChanged(facts_of(1)), START).queue
    assert StandstillKind.BUILD_MISSING in found_in(ready)


def test_a_clock_that_was_missed_is_named() -> None:
    queue = a_queue()
    late = standstills(queue, (), START, START, START + 2 * MINUTE)
    assert [one.kind for one in late] == [StandstillKind.CLOCK_MISSED]
    assert standstills(queue, (), START, START, START + MINUTE / 2) == ()
