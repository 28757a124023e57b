"""The page that says how well tests are judged here, and its preview of other settings."""

from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from bot import wiring
from service.http.health import Readiness
from service.testhealth.operations import settings
from service.vocabulary import Role, Sensitivity
from tests.api.wire import served
from tests.dashboard.browsing import browsing, token_of
from tests.harness.browser import browsing as acting
from tests.operations import upload_stage
from tests.operations.test_quality import DAY, DAYS, some_days
from tests.operations.upload_stage import HOST, NOW

PAGE = "/octo/widgets/tests/quality"


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store, at=NOW - DAYS * DAY)


async def test_a_page_without_evidence_says_when_there_will_be_figures(stage):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(PAGE)
        assert "How well are tests judged here?" in page.text
        assert "Figures appear when CI has uploaded its reports." in page.text


async def test_the_page_names_flags_and_failures_and_tries_settings_before_they_are_saved(stage):
    await some_days(stage)
    token = await token_of(stage.runtime, Role.ADMIN)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(PAGE)
        assert "1 of 2 flags are confirmed so far" in page.text
        assert page.text.count("too little evidence") == 2
        assert "9 more flags with a known outcome are needed; 1 of 2 confirmed" in page.text
        assert "27 more flaky failures are needed;" in page.text
        assert "more passes would tell" in page.text
        assert "mail" in page.text
        tried = await browser.see(f"{PAGE}?sensitivity=strict")
        assert "0 more flagged, 1 fewer" in tried.text
        assert "Flags 2 1" in tried.text
        assert "Save what was tried" in tried.text
        assert (await kept(stage)) is Sensitivity.NORMAL
        more = "quarantine_enabled=true&auto_quarantine_enabled=true"
        others = f"{more}&auto_quarantine_statuses=flaky&quarantine_forgives=ANY_FAILURE"
        both = await browser.see(f"{PAGE}?{others}&stable_branches=a%0D%0Ab")
        assert "0 more flagged, 0 fewer" in both.text
        assert "Failed results excused 0 of 0" in both.text
        for query, trouble in (
            ("sensitivity=soon", "sensitivity must be"),
            ("sensitivity=normal", "These are the settings of now."),
            ("auto_quarantine_statuses=healthy", "auto_quarantine_statuses"),
        ):
            assert trouble in (await browser.see(f"{PAGE}?{query}")).text


async def test_what_was_tried_is_saved_by_an_admin(stage):
    await some_days(stage)
    token = await token_of(stage.runtime, Role.ADMIN)
    async with opened(stage, f"{PAGE}?sensitivity=strict", token) as browser:
        page = await browser.press("Save what was tried")
        assert page.status == 200
        assert "Save what was tried" not in page.text
    assert (await kept(stage)) is Sensitivity.STRICT


async def test_only_those_who_may_write_try_settings_and_none_while_another_replay_runs(stage):
    await some_days(stage)
    reader = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, reader) as browser:
        async with stage.runtime.replays:
            busy = await browser.see(PAGE)
            assert "Another replay is running. Reload the page in a minute." in busy.text
        tried = await browser.see(f"{PAGE}?sensitivity=strict")
        assert "A preview needs write access." in tried.text
        assert "Save what was tried" not in tried.text


@asynccontextmanager
async def opened(stage, path, token):
    """A browser that shows a page to the holder of a token."""
    options = replace(stage.runtime.options, main_host=HOST, public_url=None)
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    app = wiring.build_own_app(replace(stage.runtime, options=options), readiness)
    async with served(app) as port, acting() as browser:
        browser.http.headers["Authorization"] = aiohttp.encode_basic_auth("x", token)
        await browser.open(f"http://127.0.0.1:{port}{path}")
        yield browser


async def kept(stage):
    return (await settings.read(stage.runtime, stage.repository)).sensitivity
