"""Deciding on the page of a test whether it is quarantined, by token and on this machine."""

from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from bot import wiring
from service.accounts.store import audit
from service.http.health import Readiness
from service.runtime import DashboardAuth
from service.vocabulary import ActorKind, Channel, Role
from tests.api.wire import served
from tests.dashboard.browsing import token_of
from tests.harness.browser import browsing
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST

DECIDE = "Decide"


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


@asynccontextmanager
async def opened(stage, **options):
    """A browser, and the page of a test in it; `token` is sent if it is given."""
    token = options.pop("token", None)
    await stage.ran({"total": "F"})
    case = await stage.case("total")
    given = {"main_host": HOST, "public_url": None, **options}
    runtime = replace(stage.runtime, options=replace(stage.runtime.options, **given))
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    async with served(wiring.build_own_app(runtime, readiness)) as port, browsing() as browser:
        if token is not None:
            browser.http.headers["Authorization"] = aiohttp.encode_basic_auth("x", token)
        await browser.open(f"http://127.0.0.1:{port}/octo/widgets/tests/{case.id}")
        yield browser


async def newest(stage):
    (row,) = await stage.runtime.store.read(audit.newest, stage.repository.org_id, 1)
    return row


async def test_a_token_of_role_queue_quarantines_and_ends_it(stage):
    token = await token_of(stage.runtime, Role.QUEUE)
    async with opened(stage, token=token) as browser:
        assert "a reader" in browser.page.text
        page = await browser.press(DECIDE, override="ALWAYS_QUARANTINE", reason="a race", days="14")
        assert page.status == 200
        assert "Always quarantined, because a race" in page.text
        row = await newest(stage)
        assert (row.action, row.actor.kind) == ("test.set_override", ActorKind.TOKEN)
        assert (row.actor.channel, row.reason) == (Channel.DASHBOARD, "a race")
        page = await browser.press("End this decision")
        assert (page.status, "Always quarantined" in page.text) == (200, False)


async def test_on_this_machine_everybody_may(stage):
    async with opened(stage, dashboard_auth=DashboardAuth.LOOPBACK) as browser:
        page = await browser.press(DECIDE, override="NEVER_QUARANTINE", reason="core", days="90")
        assert "Never quarantined, because core" in page.text
        assert (await newest(stage)).actor.login == "operator (this machine)"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"override": "ALWAYS_QUARANTINE", "reason": "  "}, "reason"),
        ({"override": "UNSPECIFIED", "reason": "x"}, "override"),
        ({"override": "ALWAYS_QUARANTINE", "reason": "kept", "days": "9999"}, "days"),
    ],
)
async def test_a_wrong_field_is_named_and_the_others_are_kept(stage, fields, words):
    async with opened(stage, dashboard_auth=DashboardAuth.LOOPBACK) as browser:
        page = await browser.press(DECIDE, **fields)
        assert (page.status, words in page.text) == (400, True)
        assert dict(page.form(DECIDE).fields)["reason"] == fields["reason"]


async def test_a_token_that_only_reads_is_refused(stage):
    token = await token_of(stage.runtime, Role.READ)
    async with opened(stage, token=token) as browser:
        assert "needs write access" in browser.page.text
        form = {"action": "end"}
        origin = browser.page.url.partition("/octo")[0]
        sent = browser.http.post(browser.page.url, data=form, headers={"Origin": origin})
        async with sent as answer:
            # The browser adds the token by itself, so a form of ours needs the secret field too.
            assert answer.status == 403
            assert "not sent from this page" in await answer.text()
