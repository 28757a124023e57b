"""The health of a queue: its page and `/getMergeQueueStatistics`, over either database."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.dashboard.charts import Chart, Series
from service.mergequeue.api.models.answers import statistics as answers
from service.mergequeue.engine.model import Detail
from service.mergequeue.engine.outputs import EntryMoved, QueueStateChanged, Recorded
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Rates
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import statistics
from service.mergequeue.operations.statistics import Part
from service.mergequeue.store import statistics as stored
from service.vocabulary import SYSTEM
from tests.dashboard import queue_stage
from tests.dashboard.queue_stage import a_queue, an_entry, at, ended, passed

PATH = "/octo/widgets/main/health"
PENDING, TESTING = EntryState.PENDING, EntryState.TESTING
READY, STARTED, AHEAD = Reason.NOW_READY, Reason.TEST_STARTED, Reason.AHEAD_FAILED


@pytest.fixture
async def stage(store):
    return await queue_stage.staged(store)


def moved(pr, minutes, origin, state, reason):
    event = EntryMoved(pr, f"e{pr}", origin, state, reason, None, Detail())
    return Recorded(at(minutes), SYSTEM, event)


async def past(stage):
    """#7 merged after a restart, #8 failed yesterday, #9 was removed, #10 is in the queue."""
    run = passed(3, (7,), created_at=at(30), finished_at=at(10))
    left = (
        ended(7, run, 10, submitted_at=at(70)),
        an_entry(8, state=EntryState.FAILED, reason=Reason.REQUIRED_STATUS_FAILED,
                 submitted_at=at(26 * 60), state_since=at(25 * 60)),
        an_entry(9, state=EntryState.CANCELLED, reason=Reason.HEAD_CHANGED,
                 submitted_at=at(9), state_since=at(4)),
    )  # fmt: skip
    moves = (
        moved(7, 60, EntryState.NOT_READY, PENDING, READY),
        moved(7, 55, PENDING, TESTING, STARTED),
        moved(7, 40, TESTING, PENDING, AHEAD),
        moved(7, 30, PENDING, TESTING, STARTED),
        moved(7, 12, TESTING, EntryState.TESTS_PASSED, Reason.RUN_PASSED),
        moved(7, 10, EntryState.TESTS_PASSED, EntryState.MERGED, Reason.LANDED),
    )
    await stage.put(a_queue([an_entry(10, 1)]), moves, entries=left, runs=(run,))


async def test_times_divide_by_state_and_a_restart_counts_as_again(stage):
    await past(stage)
    found = await statistics.load_statistics(stage.runtime, stage.queue, 7)
    assert (found.merged, found.failed, found.removed, found.runs) == (1, 1, 1, 1)
    assert found.time_to_merge_p50_s == found.time_to_merge_p95_s == 60 * 60
    minutes = {part: seconds / 60 for part, seconds in found.parts_s.items()}
    assert minutes == {
        Part.TO_ENTER: 10,
        Part.FOR_A_SLOT: 5,
        Part.TESTING: 15,
        Part.FOR_OTHERS_AHEAD: 0,
        Part.AGAIN: 30,
        Part.PAUSED: 0,
    }
    assert found.success_rate == 0.5
    assert [each.failed for each in found.buckets] == [0, 0, 0, 0, 0, 1, 0]
    assert found.buckets[-1].depth == 1
    assert sum(each.merged for each in found.buckets) == 1


async def test_a_pause_in_which_no_test_ran_is_a_part_of_its_own(stage):
    run = passed(3, (7,), created_at=at(30), finished_at=at(10))
    left = ended(7, run, 10, submitted_at=at(70))
    running, paused = QueueState.RUNNING, QueueState.PAUSED
    changes = [
        Recorded(at(minutes), SYSTEM, QueueStateChanged(*pair, None))
        for minutes, pair in ((65, (running, paused)), (50, (paused, running)),
                              (20, (running, paused)), (12, (paused, running)),
                              (5, (running, paused)))
    ]  # fmt: skip
    moves = [
        moved(7, 60, EntryState.NOT_READY, PENDING, READY),
        moved(7, 30, PENDING, TESTING, STARTED),
        moved(7, 10, TESTING, EntryState.MERGED, Reason.LANDED),
    ]
    events = sorted([*changes, *moves], key=lambda each: each.at)
    await stage.put(a_queue(), events, entries=(left,), runs=(run,))
    found = await statistics.load_statistics(stage.runtime, stage.queue, 7)
    minutes = {part: seconds / 60 for part, seconds in found.parts_s.items() if seconds}
    assert minutes == {
        Part.TO_ENTER: 5,
        Part.FOR_A_SLOT: 20,
        Part.TESTING: 20,
        Part.PAUSED: 15,
    }


async def test_a_pause_counts_from_before_the_span_and_the_submission(stage):
    day = 24 * 60
    run = passed(3, (7,), created_at=at(30), finished_at=at(10))
    left = ended(7, run, 10, submitted_at=at(8 * day))
    running, paused = QueueState.RUNNING, QueueState.PAUSED
    changes = [
        Recorded(at(minutes), SYSTEM, QueueStateChanged(*pair, None))
        for minutes, pair in ((99 * day, (running, paused)), (98 * day, (paused, running)),
                              (9 * day, (running, paused)), (6 * day, (paused, running)))
    ]  # fmt: skip
    moves = [
        moved(7, 8 * day, EntryState.NOT_READY, PENDING, READY),
        moved(7, 30, PENDING, TESTING, STARTED),
        moved(7, 10, TESTING, EntryState.MERGED, Reason.LANDED),
    ]
    await stage.put(a_queue(), [*changes, *moves], entries=(left,), runs=(run,))
    for days in (1, 7, 90):
        found = await statistics.load_statistics(stage.runtime, stage.queue, days)
        assert found.parts_s[Part.PAUSED] == 2 * day * 60
        assert found.parts_s[Part.FOR_A_SLOT] == (6 * day - 30) * 60
    begun = at(7 * day)
    found = await stage.runtime.store.read(stored.since, stage.queue.id, begun)
    assert found.pauses == ((at(9 * day), at(6 * day)),)


async def test_a_day_has_hours_and_leaves_out_what_ended_before(stage):
    await past(stage)
    found = await statistics.load_statistics(stage.runtime, stage.queue, 1)
    assert (found.merged, found.failed, len(found.buckets)) == (1, 0, 24)
    assert found.buckets[1].start - found.buckets[0].start == timedelta(hours=1)
    assert found.ejections == {Reason.HEAD_CHANGED: 1}


async def test_the_page_has_figures_charts_and_their_tables(stage):
    await past(stage)
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
        assert "Half of the pull requests merge within 1 h" in page.text
        assert "1 merged, 1 failed, 1 removed" in page.text
        assert "new commits were pushed" in page.text
        assert page.text.count("Show as table") == 5
        assert f"{PATH}?span=90d" in page.links
        for span in ("24h", "30d", "90d"):
            reply = await browser.get(f"{PATH}?span={span}", host="localhost")
            assert reply.status == 200
            assert len(reply.body) < 100_000
        wrong = await browser.get(f"{PATH}?span=2d", host="localhost")
        assert wrong.status == 400
        assert b"`span` takes one of" in wrong.body
        missing = await browser.get("/octo/widgets/other/health", host="localhost")
        assert missing.status == 404
        queue = await browser.see("/octo/widgets/main", host="localhost")
        assert PATH in queue.links


async def test_a_queue_without_a_past_says_so(stage):
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
    assert "Nothing merged in this time" in page.text
    assert "None did." in page.text
    assumed = "The queue plans with what is assumed until its own test runs say more: "
    said = f"{assumed}2.0 % of test runs flake, 3.0 % of pull requests conflict, "
    assert f"{said}0.0 % of failures are foreseen." in page.text


async def test_the_page_and_the_endpoint_name_the_rates_that_the_queue_plans_with(stage):
    minutes = {"lint": 2.0, "unit": 12.5}
    await stage.put(replace(a_queue(), rates=Rates(0.019, 0.0412, minutes, 0.4)))
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
    said = "the rates of its newest test runs: 1.9 % of test runs flake, "
    said += "4.1 % of pull requests conflict, "
    assert f"{said}40.0 % of failures are foreseen, unit takes 12 min." in page.text
    found = await statistics.load_statistics(stage.runtime, stage.queue, 7)
    shown = answers.MeasuredRates.of(found.rates).model_dump()
    assert shown == {"flake": 0.019, "conflict": 0.0412, "foreseen": 0.4, "minutes": minutes}


def test_the_only_value_of_a_line_is_a_stroke_that_can_be_seen():
    def path_of(*values):
        (drawn,) = Chart("t", "h", "abcd", [Series("s", "c1", values)], is_lines=True).drawn
        return drawn.path

    assert path_of(None, None, 4.0, None) == "M61.00 0.00h3.00"
    assert path_of(2.0, 4.0, None, 4.0) == "M12.50 50.00L37.50 0.00M86.00 0.00h3.00"
