"""What a removal would do, told beforehand."""

from dataclasses import replace

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.explaining import previews
from service.mergequeue.engine.explaining.previews import Preview
from service.mergequeue.engine.inputs import Cancel
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from tests.mergequeue.stage import ALICE, START, Stage


def four(*, manual_land: bool = False) -> Stage:
    """1 to 4 in the queue, two of them under test."""
    stage = Stage(QueueConfig(concurrency=2), manual_land=manual_land)
    for pr in (1, 2, 3, 4):
        stage.tell(stage.submit(pr))
    return stage


def preview(stage: Stage, pr: int) -> Preview | Refused:
    return previews.of_command(stage.queue, Cancel(pr, Reason.API_REQUESTED, ALICE), START)


def test_those_tested_on_top_begin_again_and_all_behind_move_up() -> None:
    stage = four()
    runs = (stage.run_id(1), stage.run_id(2))
    assert preview(stage, 1) == Preview(1, runs, restarted=(2,), moved_up=(2, 3, 4))
    assert preview(stage, 2) == Preview(2, runs[1:], restarted=(), moved_up=(3, 4))
    assert preview(stage, 4) == Preview(4, (), (), ())


def test_a_preview_is_what_the_removal_then_does() -> None:
    stage = four()
    told = preview(stage, 1)
    assert isinstance(told, Preview)
    stage.tell(Cancel(1, Reason.API_REQUESTED, ALICE))
    assert not set(told.interrupted) & set(stage.queue.runs)
    assert [pr for pr, one in stage.queue.entries.items() if one.restarts] == [2]


def test_what_is_not_queued_is_refused_as_its_removal_would_be() -> None:
    refused = preview(four(), 9)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NOT_IN_QUEUE


def test_who_is_not_ready_holds_no_place() -> None:
    stage = four()
    facts = replace(stage.submit(5).facts, draft=True)
    stage.tell(replace(stage.submit(5), facts=facts))
    assert preview(stage, 5) == Preview(5, (), (), ())


def test_high_moves_ahead_of_what_waits_and_urgent_of_what_is_tested_too() -> None:
    stage = four()
    high = replace(stage.submit(4), priority=10)
    assert previews.of_command(stage.queue, high, START) == Preview(4, (), (), (4,), (3,))
    urgent = previews.of_command(stage.queue, replace(high, priority=0), START)
    assert isinstance(urgent, Preview)
    assert urgent.interrupted == (stage.run_id(1), stage.run_id(2))
    assert (urgent.moved_up, urgent.moved_back) == ((4,), (1, 2, 3))
