"""Open pages of a queue stay current: asked again, they answer only if something has changed."""

from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import aiohttp
import pytest

from bot import wiring
from service.dashboard import streams
from service.http import documents, waiting
from service.http.health import Readiness
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import turn
from tests.api.wire import served
from tests.dashboard import queue_stage
from tests.dashboard.browsing import parsed
from tests.dashboard.queue_stage import a_queue, a_run, in_run
from tests.operations import upload_stage

PATHS = ("/octo/widgets/main", "/octo/widgets/main/pull/12", "/octo/widgets/runs/run-12")
SCRIPT_LINES_MAX = 110


@pytest.fixture
async def stage(store):
    stage = await queue_stage.staged(store)
    run = a_run(12, (12,))
    await stage.put(a_queue(in_run(run, 1), [run]))
    return stage


@pytest.mark.parametrize("path", ["/", *PATHS])
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


@pytest.mark.parametrize("path", ["/", "/octo/widgets/tests", "/octo/widgets/uploads"])
async def test_pages_that_show_tests_are_sent_again_after_an_upload(stage, store, path):
    uploads = await upload_stage.staged(store)
    async with stage.browsing() as browser:
        first = await browser.get(path, host="localhost")
        ask_again = f"If-None-Match: {first.headers['etag']}"
        assert (await browser.get(path, ask_again, host="localhost")).status == 304
        await uploads.ran({"steady": "P"})
        assert (await browser.get(path, ask_again, host="localhost")).status == 200


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


async def test_pages_load_scripts_of_ours_and_those_that_do_not_change_not_the_live_one(stage):
    names = ("frame.js", "times.js", "live.js")
    frame, times, address = map(documents.address, names)
    async with stage.browsing() as browser:
        for path in ("/", *PATHS):
            page = await browser.see(path, host="localhost")
            scripts = [attrs["src"] for tag, attrs in page.tags if tag == "script"]
            assert scripts == [frame, times, address]
        reply = await browser.get("/octo/widgets/none", host="localhost")
        tags = parsed(reply.body).tags
        assert [attrs["src"] for tag, attrs in tags if tag == "script"] == [frame, times]
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


STREAM = f"Accept: {streams.CONTENT}"


@asynccontextmanager
async def streaming(stage):
    """The stream of the page of a queue, and the application behind it."""
    options = replace(
        stage.runtime.options, dashboard_auth=queue_stage.LOOPBACK, main_host=stage.queue.repo.host
    )
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    app = wiring.build_own_app(replace(stage.runtime, options=options), readiness)
    headers = {"Accept": streams.CONTENT}
    async with (
        served(app) as port,
        aiohttp.ClientSession(headers=headers) as http,
        http.get(f"http://127.0.0.1:{port}{PATHS[0]}") as stream,
    ):
        yield stream, app


async def told(stream):
    """The next message of a stream."""
    line = (await stream.content.readuntil(b"\n\n")).decode().strip()
    return line if not line.startswith("retry:") else await told(stream)


async def test_an_open_page_is_told_of_a_change_by_a_stream(stage, monkeypatch):
    stage = stage.on_a_clock_that_stands()
    run = a_run(12, (12,))
    async with streaming(stage) as (stream, app):
        assert stream.headers["Content-Type"] == streams.CONTENT
        assert stream.headers["Cache-Control"] == "no-store"
        assert await told(stream) == "data: changed"
        await stage.put(a_queue(in_run(run, 1), [run], state=QueueState.PAUSED))
        stage.runtime.wakeups.wake(turn.topic_of(stage.queue.id))
        assert await told(stream) == "data: changed"
        monkeypatch.setattr(streams, "BEAT_EVERY_S", 0)
        stage.runtime.wakeups.wake(turn.topic_of(stage.queue.id))
        assert await told(stream) == ":"
        await app.shutdown()
        stage.runtime.wakeups.wake(turn.topic_of(stage.queue.id))
        await stream.content.read()


async def test_a_stream_ends_so_that_rights_are_read_again(stage):
    began = stage.runtime.clock.present
    async with streaming(stage) as (stream, _):
        await stream.content.read()
    lasted = (stage.runtime.clock.present - began).total_seconds()
    assert streams.LASTS_S <= lasted <= streams.LASTS_S + streams.LOOK_EVERY_S


async def test_a_stream_is_as_secret_as_its_page(stage):
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        assert (await browser.get(PATHS[0], STREAM)).status == 401
    async with stage.browsing() as browser:
        assert (await browser.get("/octo/widgets/none", STREAM, host="localhost")).status == 404


async def test_only_get_opens_a_stream(stage):
    # HEAD has no body (RFC 9110, 9.3.2): events would be taken for the answer to what comes next.
    async with stage.browsing() as browser:
        head = await browser.get(PATHS[0], STREAM, method="HEAD", host="localhost")
        assert head.headers["content-type"] == "text/html; charset=utf-8"
        assert (await browser.get(PATHS[0], host="localhost")).status == 200


async def test_more_streams_than_one_visitor_may_have_are_refused(stage, monkeypatch):
    monkeypatch.setattr(waiting, "WAITING_A_TOKEN", 0)
    async with stage.browsing() as browser:
        reply = await browser.get(PATHS[0], STREAM, host="localhost")
    assert (reply.status, "retry-after" in reply.headers) == (503, True)
