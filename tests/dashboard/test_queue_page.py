"""The page of a queue: the tip, the runs on it, searches, who waits for what, what left."""

from dataclasses import replace
from typing import Any

import pytest

from service.dashboard import line
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import Hold, RequiredSet
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import QueueState, RunStatus
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import SYSTEM, Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import parsed, token_of
from tests.dashboard.queue_stage import (
    a_queue,
    a_run,
    an_entry,
    at,
    has_left,
    in_run,
    passed,
    person,
)
from tests.harness.expect import expect

PATH = "/octo/widgets/main"
HTML_BYTES_MAX = 150_000


@pytest.fixture
async def stage(store):
    return await queue_stage.staged(store)


async def seen(stage, path=PATH):
    async with stage.browsing() as browser:
        return await browser.see(path, host="localhost")


async def test_a_busy_queue_is_drawn_with_its_runs_its_search_and_its_landings(stage):
    value, left = queue_stage.busy()
    await stage.put(value, **left)
    for run in left["runs"][1:]:
        await stage.landed(run)
    await stage.landed(left["runs"][0], is_equal=False)
    page = await seen(stage)
    expect(page.text).matches("queue.txt")
    for link in ("pull/478", "pull/482", "pull/497", "pull/440"):
        assert f"{PATH}/{link}" in page.links
    assert "/octo/widgets/runs/run-3124" in page.links
    labels = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg" and "role" in attrs]
    assert "Ran 13:46 to 13:57, failed" in labels
    assert any(each.startswith("Started 13:58, expected to land 14:1") for each in labels)


async def test_a_tip_that_the_queue_did_not_land_says_which_commit_the_proof_is_of(stage):
    run = passed(7, (7,))
    left = queue_stage.ended(7, run, 4)
    value = a_queue()
    await stage.put(value, entries=(left,), runs=(run,))
    pushed = await seen(stage)
    assert left.landed_sha
    assert value.tip
    assert f"#7 landed 4 min ago as {left.landed_sha[:7]}" in pushed.text
    await stage.put(replace(value, tip=replace(value.tip, sha=left.landed_sha)))
    of_queue = await seen(stage)
    assert "#7 landed 4 min ago\n" in of_queue.text


async def test_one_pull_request_and_no_estimate_say_how_long_it_has_run(stage):
    run = a_run(12, (12,))
    await stage.put(a_queue(in_run(run, 1), [run]))
    page = await seen(stage)
    assert "Running: 1 pull request in the queue" in page.text
    assert "8 min so far" in page.text


async def test_checks_whose_result_is_reused_are_not_shown_as_if_they_were_to_come(stage):
    run = passed(12, (12,), checks=(), reused_from="run-3")
    await stage.put(a_queue(in_run(run, 1), [run]))
    page = await seen(stage)
    labels = [attrs.get("aria-label") for tag, attrs in page.tags if tag == "svg"]
    assert labels.count("passed before") == 3
    assert "not reported yet" not in labels


async def test_an_empty_queue_says_how_to_submit(stage):
    page = await seen(stage)
    assert "Running: the queue is empty" in page.text
    assert "Comment /merge on a pull request for main to submit it." in page.text


async def test_a_queue_that_only_searches_for_a_cause_is_not_called_empty(stage):
    suspects, runs, search = queue_stage.a_search()
    await stage.put(a_queue(suspects, runs, bisections={search.id: search}))
    page = await seen(stage)
    assert "Finding the cause" in page.text
    assert "The queue is empty" not in page.text


async def test_three_hundred_pull_requests_take_pages_of_bounded_size(stage):
    runs = [a_run(nth, (nth,), range(1, nth)) for nth in range(1, 6)]
    tested = [each for nth, run in enumerate(runs, 1) for each in in_run(run, nth)]
    await stage.put(a_queue([*tested, *(an_entry(100 + nth) for nth in range(295))], runs))
    async with stage.browsing() as browser:
        reply = await browser.get(PATH, host="localhost")
        assert len(reply.body) < HTML_BYTES_MAX
        page = parsed(reply.body)
        assert "165 more wait for their turn" in page.text
        assert "1 to 200 of 300 are shown" in page.text
        numbers = {link for link in page.links if link.startswith(f"{PATH}/pull/")}
        assert len(numbers) == line.ENTRIES_MAX
        further = await browser.see(f"{PATH}?after=200", host="localhost")
        numbers |= {link for link in further.links if link.startswith(f"{PATH}/pull/")}
        assert len(numbers) == 300
        for wrong in ("x", "-1", "1" * 9):
            assert (await browser.get(f"{PATH}?after={wrong}", host="localhost")).status == 404


async def test_a_paused_queue_says_who_paused_it_and_why(stage):
    freeze: dict[str, Any] = {"state": QueueState.PAUSED, "state_reason": "release freeze"}
    by_bob: dict[str, Any] = {"state_by": person("bob"), "state_since": at(15)}
    await stage.put(a_queue([an_entry(3)], **freeze, **by_bob))
    page = await seen(stage)
    assert "Paused: 1 pull request in the queue\nThe queue stands still" in page.text
    assert "Paused by bob at 13:50 UTC: release freeze. A maintainer" in page.text
    assert "Waits until the queue is running (it is paused)" in page.text


async def test_a_hold_says_why_and_who_lifts_it(stage):
    hold = Hold("h1", HoldReason.BASE_RED, HoldScope.BOTH, SYSTEM, "", at(52), evidence="4c5d6e7")
    await stage.put(a_queue([an_entry(3)], holds=(hold,)))
    page = await seen(stage)
    assert "Stopped: 1 pull request in the queue" in page.text
    assert "main itself fails its required checks." in page.text
    assert "Evidence: 4c5d6e7." in page.text


def touching(entry, *names):
    """The entry with these impacted targets."""
    found = targets.of(names) if names else targets.ALL
    return replace(entry, targets=found, wide=found)


async def test_in_parallel_mode_each_lane_is_a_column_and_what_touches_everything_joins_them(
    stage,
):
    first, second = a_run(1, (11,)), passed(2, (12,))
    entries = [
        touching(in_run(first, 1)[0], "api", "web"),
        touching(in_run(second, 2)[0], "docs"),
        touching(an_entry(13), "web"),
        touching(an_entry(14)),
        touching(an_entry(15), "docs"),
    ]
    config = QueueConfig(concurrency=6, mode=Mode.PARALLEL)
    await stage.put(a_queue(entries, [first, second], config=config))
    page = await seen(stage)
    assert "Running in 3 lanes: 5 pull requests in the queue" in page.text
    text = " ".join(page.text.split())
    places = [text.index(each) for each in ("Lane 1", "#11", "#13", "Lane 2", "#12", "#14 ")]
    assert places == sorted(places)
    assert text.index("Impacts every target") < text.index("Lane 3") < text.index("#15 ")


async def test_one_that_conflicts_says_with_what_and_has_no_time(stage):
    run = a_run(1, (11,))
    held = an_entry(12, held_by=(11,), reason=Reason.CONFLICT_AHEAD)
    await stage.put(a_queue([*in_run(run, 1), held], [run]), **has_left())
    page = await seen(stage)
    assert "On hold" in page.text
    assert "Waits until the conflict with #11 is gone" in page.text
    assert "after #11" in page.text


async def test_an_overdue_run_says_so(stage):
    run = a_run(1, (11,), created_at=at(90))
    await stage.put(a_queue(in_run(run, 1), [run]), **has_left())
    assert "overdue" in (await seen(stage)).text


async def test_a_queue_of_another_repository_or_organization_is_not_there(store, stage):
    other = await queue_stage.staged(store, "main", "gadgets")
    narrow = await token_of(stage.runtime, Role.READ, repositories=(other.queue.repo,))
    stranger = await token_of(stage.runtime, Role.ADMIN, "elsewhere")
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        nothing = await browser.get("/octo/widgets/other", password=narrow)
        for token in (narrow, stranger):
            reply = await browser.get(PATH, password=token)
            assert (reply.status, reply.body) == (404, nothing.body)
        assert (await browser.get("/octo/gadgets/main", password=narrow)).status == 200
        assert (await browser.get(PATH)).status == 401


async def test_a_branch_with_slashes_or_the_name_of_a_page_has_an_address(store, stage):
    for branch, segment in (("release/2", "release~2"), ("tests", "~tests")):
        other = await queue_stage.staged(store, branch)
        page = await seen(other, f"/octo/widgets/{segment}")
        assert f"Comment /merge on a pull request for {branch}" in page.text


def six_passed():
    """Runs that have passed, by which times are estimated."""
    ended: dict[str, Any] = {
        "status": RunStatus.SUCCEEDED,
        "finished_at": at(100),
        "created_at": at(120),
    }
    return tuple(a_run(number, (number,), **ended) for number in range(1, 7))


async def test_a_failed_check_shows_at_once_and_promises_no_landing(stage):
    outcomes = (queue_stage.PASSED, queue_stage.FAILED, queue_stage.RUNNING)
    run = a_run(12, (12,), outcomes=outcomes, failed_at=at(0.1))
    await stage.put(a_queue(in_run(run, 1), [run]), runs=six_passed())
    page = await seen(stage)
    assert "A check failed" in page.text
    assert "test (3.12) failed; waiting up to 10 s for a newer attempt." in page.text
    assert "next landing" not in page.text
    assert "expected to land" not in str(page.tags)
    shown = await seen(stage, f"{PATH}/pull/12")
    assert "A check failed" in shown.text
    assert "test (3.12) failed; waiting up to 10 s for a newer attempt." in shown.text
    assert "A required check failed." in shown.text
    tested = await seen(stage, "/octo/widgets/runs/run-12")
    assert "Run 12: a check failed" in tested.text


async def test_a_run_without_a_failed_check_promises_a_landing(stage):
    run = a_run(12, (12,))
    await stage.put(a_queue(in_run(run, 1), [run]), runs=six_passed())
    assert "next landing" in (await seen(stage)).text


async def test_the_page_says_when_a_pull_request_merges_that_is_submitted_now(stage):
    value, left = queue_stage.busy()
    await stage.put(value, **left)
    page = await seen(stage)
    assert "If you submit now: about 14:20, if it is ready" in page.text


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "fewer than 5 test runs have passed"),
        ({"state": QueueState.PAUSED}, "the queue stands still"),
        ({"state": QueueState.DRAINING}, "nothing new starts now"),
        ({"required": RequiredSet()}, "no required check is known"),
    ],
)
async def test_the_page_says_why_it_is_not_known_when_one_merges_that_is_submitted_now(
    stage, given, why
):
    await stage.put(a_queue(**given))
    page = await seen(stage)
    assert f"If you submit now: unknown, because {why}" in page.text
