"""Open pages of a queue stay current: asked again, they answer only if something has changed."""

from datetime import timedelta

import pytest

from service.http import documents
from service.mergequeue.engine.states import QueueState
from tests.dashboard import queue_stage
from tests.dashboard.browsing import parsed
from tests.dashboard.queue_stage import a_queue, a_run, in_run

PATHS = ("/octo/widgets/main", "/octo/widgets/main/pull/12", "/octo/widgets/runs/run-12")
SCRIPT_LINES_MAX = 60


@pytest.fixture
async def stage(store):
    stage = await queue_stage.staged(store)
    run = a_run(12, (12,))
    await stage.put(a_queue(in_run(run, 1), [run]))
    return stage


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_that_has_not_changed_is_not_sent_again(stage, path):
    run = a_run(12, (12,))
    async with stage.browsing() as browser:
        first = await browser.get(path, host="localhost")
        ask_again = f"If-None-Match: {first.headers['etag']}"
        same = await browser.get(path, ask_again, host="localhost")
        assert (same.status, same.body) == (304, b"")
        assert same.headers["etag"] == first.headers["etag"]
        await stage.put(a_queue(in_run(run, 1), [run], state=QueueState.PAUSED))
        changed = await browser.get(path, ask_again, host="localhost")
        assert (changed.status, changed.headers["etag"] != first.headers["etag"]) == (200, True)


async def test_times_on_a_page_are_at_most_a_minute_old(stage):
    async with stage.browsing() as browser:
        first = await browser.get(PATHS[0], host="localhost")
        ask_again = f"If-None-Match: {first.headers['etag']}"
        stage.runtime.clock.present += timedelta(minutes=1)
        assert (await browser.get(PATHS[0], ask_again, host="localhost")).status == 200


async def test_who_may_not_see_a_page_does_not_learn_whether_it_changed(stage):
    async with stage.browsing() as browser:
        tag = (await browser.get(PATHS[0], host="localhost")).headers["etag"]
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        assert (await browser.get(PATHS[0], f"If-None-Match: {tag}")).status == 401


async def test_pages_of_queues_load_one_script_of_ours_and_others_none(stage):
    address = documents.address("live.js")
    async with stage.browsing() as browser:
        for path in ("/", *PATHS):
            page = await browser.see(path, host="localhost")
            scripts = [attrs["src"] for tag, attrs in page.tags if tag == "script"]
            assert scripts == [address]
        reply = await browser.get("/octo/widgets/none", host="localhost")
        assert not [tag for tag, _ in parsed(reply.body).tags if tag == "script"]
        script = await browser.get(address)
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert len(script.body.splitlines()) < SCRIPT_LINES_MAX


async def test_elements_that_may_move_have_keys_that_differ_among_neighbors(store):
    stage = await queue_stage.staged(store, "busy")
    value, left = queue_stage.busy()
    await stage.put(value, **left)
    async with stage.browsing() as browser:
        page = await browser.see("/octo/widgets/busy", host="localhost")
    found = [attrs for tag, attrs in page.tags if tag == "tr"]
    rows = [str(attrs["data-key"]) for attrs in found if "data-key" in attrs]
    assert len(rows) == len(set(rows)) == 8
