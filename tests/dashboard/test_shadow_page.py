"""The block of a queue in shadow on its page, and its report over stored submissions."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.mergequeue.engine.model import Detail, Entry, Named, ShadowTime
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import shadow_report
from service.mergequeue.operations.shadow_report import ShadowReport
from service.mergequeue.store import shadow
from service.mergequeue.store.shadow import SeenMerge
from service.vocabulary import Sha
from tests.dashboard import queue_stage
from tests.dashboard.queue_stage import NOW, QueueStage, a_queue, an_entry

PATH = "/octo/widgets/main"
BEGAN = NOW - timedelta(days=2)
SHA = Sha("a" * 40)


@pytest.fixture
async def stage(store):
    return await queue_stage.staged(store)


def left(number: int, reason: Reason, **fields: Any) -> Entry:
    """A submission that left the queue an hour after it entered."""
    state = EntryState.CANCELLED
    state = EntryState.MERGED if reason.record.merged else state
    state = EntryState.FAILED if reason.record.failed else state
    began = BEGAN + timedelta(hours=number)
    return replace(
        an_entry(number),
        state=state,
        reason=reason,
        submitted_at=began,
        state_since=began + timedelta(hours=1),
        **fields,
    )


def passed(number: int, reason: Reason) -> Entry:
    """One that would have landed 10 minutes after it entered."""
    return left(number, reason, would_land_at=BEGAN + timedelta(hours=number, minutes=10))


async def put(stage: QueueStage, *entries: Entry, merged: dict[int, int]) -> ShadowReport:
    """Store a queue in shadow that these have left; of some the merge by others, in minutes."""
    value = a_queue()
    config = replace(value.config, shadow=True)
    await stage.put(replace(value, config=config, shadow_time=ShadowTime(BEGAN)), entries=entries)
    seen = [
        SeenMerge(one.id, one.submitted_at + timedelta(minutes=merged[one.pr]), SHA)
        for one in entries
        if one.pr in merged
    ]
    await stage.runtime.store.run(shadow.note_merges, stage.queue, seen)
    return await shadow_report.load_report(stage.runtime, stage.queue)


FAILED = Detail(text="failed", checks=(Named("e2e", "https://ci.example/1"),))


async def test_sums_count_what_both_sides_decided(stage):
    report = await put(
        stage,
        passed(1, Reason.MERGED_BY_HAND),
        passed(2, Reason.DECIDED_IN_SHADOW),
        passed(3, Reason.DECIDED_IN_SHADOW),
        passed(4, Reason.HEAD_CHANGED),
        left(5, Reason.REQUIRED_STATUS_FAILED, detail=FAILED),
        left(6, Reason.REQUIRED_STATUS_FAILED, detail=FAILED),
        left(7, Reason.MERGED_BY_HAND),
        merged={1: 30, 2: 50, 6: 40, 7: 20},
    )
    counts = (report.submitted, report.passed, report.failed, report.merged)
    assert counts == (7, 4, 2, 4)
    assert report.merged_undecided == 1
    assert (report.compared, report.same) == (5, 3)
    assert (report.passed_not_merged, report.failed_but_merged) == (1, 1)
    assert report.to_verdict is not None
    assert report.to_merge is not None
    assert (report.to_verdict.p50_s, report.to_merge.p50_s) == (600, 2400)
    assert report.to_merge.p95_s == pytest.approx(2940)
    assert report.saved_p50_s == 1800
    assert report.is_small


async def test_the_newest_submission_of_a_head_counts_and_older_ones_do_not(stage):
    again = replace(passed(1, Reason.MERGED_BY_HAND), id="again")
    first = left(1, Reason.REQUIRED_STATUS_FAILED, detail=FAILED)
    before = replace(passed(2, Reason.MERGED_BY_HAND), submitted_at=BEGAN - timedelta(hours=1))
    await stage.put(a_queue(), entries=(first,))
    report = await put(stage, again, before, merged={1: 30})
    assert (report.submitted, report.passed, report.failed) == (1, 1, 0)


async def test_a_verdict_is_not_lost_when_its_head_enters_again(stage):
    first = replace(passed(1, Reason.DECIDED_IN_SHADOW), id="first")
    await stage.put(a_queue(), entries=(first,))
    report = await put(stage, left(1, Reason.USER_REQUESTED), merged={})
    assert (report.submitted, report.passed, report.passed_not_merged) == (1, 1, 1)


@pytest.mark.parametrize("reason", [Reason.MERGED_BY_HAND, Reason.MERGED_INTO_OTHER_BRANCH])
async def test_a_merge_of_another_head_or_elsewhere_is_not_compared(stage, reason):
    report = await put(stage, passed(1, reason), merged={})
    assert (report.passed, report.merged, report.compared, report.same) == (1, 0, 0, 0)


async def test_the_page_shows_it_and_names_no_next_landing(stage):
    failed = left(6, Reason.REQUIRED_STATUS_FAILED, detail=FAILED)
    early = left(7, Reason.MERGED_BY_HAND)
    await put(stage, passed(1, Reason.MERGED_BY_HAND), failed, early, merged={1: 30, 6: 40, 7: 5})
    await stage.runtime.store.run(shadow.note_red, failed.id, is_red=True)
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
    assert "It lands nothing and writes nothing on pull requests." in page.text
    assert "1 of 2" in page.text
    assert "Left out: 1 that it merged before a verdict" in page.text
    assert "few so far: this says little" in page.text
    assert "#6 failed here by e2e and was merged; the target was red then" in page.text
    assert "next landing" not in page.text


async def test_a_queue_that_was_never_in_shadow_has_an_empty_report(stage):
    report = await shadow_report.load_report(stage.runtime, stage.queue)
    assert (report.since, report.submitted, report.runs_per_merge) == (None, 0, None)
