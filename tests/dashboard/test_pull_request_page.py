"""The pages of a pull request and of a test run."""

from dataclasses import replace
from typing import Any

import pytest

from service.accounts import access
from service.landed_work import WorkJudged
from service.mergequeue.engine.model import NOTHING, Detail
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.engine.suspicion import FailedTogether, Fate, Other, Suspicion
from service.vocabulary import Blocker, BlockerCode, CheckOutcome, Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import parsed, token_of
from tests.dashboard.queue_stage import (
    BROKEN_CHECK,
    REQUIRED,
    a_check,
    a_queue,
    a_run,
    an_entry,
    at,
    ended,
    failed,
    in_run,
    passed,
    sha_of,
    story,
)
from tests.harness.expect import expect
from tests.operations import upload_stage
from tests.operations.upload_stage import a_case, a_file

PATH = "/octo/widgets/main/pull"
RUNS = "/octo/widgets/runs"


@pytest.fixture
async def stage(store):
    return await queue_stage.staged(store)


async def seen(stage, path):
    async with stage.browsing() as browser:
        return await browser.see(path, host="localhost")


async def busy(stage):
    value, left = queue_stage.busy()
    suspect = value.entries[482]
    await stage.put(value, story(suspect, value.runs[suspect.run or ""]), **left)
    for run in left["runs"][1:]:
        await stage.landed(run)
    await stage.landed(left["runs"][0], is_equal=False)


async def test_one_whose_cause_is_searched_for_shows_conditions_runs_and_timeline(stage):
    await busy(stage)
    page = await seen(stage, f"{PATH}/482")
    expect(page.text).matches("pull-request.txt")
    assert "/octo/widgets/main" in page.links
    for run in (3116, 3121, 3124):
        assert f"{RUNS}/run-{run}" in page.links
    assert "https://github.test/octo/widgets/pull/482" in page.links


async def test_one_that_landed_before_the_rest_of_its_batch_shows_the_tree_that_was_tested(stage):
    value, left = queue_stage.busy()
    await stage.put(value, (), **left)
    run = left["runs"][1]
    await stage.landed(run, tested_tree=queue_stage.sha_of(1, "9"))
    page = await seen(stage, f"{PATH}/{run.prs[0]}")
    assert "The tested tree is that after the last of them" in page.text
    assert "is not" in page.text
    assert "equals" not in page.text


async def test_one_that_is_not_in_yet_says_what_it_waits_for_and_who_acts(stage):
    await busy(stage)
    page = await seen(stage, f"{PATH}/499")
    assert "Before the queue" in page.text
    assert "Waits until the required reviews approve it" in page.text
    assert "Who acts: a maintainer." in page.text


async def test_an_open_condition_never_reads_as_if_it_were_met(stage):
    await busy(stage)
    page = await seen(stage, f"{PATH}/497")
    assert "\nWaits until the conflict with #478 is gone\n" in page.text
    assert "Who acts: carol. Next: #478 is merged or leaves the queue." in page.text
    assert "In conflict: api/upload.py" in page.text
    assert "\nThe conflict with #478 is gone\n" not in page.text


async def test_one_that_merged_has_its_proof(stage):
    await busy(stage)
    page = await seen(stage, f"{PATH}/441")
    assert "Merged into main" in page.text
    text = " ".join(page.text.split())
    assert "Tested tree, its test run d0001b9 = equals Landed tree d0001b9" in text
    assert "Why is it not merged yet?" not in page.text
    assert f"{RUNS}/run-3101" in page.links


async def test_one_that_merged_says_how_each_required_check_ended(stage):
    await busy(stage)
    page = await seen(stage, f"{PATH}/441")
    text = " ".join(page.text.split())
    assert "lint passed; test (3.12) failed, excused: only quarantined tests failed;" in text
    assert "e2e was skipped: its conditions left it out, on the pull request as well." in text
    assert "All required checks passed" not in text
    run = " ".join((await seen(stage, f"{RUNS}/run-3101")).text.split())
    assert "1 of 3 required statuses passed, 1 excused, 1 skipped" in run


async def test_a_landing_that_is_not_what_was_tested_says_so(stage):
    await busy(stage)
    page = await seen(stage, f"{PATH}/440")
    assert "d0001b8 ≠ is not Landed tree b0001b8" in " ".join(page.text.split())


async def test_one_that_was_merged_by_hand_has_no_proof(stage):
    run = passed(1, (7,))
    by_hand: dict[str, Any] = {"reason": Reason.MERGED_BY_HAND, "verified_by": None}
    await stage.put(a_queue(), entries=(ended(7, run, 3, **by_hand),), runs=(run,))
    assert (
        "There is no landing proof: Headgate did not merge it."
        in (await seen(stage, f"{PATH}/7")).text
    )


async def test_one_that_failed_says_why_and_what_to_do(stage):
    run = failed(1, (7,))
    end: dict[str, Any] = {"state": EntryState.FAILED, "reason": Reason.REQUIRED_STATUS_FAILED}
    together = FailedTogether("r1", (Other(12, Fate.MERGED),))
    believed = Suspicion(97, 1, 1, (together,))
    detail = Detail(run=run.id, checks=(BROKEN_CHECK,), suspicion=believed)
    left = ended(7, run, 3, detail=detail, verified_by=None, landed_sha=None, **end)
    await stage.put(a_queue(), entries=(left,), runs=(run,))
    page = await seen(stage, f"{PATH}/7")
    assert "test (3.12) failed · removed from the queue" in page.text
    assert "comment /merge again" in page.text
    assert BROKEN_CHECK.url in page.links
    assert "97 % to blame: failed alone once, failed with #12, which has merged" in page.text


async def test_a_run_that_confirms_a_failure_is_not_called_a_search(stage):
    first, again = failed(1, (7,)), failed(2, (7,), kind=RunKind.CONFIRMATION)
    end: dict[str, Any] = {"state": EntryState.FAILED, "reason": Reason.REQUIRED_STATUS_FAILED}
    detail = Detail(run=again.id, checks=(BROKEN_CHECK,))
    left = ended(7, again, 3, detail=detail, verified_by=None, landed_sha=None, **end)
    await stage.put(a_queue(), entries=(left,), runs=(first, again))
    page = await seen(stage, f"{PATH}/7")
    assert "\nrun 2\nonce more, to be sure of the failure\n" in page.text
    assert "search for the cause" not in page.text


TRACE = "\n".join(
    [
        "tests/ui/test_total.py:27",
        "    clock.advance(minutes=61)",
        '>   assert cache.get("mug") is None',
        "E   AssertionError: assert Decimal('3.33') is None",
        *(f"frame {nth}" for nth in range(20)),
    ]
)


async def test_failed_tests_have_their_assertion_and_the_first_lines_of_their_trace(store, stage):
    run = failed(1, (7,))
    end: dict[str, Any] = {"state": EntryState.FAILED, "reason": Reason.REQUIRED_STATUS_FAILED}
    detail = Detail(run=run.id, checks=(BROKEN_CHECK,))
    left = ended(7, run, 3, detail=detail, verified_by=None, landed_sha=None, **end)
    await stage.put(a_queue(sends_results=True), entries=(left,), runs=(run,))
    ci = await upload_stage.staged(store)
    ci.clock.present = at(9)
    token = await token_of(ci.runtime, Role.QUEUE)
    ci = replace(ci, caller=await access.look_up(ci.runtime, token))
    total = a_case("test_total", "F")
    attempt = total.explicit_attempts[0]._replace(stack=TRACE)
    total = total._replace(explicit_attempts=(attempt,))
    file = a_file({}, cases=(total, a_case("test_sum", "FF"), a_case("test_steady", "P")))
    await ci.send([file], sha=run.sha, branch=run.branch, ran_at=at(9))
    page = await seen(stage, f"{PATH}/7")
    assert "Evidence: 2 tests failed" in page.text
    how = "new failure\nAssertionError: 10.0 != 10.01"
    assert f"tests/test_total.py::test_total\n{how}" in page.text
    assert f"/octo/widgets/tests/{(await ci.case('test_total')).id}" in page.links
    assert "frame 7" in page.text
    assert "frame 8" not in page.text
    hits = [attrs for tag, attrs in page.tags if tag == "bdi" and attrs.get("class") == "hit"]
    assert len(hits) == 2
    assert "test_steady" not in page.text


async def test_a_failed_check_of_the_pull_request_itself_says_who_mends_it(stage):
    entry = an_entry(12, state=EntryState.NOT_READY, unmet=(Reason.CHECK_FAILING,), seq=None)
    blockers = (Blocker(BlockerCode.CHECK_FAILING, "unit"),)
    entry = replace(entry, facts=replace(entry.facts, blockers=blockers))
    await stage.put(a_queue([entry]))
    page = await seen(stage, f"{PATH}/12")
    assert (
        "Waits until check unit of the PR itself passes (it failed; the author fixes" in page.text
    )
    assert f"Who acts: {entry.facts.author}" in page.text


async def test_one_that_tests_shows_each_required_check_as_a_condition(stage):
    run = a_run(12, (12,))
    await stage.put(a_queue(in_run(run, 1), [run]))
    page = await seen(stage, f"{PATH}/12")
    assert "Check lint passes" in page.text
    assert "Waits until check e2e passes (running)" in page.text
    assert "CI since" in " ".join(page.text.split())
    assert "Nobody needs to act." in page.text


async def test_what_counts_without_being_so_has_a_mark_of_its_own(stage):
    outcomes = (CheckOutcome.SKIPPED, CheckOutcome.FAILED, CheckOutcome.RUNNING)
    run = a_run(12, (12,), outcomes=outcomes, excused=REQUIRED[1:2])
    unknown = WorkJudged(sha_of(12), run.base_tip.sha, trouble="its commits are too many")
    await stage.put(a_queue(in_run(run, 1, work=unknown), [run]))
    page = await seen(stage, f"{PATH}/12")
    images = [attrs for tag, attrs in page.tags if tag == "svg" and attrs.get("role") == "img"]
    labels = [attrs["aria-label"] for attrs in images]
    assert "Whether it takes back merged work was not judged: its commits are too many" in page.text
    # What is met is that the test branch is created, and what is open last is that it lands.
    assert labels == ["not judged", "met", "excused", "skipped", "open", "open"]


@pytest.mark.parametrize("number", ["8", "x", "9" * 30, "-1"])
async def test_a_pull_request_that_was_never_submitted_has_no_page(stage, number):
    async with stage.browsing() as browser:
        assert (await browser.get(f"{PATH}/{number}", host="localhost")).status == 404


async def test_a_pull_request_that_was_never_submitted_is_told_how_to_begin(stage):
    async with stage.browsing() as browser:
        reply = await browser.get(f"{PATH}/8", host="localhost")
    assert "Pull request 8 was never submitted" in parsed(reply.body).text
    assert "To merge it through this queue, comment /merge on it." in parsed(reply.body).text


async def test_a_run_shows_what_it_was_built_from_and_every_report(stage):
    await busy(stage)
    page = await seen(stage, f"{RUNS}/run-3122")
    expect(page.text).matches("run.txt")


async def test_a_failed_batch_blames_none_of_its_members(stage):
    await busy(stage)
    page = await seen(stage, f"{RUNS}/run-3116")
    assert "Run 3116: failed" in page.text
    assert "Failed failure" in page.text
    assert "probably in this PR" not in page.text


async def test_a_run_of_one_says_its_verdict_and_its_other_reports(stage):
    flaky = a_check("coverage", CheckOutcome.FAILED, raw="failure")
    late = a_check("deploy", CheckOutcome.BLOCKED, raw="waiting", completed_at=None)
    run = failed(1, (7,), cause=Cause.TIMEOUT)
    run = replace(run, checks=(*run.checks, flaky, late))
    entry = an_entry(7, state=EntryState.PENDING_FAILURE, run=run.id, detail=NOTHING)
    entry = replace(entry, reason=Reason.RUN_TIMED_OUT)
    await stage.put(a_queue([entry], [run]))
    page = await seen(stage, f"{RUNS}/run-1")
    assert "The checks did not finish in time." in page.text
    assert "Other statuses on this commit they never decide the run" in " ".join(page.text.split())
    assert "Waiting for approval" in page.text


async def test_a_run_that_landed_says_what_landed_by_it(stage):
    await busy(stage)
    text = (await seen(stage, f"{RUNS}/run-3101")).text
    assert "#441 landed tree = tested tree d0001b9" in text


async def test_pages_of_pull_requests_and_runs_are_for_readers_of_the_repository(store, stage):
    await busy(stage)
    other = await queue_stage.staged(store, "main", "gadgets")
    narrow = await token_of(stage.runtime, Role.READ, repositories=(other.queue.repo,))
    whole = await token_of(stage.runtime, Role.READ)
    paths = (f"{PATH}/482", f"{RUNS}/run-3122")
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        for path in paths:
            assert (await browser.get(path, password=whole)).status == 200
            assert (await browser.get(path, password=narrow)).status == 404
            under = path.replace("widgets", "gadgets")
            assert (await browser.get(under, password=whole)).status == 404
            assert (await browser.get(path)).status == 401
