"""Charts lead to lists of exactly what they count; the lists are searched and paged in SQL."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from urllib.parse import quote_plus

import pytest

from service.mergequeue.engine.outputs import Recorded, RunBuilt
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.operations import history_lists, statistics
from service.vocabulary import SYSTEM
from tests.dashboard import queue_stage
from tests.dashboard.queue_stage import NOW, a_queue, a_run, an_entry, at, ended, failed, passed

pytestmark = pytest.mark.each_database

QUEUE = "/octo/widgets/main"
PULLS, RUNS, HEALTH = f"{QUEUE}/pulls", f"{QUEUE}/runs", f"{QUEUE}/health"
DAY = 24 * 60


@pytest.fixture
async def stage(store):
    return await queue_stage.staged(store)


def a_failed(pr, minutes, **given):
    default = {"state": EntryState.FAILED, "reason": Reason.REQUIRED_STATUS_FAILED}
    times = {"submitted_at": at(minutes + 30), "state_since": at(minutes)}
    return an_entry(pr, **(default | times | given))


def a_removed(pr, minutes, reason=Reason.HEAD_CHANGED):
    return a_failed(pr, minutes, state=EntryState.CANCELLED, reason=reason)


async def past(stage):
    """Ends on the very edges of hours and days, in the middle, and now; some are in the queue."""
    midnight = (NOW - NOW.replace(hour=0, minute=0)) / timedelta(minutes=1)
    ends = (0, 5, 65, midnight, midnight + DAY, 3 * DAY + 7)
    runs = [
        passed(nth, (nth,), created_at=at(minutes + 20), finished_at=at(minutes))
        for nth, minutes in enumerate(ends, start=1)
    ]
    runs.append(failed(7, (7,), finished_at=at(65)))
    runs.append(
        failed(8, (8,), status=RunStatus.CANCELLED, sha=None, branch=None, finished_at=at(DAY),
               checks=(), created_at=at(DAY + 1), cause=None, steps=())
    )  # fmt: skip
    merged = [ended(run.number, run, end) for run, end in zip(runs, ends, strict=False)]
    odd = a_failed(30, 7, title='An ümlaut "of" back\\slash', author="zoe")
    left = (odd, *merged, a_failed(7, 65), a_failed(8, 2 * DAY), a_removed(9, midnight),
            a_removed(10, 20 * DAY, Reason.PR_CLOSED))  # fmt: skip
    live = a_run(20, (21,), created_at=at(90))
    waiting = [an_entry(21, 1, submitted_at=at(2 * DAY)), an_entry(22, 2, submitted_at=at(5))]
    await stage.put(a_queue(waiting, [live]), entries=left, runs=tuple(runs))


def listed(page):
    """How many rows the heading of a list promises, and how many there are."""
    heading = next(line for line in page.text.splitlines() if re.match(r"\d+ (pull|test)", line))
    rows = sum(tag == "tr" and "data-key" in attrs for tag, attrs in page.tags)
    return int(heading.split()[0]), rows


def cells_of(html, chart):
    """The number and the address of each cell of a chart's table that counts something."""
    table = html.split(f'id="chart-{chart}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    found = re.findall(r'<td class="num"><a href="([^"]+)">([^<]+)</a>', table)
    return [(unescape(href), text) for href, text in found]


@pytest.mark.parametrize("span", ["24h", "7d", "30d", "90d"])
async def test_each_number_of_a_chart_leads_to_as_many_rows(stage, span):
    await past(stage)
    seen = 0
    async with stage.browsing() as browser:
        html = (await browser.get(f"{HEALTH}?span={span}", host="localhost")).body.decode()
        for chart in (3, 5):
            for href, text in cells_of(html, chart):
                page = await browser.see(f"{QUEUE}/{href}", host="localhost")
                assert listed(page) == (int(text), int(text)), href
                seen += 1
        assert seen >= 10


async def test_times_and_runs_per_merge_lead_to_what_they_are_computed_from(stage):
    await past(stage)
    found = await statistics.load_statistics(stage.runtime, stage.queue, 7)
    merged = [each.merged for each in found.buckets if each.merged]
    runs = [each.runs for each in found.buckets if each.merged]
    async with stage.browsing() as browser:
        html = (await browser.get(HEALTH, host="localhost")).body.decode()
        for chart, counts in ((1, [each for each in merged for _ in "50"]), (4, runs)):
            links = [href for href, _ in cells_of(html, chart)]
            pages = [await browser.see(f"{QUEUE}/{href}", host="localhost") for href in links]
            assert [listed(page)[0] for page in pages] == counts


async def test_figures_and_reasons_lead_to_their_pull_requests(stage):
    await past(stage)
    found = await statistics.load_statistics(stage.runtime, stage.queue, 7)
    async with stage.browsing() as browser:
        page = await browser.see(HEALTH, host="localhost")
        links = [each for each in page.links if each.startswith(("pulls?", "runs?"))]
        for begin, count in (
            ("pulls?state=merged", found.merged),
            ("pulls?state=failed", found.failed),
            ("pulls?state=removed", found.removed),
            ("runs?since", found.runs),
            *((f"pulls?reason={reason.value}&", n) for reason, n in found.ejections.items()),
        ):
            href = next(each for each in links if each.startswith(begin))
            shown = await browser.see(f"{QUEUE}/{href}", host="localhost")
            assert listed(shown)[0] == count > 0


async def test_bars_are_links_for_the_mouse_and_the_table_has_them_for_all(stage):
    await past(stage)
    async with stage.browsing() as browser:
        page = await browser.see(HEALTH, host="localhost")
    hits = {attrs["href"] for tag, attrs in page.tags
            if tag == "a" and attrs.get("tabindex") == "-1"}  # fmt: skip
    others = {attrs["href"] for tag, attrs in page.tags
              if tag == "a" and "tabindex" not in attrs}  # fmt: skip
    assert hits
    assert hits <= others


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ("mail", {7}),
        ("THE", {3, 5, 6, 7, 21, 22}),
        ("alice", {10, 5}),
        ("9", {9}),
        ("#22", {22}),
        ("100%", set()),
        ("_", set()),
        ("3.2", {1, 9}),
        ("ümlaut \"of\" back\\slash", {30}),
    ],
)  # fmt: skip
async def test_words_are_searched_in_titles_and_authors_of_all_submissions(stage, asked, numbers):
    await past(stage)
    async with stage.browsing() as browser:
        page = await browser.see(f"{PULLS}?q={quote_plus(asked)}", host="localhost")
    found = {int(each) for href in page.links for each in re.findall(r"/pull/(\d+)$", href)}
    assert found == numbers


async def test_a_search_keeps_its_filter_from_page_to_page_and_misses_none(stage):
    entries = [a_failed(nth, nth, title=f"Carts {nth}") for nth in range(1, 121)]
    others = [a_failed(nth, nth, title="Other") for nth in range(200, 260)]
    mixed = [each for pair in zip(entries, others, strict=False) for each in pair]
    await stage.put(a_queue(), entries=(*mixed, *entries[len(others) :]))
    seen: list[str] = []
    sizes = []
    path: str | None = f"{PULLS}?q=cart&state=failed"
    async with stage.browsing() as browser:
        while path:
            page = await browser.see(path, host="localhost")
            assert listed(page)[0] == 120
            rows = [href for href in page.links if "/pull/" in href]
            sizes.append(len(rows))
            seen += rows
            path = next((href for href in page.links if "cursor=" in href), None)
        other = await browser.get(f"{PULLS}?q=mail&cursor={'x' * 20}", host="localhost")
    assert sizes == [50, 50, 20]
    assert len(set(seen)) == 120
    assert other.status == 400


async def test_a_list_names_its_filters_and_refuses_wrong_ones(stage):
    await past(stage)
    async with stage.browsing() as browser:
        span = "since=2026-11-23&until=2026-11-24T13:00Z"
        page = await browser.see(f"{PULLS}?{span}&reason=head_changed", host="localhost")
        assert "Left the queue from 2026-11-23 00:00 UTC to 2026-11-24 13:00 UTC." in page.text
        assert "Reason: new commits were pushed" in page.text
        wrong = {
            f"{PULLS}?since=yesterday": b"takes a time such as",
            f"{PULLS}?state=odd": b"takes &#34;merged&#34;",
            f"{PULLS}?reason=odd": b"takes a reason",
            f"{PULLS}?q={'x' * 201}": b"at most 200 characters",
            f"{RUNS}?status=odd": b"takes &#34;passed&#34;",
            f"{RUNS}?at=0001-01-01T00:00%2B23:00": b"takes a time such as",
        }
        for path, text in wrong.items():
            reply = await browser.get(path, host="localhost")
            assert reply.status == 400, path
            assert text in reply.body
        missing = await browser.get("/octo/widgets/other/pulls", host="localhost")
        assert missing.status == 404
        queue = await browser.see(QUEUE, host="localhost")
    assert PULLS in queue.links


async def test_a_list_holds_the_newest_submissions_of_a_bound(stage, monkeypatch):
    monkeypatch.setattr("service.mergequeue.store.history_lists.ENTRIES_MAX", 3)
    await stage.put(a_queue(), entries=tuple(a_failed(nth, nth) for nth in range(1, 6)))
    wanted = history_lists.SubmissionFilter()
    page = await history_lists.submissions(stage.runtime, stage.queue, wanted, None)
    assert (page.total, [each.entry.pr for each in page.rows]) == (3, [5, 4, 3])


def unbuilt(**given):
    default = {"sha": None, "branch": None, "checks": (), "steps": (), "built_at": None}
    return a_run(5, given.pop("prs", (7,)), **(default | given))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Its test branch is being made."),
        ({"kind": RunKind.DIRECT}, "so its own checks decide"),
        ({"status": RunStatus.CANCELLED, "finished_at": at(2)},
         "It ended before it had a test branch, so CI tested nothing for it."),
        ({"kind": RunKind.TIP, "prs": ()}, "tests the tip of main"),
    ],
)  # fmt: skip
async def test_a_run_without_a_test_branch_has_a_page_and_no_record_for_programs(
    stage, given, words
):
    run = unbuilt(**given)
    value = a_queue([an_entry(7, 1)], [] if run.finished_at else [run])
    await stage.put(value, runs=(run,) if run.finished_at else ())
    async with stage.browsing() as browser:
        page = await browser.see("/octo/widgets/runs/run-5", host="localhost")
        assert words in page.text
        assert "Commit none" in page.text
        assert "No check has started" not in page.text
        missing = await browser.get("/octo/widgets/runs/run-6", host="localhost")
    assert missing.status == 404


async def test_commits_test_branches_and_checks_are_links_to_the_provider(stage):
    value, left = queue_stage.busy()
    await stage.put(value, **left)
    web = "https://github.test/octo/widgets"
    first = next(iter(value.runs.values()))
    async with stage.browsing() as browser:
        queue = await browser.see(QUEUE, host="localhost")
        run = await browser.see(f"/octo/widgets/runs/{first.id}", host="localhost")
        pull = await browser.see(f"{QUEUE}/pull/{first.prs[0]}", host="localhost")
    landed = [each.landed_sha for each in left["entries"] if each.landed_sha]
    assert landed
    assert {f"{web}/commit/{sha}" for sha in landed} <= set(queue.links)
    heads = {f"{web}/commit/{one.head}" for one in first.entries}
    assert heads <= set(run.links)
    assert {f"{web}/commit/{first.sha}", f"{web}/tree/{first.branch}"} <= set(run.links)
    assert {each.url for each in first.checks} <= set(run.links) & set(queue.links)
    assert f"{web}/commit/{first.entries[0].head}" in pull.links


async def test_a_commit_in_a_sentence_is_a_link(stage):
    run = replace(a_run(12, (12,)), sha=queue_stage.sha_of(12, "c"))
    (entry,) = queue_stage.in_run(run, 1)
    events = queue_stage.story(entry, run)
    built = Recorded(at(5), SYSTEM, RunBuilt(run.id, queue_stage.sha_of(12, "c")))
    await stage.put(a_queue([entry], [run]), [*events, built])
    async with stage.browsing() as browser:
        page = await browser.see(f"{QUEUE}/pull/12", host="localhost")
    assert page.links.count(f"https://github.test/octo/widgets/commit/{run.sha}") >= 1
