"""The first page: every queue that the reader may see, and what stops it."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from service.dashboard import page_of_queues, queue_actions
from service.dashboard import pages as dashboard_pages
from service.dashboard.rendering import Rendering
from service.dashboard.visitors import Levels, Rights, Visitor
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Hold, Landing, LandMode
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import overview, turn
from service.mergequeue.operations.overview import Scope
from service.mergequeue.reasons.record import HoldScope
from service.provider.values import AccessLevel
from service.vocabulary import SYSTEM, Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import token_of
from tests.dashboard.queue_stage import (
    a_queue,
    a_run,
    an_entry,
    at,
    ended,
    in_run,
    passed,
    person,
)
from tests.dashboard.signing_in import visitor
from tests.dashboard.test_queue_actions import newest
from tests.dashboard.test_tests_page import flaking
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage

WITHIN_S = 100.0


def spark_of(page):
    """What the only small chart of a page says."""
    (svg,) = [attrs for _, attrs in page.tags if attrs.get("class") == "spark done"]
    return svg["aria-label"]


async def test_without_queues_the_first_page_says_how_to_begin(store):
    stage = await queue_stage.staged(store)
    await stage.delete()
    async with stage.browsing() as browser:
        page = await browser.see("/", host="localhost")
    assert "There are no queues yet" in page.text
    assert "comment /merge on a pull request" in page.text
    assert "headgate setup-url" in page.text


async def test_a_row_says_what_is_in_a_queue_and_how_many_merged(store):
    stage = await queue_stage.staged(store)
    value, left = queue_stage.busy()
    await stage.put(value, **left)
    async with stage.browsing() as browser:
        page = await browser.see("/", host="localhost")
    assert "1 queue, running\n14 pull requests in the queue" in page.text
    row = "Running 14 + 1 not in yet 4 runs 40 min 6 1"
    assert f"main octo/widgets Health Tests Doctor {row}" in " ".join(page.text.split())
    assert "/octo/widgets/main" in page.links
    for link in ("health", "doctor"):
        assert f"/octo/widgets/main/{link}" in page.links
    (spark,) = [
        attrs["aria-label"] for tag, attrs in page.tags if attrs.get("class") == "spark done"
    ]
    assert spark == f"Merged per day, last 14 days: {'0, ' * 13}6"


async def test_the_figures_are_of_the_last_day_beside_the_day_before(store):
    stage = await queue_stage.staged(store)
    runs = [passed(nth, (nth,)) for nth in range(1, 6)]
    minutes = (30, 60, 90, 60 * 30, 60 * 24 * 13 + 60)
    left = [
        ended(nth, run, at_, submitted_at=at(at_ + 10 * nth))
        for nth, (run, at_) in enumerate(zip(runs, minutes, strict=True), 1)
    ]
    failed = replace(
        ended(6, runs[0], 40), state=EntryState.FAILED, landed_sha=None, verified_by=None
    )
    await stage.put(a_queue(), entries=(*left, failed), runs=tuple(runs))
    for run in runs[1:]:
        await stage.landed(run)
    async with stage.browsing() as browser:
        page = await browser.see("/", host="localhost")
    text = " ".join(page.text.split())
    assert "Merged, 24 h 3 1 in the 24 h before" in text
    assert "Time to merge, 24 h 20 min half are faster; 95 % within 29 min" in text
    assert "Failed, 24 h 25 % 1 of 4 that left the queue" in text
    assert "Landing proofs, 24 h 2 of 3 landed tree = tested tree" in text
    (spark,) = [
        attrs["aria-label"] for tag, attrs in page.tags if attrs.get("class") == "spark done"
    ]
    assert spark == f"Merged per day, last 14 days: 1, {'0, ' * 11}1, 3"


async def test_what_merged_stands_beside_the_same_day_of_the_weeks_before(store):
    stage = await queue_stage.staged(store)
    week = 60 * 24 * 7
    # Five merged within a day, three a week before, one in each of the two weeks before that.
    minutes = [*(60 * nth for nth in range(1, 6)), *(week + 90 * nth for nth in range(3))]
    minutes += [2 * week + 5, 3 * week + 60 * 23, 3 * week + 60 * 25]
    runs = [passed(nth, (nth,)) for nth in range(1, 1 + len(minutes))]
    left = [ended(*each) for each in zip(range(1, 20), runs, minutes, strict=False)]
    await stage.put(a_queue(), entries=tuple(left), runs=tuple(runs))
    async with stage.browsing() as browser:
        page = await browser.see("/", host="localhost")
        health = await browser.see("/octo/widgets/main/health?span=24h", host="localhost")
        week_page = await browser.see("/octo/widgets/main/health?span=7d", host="localhost")
    words = "usually 1 on a Tuesday, the median of 3 weeks"
    assert f"Merged, 24 h 5 {words}" in " ".join(page.text.split())
    assert words in health.text
    assert "usually" not in week_page.text


@pytest.mark.parametrize(
    ("weeks", "words"),
    [
        ((0, 0, 0, 0), ""),
        ((3, 0, 0, 0), "3 on Tuesday last week"),
        ((3, 4, 0, 0), "usually 3.5 on a Tuesday, the median of 2 weeks"),
        ((1000, 9000, 0, 2000), "usually 1,500 on a Tuesday, the median of 4 weeks"),
    ],
)
def test_weeks_before_the_first_merge_do_not_count(weeks, words):
    assert page_of_queues.usual_words(overview.usual_day(weeks), queue_stage.NOW) == words


async def test_a_maintainer_pauses_every_queue_after_a_question(pages):
    async with visitor(pages, "alice", "/") as browser:
        asked = await browser.press("Pause all queues…", reason="incident 7")
        assert "no test starts and nothing lands" in asked.text
        assert (await pages.value()).state is QueueState.RUNNING
        page = await browser.press("Pause all queues")
        assert "1 queue was paused." in page.text
        assert "Pause all" not in page.words
        value = await pages.value()
        assert (value.state, value.state_reason) == (QueueState.PAUSED, "incident 7")
        row = await newest(pages, "queue.pause")
        assert (row.actor.login, row.request_id != "") == ("alice", True)
        page = await browser.press("Resume")
        assert "Running" in page.text
        assert (await pages.value()).state is QueueState.RUNNING


async def test_who_may_pause_no_queue_is_told_and_the_attempt_is_stored(pages):
    async with visitor(pages, "alice", "/") as maintainer, visitor(pages, "carol", "/") as browser:
        assert "needs maintain access" in browser.page.text
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        form = {"form_tag": tag, "confirmed": "yes"}
        reply = await browser.http.post(f"{pages.url}/", data=form, headers={"Origin": pages.url})
        assert reply.status == 403
        assert (await pages.value()).state is QueueState.RUNNING
        denied = await newest(pages, "page.pause-all")
        assert (denied.actor.login, denied.decision) == ("carol", "denied")
        assert "Pause all…" in maintainer.page.text


async def test_a_queue_that_cannot_be_paused_is_named(store):
    stage = await queue_stage.staged(store)
    switching: dict[str, Any] = {"state": QueueState.SWITCHING_MODES, "target_mode": Mode.PARALLEL}
    await stage.put(a_queue([an_entry(4)], **switching))
    rights = Rights(Scope(), {}, AccessLevel.ADMIN)
    found = await queue_actions.pause_all(stage.runtime, rights, SYSTEM, {})
    ((name, why),) = found.refused
    assert (found.paused, found.denied, name) == (0, 0, "octo/widgets main")
    assert "mode" in why


async def test_no_queue_waits_for_a_landing_of_another_to_be_paused(store):
    first = await queue_stage.staged(store, "develop")
    run = passed(1, (1,))
    landing = Landing(1, run.id, (1,), LandMode.CALL, queue_stage.TIP, at(1))
    await first.put(a_queue(in_run(run, 1), [run], landing=landing, next_landing=2))
    second = await queue_stage.staged(store, "main")
    await second.put(a_queue([an_entry(4)]))
    runtime = first.on_a_clock_that_stands().runtime
    rights = Rights(Scope(), {}, AccessLevel.ADMIN)
    pausing = asyncio.create_task(queue_actions.pause_all(runtime, rights, SYSTEM, {}))
    topic = turn.topic_of(second.queue.id)
    async with asyncio.timeout(WITHIN_S):
        while (value := await turn.value(runtime, second.queue.id)).state is QueueState.RUNNING:
            await runtime.wakeups.wait(topic, runtime.wakeups.version(topic), 0.1)
    assert (value.state, pausing.done()) == (QueueState.PAUSED, False)
    pausing.cancel()


ALICE = Visitor(person("alice"), "", host=upload_stage.HOST)


async def test_every_queue_is_paused_in_more_repositories_than_a_page_reads(store, monkeypatch):
    monkeypatch.setattr(overview, "REPOSITORIES_MAX", 2)
    stages = [await queue_stage.staged(store, "main", name) for name in "abcde"]
    repo = stages[0].queue.repo
    main = replace(stages[0].runtime, providers={repo.host: ValuesProvider(repo.host)})
    rights = await Levels(main).everywhere(ALICE)
    assert (len(rights.levels), rights.is_partial) == (2, True)
    values = {"page": await dashboard_pages.queues(main, rights, {}), "visitor": ALICE}
    shown = Rendering(main).page(200, "queues.html", {**values, "now": queue_stage.NOW}).text
    assert "read in the first 2 repositories that have a queue" in str(shown)
    rights = await Levels(main).everywhere(ALICE, is_change=True)
    assert (len(rights.levels), rights.is_partial) == (5, False)
    monkeypatch.setattr(queue_actions, "PAUSED_MAX", 3)
    first = await queue_actions.pause_all(main, rights, ALICE.actor, {})
    assert (first.paused, first.is_partial) == (3, True)
    second = await queue_actions.pause_all(main, rights, ALICE.actor, {})
    assert (second.paused, second.is_partial) == (2, False)


async def test_below_the_queues_is_what_landed_and_which_tests_hurt_most(store):
    stage = await queue_stage.staged(store)
    value, left = queue_stage.busy()
    await stage.put(value, **left)
    for run in left["runs"]:
        await stage.landed(run)
    tests = await upload_stage.staged(store)
    await flaking(tests, "worst", "least")
    async with stage.browsing() as browser:
        page = await browser.see("/", host="localhost")
    text = " ".join(page.text.split())
    assert re.search(r"Just landed .*widgets#440 .* 13:57 equal \w{7} widgets#", text)
    worst = "worst octo/widgets, flaky 2 2 s least octo/widgets, flaky 1 1 s "
    assert re.search(f"Tests that hurt most this week .* {worst}", text)
    assert f"/octo/widgets/tests/{(await tests.case('worst')).id}" in page.links


async def test_queues_that_stand_still_come_first_and_say_why_and_who_acts(store):
    running = await queue_stage.staged(store, "develop")
    await running.put(a_queue([an_entry(3)]))
    paused = await queue_stage.staged(store, "main")
    by_bob: dict[str, Any] = {
        "state_reason": "release freeze",
        "state_by": person("bob"),
        "state_since": at(15),
    }
    await paused.put(a_queue([an_entry(4)], state=QueueState.PAUSED, **by_bob))
    held = await queue_stage.staged(store, "release/2")
    hold = Hold("h1", HoldReason.TARGET_REWRITTEN, HoldScope.BOTH, SYSTEM, "", at(5))
    await held.put(a_queue(holds=(hold,)))
    async with paused.browsing() as browser:
        page = await browser.see("/", host="localhost")
    assert "3 queues, 1 paused, 1 stopped" in page.text
    assert "Paused by bob at 13:50 UTC: release freeze." in page.text
    assert "who acts: a maintainer" in page.text
    assert "The history of release/2 was rewritten" in page.text
    order = [link for link in page.links if link.count("/") == 3 and not link.endswith("/tests")]
    assert order[-3:] == ["/octo/widgets/main", "/octo/widgets/release~2", "/octo/widgets/develop"]


async def test_a_reader_sees_the_queues_of_the_token_alone(store):
    ours = await queue_stage.staged(store, "main")
    theirs = await queue_stage.staged(store, "main", "gadgets")
    run = a_run(1, (3,))
    await ours.put(a_queue(in_run(run, 1), [run]))
    whole = await token_of(ours.runtime, Role.READ)
    narrow = await token_of(ours.runtime, Role.READ, repositories=(theirs.queue.repo,))
    stranger = await token_of(ours.runtime, Role.ADMIN, "elsewhere")
    async with ours.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        assert "2 queues" in (await browser.see("/", password=whole)).text
        page = await browser.see("/", password=narrow)
        assert "octo/gadgets" in page.text
        assert "octo/widgets" not in page.text
        assert "There are no queues yet" in (await browser.see("/", password=stranger)).text
        refused = await browser.get("/")
    assert (refused.status, b"octo" in refused.body) == (401, False)


async def test_more_queues_than_a_page_shows_are_on_the_next(store, monkeypatch):
    monkeypatch.setattr(overview, "QUEUES_MAX", 2)
    for branch in ("a", "b/c", "d"):
        stage = await queue_stage.staged(store, branch)
    async with stage.browsing() as browser:
        page = await browser.see("/", host="localhost")
        (further,) = [link for link in page.links if link.startswith("/?cursor=")]
        assert "The first 2 queues, all running" in page.text
        last = await browser.see(further, host="localhost")
        assert "1 queue, running" in last.text
        assert "/octo/widgets/d" in last.links
        for wrong in ("x", "-1/a", f"{further.removeprefix('/?cursor=')}A"):
            refused = await browser.get(f"/?cursor={wrong}", host="localhost")
            assert (refused.status, b"cursor" in refused.body) == (400, True)


@pytest.mark.parametrize(("method", "status"), [("POST", 403), ("DELETE", 405)])
async def test_the_first_page_takes_nothing_but_its_form(store, method, status):
    stage = await queue_stage.staged(store)
    async with stage.browsing() as browser:
        reply = await browser.get("/", "Content-Length: 0", host="localhost", method=method)
    assert reply.status == status
