"""The pages that register the App: who may use them, what they send, what they store."""

import asyncio
import json
import re
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
import yaml
from aiohttp import web

from bot import listening, starting, wiring
from bot import settings as all_settings
from bot.listening import Address
from bot.sandbox.app import Sandbox, SandboxOptions, running
from bot.settings import Settings
from bot.setup import entering, manifest, pages, registering, sessions
from bot.setup.registering import Registering
from bot.setup.sessions import Session, Sessions
from service.clock import SystemClock
from service.errors import DatabaseAway
from service.http import connections, documents
from tests.harness.browser import Browser, browsing
from tests.harness.databases import SetClock
from tests.harness.machine import free_port
from tests.tidy.tree import ROOT

PRINTED_WITHIN_S = 30
SECRET_NAMES = ("PRIVATE_KEY", "WEBHOOK_SECRET", "CLIENT_SECRET")


@dataclass
class Stage:
    """Set-up mode, a browser, and a sandbox without an App."""

    url: str
    settings: Settings
    registering: Registering
    clock: SetClock
    browser: Browser
    sandbox: Sandbox

    def new_link(self):
        token = sessions.new_link(self.settings, self.clock.now())
        return sessions.link_of(self.url, token)

    async def enter(self):
        await self.browser.open(self.new_link())
        return await self.browser.press("Begin")

    async def fill(self, **fields):
        """The page after the form."""
        await self.enter()
        return await self.browser.press("Continue", organization="octo", **fields)

    async def confirmed(self):
        """The address to which GitHub leads back, not yet opened."""
        await self.fill()
        page = await self.browser.press("Create the GitHub App")
        form = dict(page.form("Create GitHub App for octo").fields)
        url = f"{self.sandbox.url}/_sandbox/apps"
        async with (
            aiohttp.ClientSession() as http,
            http.post(url, data=form, allow_redirects=False) as answer,
        ):
            return answer.headers["Location"]


@pytest.fixture
async def sandbox():
    async with running(SandboxOptions(is_manual=True, has_app=False)) as started:
        await started.seed(repositories=[{"full_name": "octo/widgets"}])
        yield started


@pytest.fixture
def given(sandbox, tmp_path):
    """The settings of the deployment."""
    return {
        "github_url": sandbox.url,
        "github_host": "github.localhost",
        "data_dir": str(tmp_path / "state"),
        "admin_listen": "off",
    }


@pytest.fixture
async def stage(sandbox, given):
    settings, clock = all_settings.alone(**given), SetClock(SystemClock().now())
    registering = Registering(settings, Sessions(settings, clock), clock)
    runner = web.AppRunner(registering.application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with browsing() as browser:
        yield Stage(url, settings, registering, clock, browser, sandbox)
    await runner.cleanup()


async def answer_to(url, method="GET", **more):
    async with aiohttp.ClientSession() as http, http.request(method, url, **more) as answer:
        return answer.status, await answer.text(), answer.headers


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/tokens"), ("POST", "/webhooks/github"), ("POST", "/v1/getQueue")]
)
async def test_everything_else_says_that_set_up_is_required(stage, method, path):
    status, text, headers = await answer_to(f"{stage.url}{path}", method)
    assert (status, json.loads(text)["code"]) == (503, "setup_required")
    assert headers["Retry-After"]


async def test_a_balancer_sees_a_live_process_that_is_not_ready(stage):
    assert (await answer_to(f"{stage.url}/healthz"))[0] == 200
    assert (await answer_to(f"{stage.url}/readyz"))[0] == 503


async def test_a_page_needs_a_link(stage):
    paths = ("/", "/setup", "/setup?token=", "/setup?token=wrong", "/setup/callback?code=c&state=s")
    for path in paths:
        page = await stage.browser.open(f"{stage.url}{path}")
        assert (page.status, "headgate setup-url" in page.text) == (403, True), path


async def test_a_link_opens_the_form_once_and_leaves_a_clean_address(stage):
    link = stage.new_link()
    await stage.browser.open(link)
    page = await stage.browser.press("Begin")
    assert (page.status, page.url) == (200, f"{stage.url}/setup")
    async with browsing() as other:
        assert (await other.open(link)).status == 403
    assert (await stage.browser.open(f"{stage.url}/setup")).status == 200


async def entered(stage, link, origin=None):
    """The answer to the form of a link, as a page of ours sends it or another one."""
    more = {"data": {"token": link.partition("token=")[2]}, "allow_redirects": False}
    headers = {"Origin": origin or stage.url}
    return await answer_to(f"{stage.url}{entering.PATH}", "POST", headers=headers, **more)


async def test_a_preview_that_opens_a_link_does_not_use_it(stage):
    link = stage.new_link()
    for _ in range(3):
        status, _, headers = await answer_to(link, allow_redirects=False)
        assert (status, "Set-Cookie" in headers) == (200, False)
    assert (await entered(stage, link))[0] == 303


async def test_a_form_of_another_site_uses_no_link(stage):
    link = stage.new_link()
    for origin in ("null", "https://other.example.org"):
        status, text, headers = await entered(stage, link, origin)
        assert (status, "not sent from this page" in text) == (403, True)
        assert "Set-Cookie" not in headers
    assert (await entered(stage, link))[0] == 303


async def test_two_requests_with_one_link_make_one_session(stage):
    link = stage.new_link()
    found = await asyncio.gather(*(entered(stage, link) for _ in range(5)))
    assert sorted(status for status, _, _ in found) == [303, 403, 403, 403, 403]


async def test_a_link_ends_after_an_hour_and_with_the_next_one(stage):
    old, link = stage.new_link(), stage.new_link()
    assert (await stage.browser.open(old)).status == 403
    stage.clock.present += timedelta(minutes=60)
    assert (await stage.browser.open(link)).status == 403


async def test_a_session_ends(stage):
    await stage.enter()
    stage.clock.present += sessions.SESSION_LIFETIME
    assert (await stage.browser.open(f"{stage.url}/setup")).status == 403


async def test_the_token_is_not_kept_and_the_file_is_ours_alone(stage):
    token = stage.new_link().partition("token=")[2]
    kept = stage.settings.data_dir / sessions.LINK_FILE
    assert token not in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_the_cookie_is_for_the_set_up_pages_and_no_script(stage):
    _, _, headers = await entered(stage, stage.new_link())
    cookie = headers["Set-Cookie"]
    for word in ("HttpOnly", "SameSite=Lax", "Path=/setup"):
        assert word in cookie
    assert "Secure" not in cookie
    settings = stage.settings.model_copy(update={"public_url": "https://queue.example.org"})
    answer = web.Response()
    sessions.set_cookie(answer, "c", settings)
    assert answer.cookies[sessions.COOKIE]["secure"] is True


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"organization": ""}, "name of the organization"),
        ({"organization": "octo/widgets"}, "name of the organization"),
        ({"name": " "}, "1 to 34 characters"),
        ({"name": "n" * 35}, "1 to 34 characters"),
        ({"public_url": "queue.example.org"}, "must be an http or https address"),
        ({"public_url": "http://queue.example.org"}, "must begin with https://"),
    ],
)
async def test_a_wrong_field_is_named_and_the_form_kept(stage, fields, words):
    await stage.enter()
    page = await stage.browser.press("Continue", **{"organization": "octo", **fields})
    assert page.status == 400
    assert words in page.text
    assert dict(page.form("Continue").fields).items() >= fields.items()


def test_a_missing_organization_is_asked_for_by_its_address_on_the_chosen_host(given):
    form = {"organization": "", "name": "n", "host": "git.example.org"}
    settings = all_settings.alone(data_dir=given["data_dir"])
    with pytest.raises(manifest.WrongChoice, match=r"in its address: git\.example\.org/NAME"):
        manifest.choices_of(form, settings)


async def test_an_address_of_this_machine_is_refused_for_a_host_elsewhere(given):
    form = {"organization": "octo", "name": "n", "host": "github.com"}
    settings = all_settings.alone(data_dir=given["data_dir"])
    with pytest.raises(manifest.WrongChoice, match="address of your own machine"):
        manifest.choices_of({**form, "public_url": "http://localhost:8642"}, settings)
    with pytest.raises(manifest.WrongChoice, match="not the name of a GitHub host"):
        manifest.choices_of({**form, "host": "https://github.com/"}, settings)
    choices = manifest.choices_of({**form, "public_url": "https://q.example.org/"}, settings)
    assert (choices.host, choices.public_url) == ("github.com", "https://q.example.org")


def test_the_form_proposes_the_address_of_the_browser():
    assert manifest.address_at("queue.example.org") == "https://queue.example.org"
    assert manifest.address_at("127.0.0.1:8642") == "http://127.0.0.1:8642"


async def test_a_link_is_shown_to_visits_alone(stage):
    link = stage.new_link()
    assert (await answer_to(link, "HEAD"))[0] == 503
    assert (await stage.browser.open(link)).status == 200


async def test_settings_that_are_made_are_shown_and_not_asked_for(stage):
    page = await stage.enter()
    names = [name for name, _ in page.form("Continue").fields]
    assert ("host" in names, "public_url" in names) == (False, True)
    assert "github.localhost" in page.text


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
async def test_a_form_of_another_site_is_refused(stage, origin):
    page = await stage.enter()
    form = dict(page.form("Continue").fields) | {"organization": "octo"}
    headers = {} if origin is None else {"Origin": origin}
    async with stage.browser.http.post(page.url, data=form, headers=headers) as answer:
        assert answer.status == 403


async def test_a_form_without_its_secret_is_refused(stage):
    await stage.enter()
    page = await stage.browser.press("Continue", organization="octo", csrf="wrong")
    assert (page.status, "reload it" in page.text) == (403, True)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"no boundary"),
        ("application/x-www-form-urlencoded; charset=nowhere", b"csrf=x"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n"),
        ("application/json", b"{}"),
    ],
)
async def test_a_form_that_cannot_be_read_is_refused(stage, kind, body):
    await stage.enter()
    headers = {"Content-Type": kind, "Origin": stage.url}
    async with stage.browser.http.post(f"{stage.url}/setup", data=body, headers=headers) as answer:
        assert answer.status == 403


async def test_a_form_that_lacks_fields_is_shown_again(stage):
    page = await stage.enter()
    fields = {"csrf": dict(page.form("Continue").fields)["csrf"], "organization": "octo"}
    headers = {"Origin": stage.url}
    async with stage.browser.http.post(f"{stage.url}/setup", data=fields, headers=headers) as sent:
        assert (sent.status, "Enter a name for the App" in await sent.text()) == (400, True)


async def test_every_page_forbids_what_is_not_ours(stage):
    for page in (await stage.enter(), await stage.fill()):
        assert "default-src 'none'" in page.policy
        assert "'unsafe" not in page.policy
    assert f"form-action 'self' {stage.sandbox.url};" in page.policy


async def test_the_manifest_is_app_yml_with_the_chosen_addresses_and_permissions(stage):
    page = await stage.fill(
        name="Octo", public_url="https://q.example.org", workflows="on", issues="on"
    )
    form = page.form("Create the GitHub App")
    of_octo = f"{stage.sandbox.url}/organizations/octo/settings/apps/new?state="
    assert form.action.startswith(of_octo)
    sent = json.loads(dict(form.fields)["manifest"])
    written = yaml.safe_load((ROOT / "app.yml").read_text("utf-8"))
    assert sent["name"] == "Octo"
    assert sent["hook_attributes"]["url"] == "https://q.example.org/webhooks/github"
    assert sent["redirect_url"] == f"{stage.url}/setup/callback"
    assert sent["setup_url"] == "https://q.example.org/setup/queues"
    assert sent["default_events"] == written["default_events"]
    more = {"workflows": "write", "issues": "write"}
    assert sent["default_permissions"] == {**written["default_permissions"], **more}
    assert "{public_url}" not in json.dumps(sent)


async def test_a_person_owns_the_app_without_an_organization(stage):
    page = await stage.fill(owner="person")
    form = page.form("Create the GitHub App")
    assert form.action.startswith(f"{stage.sandbox.url}/settings/apps/new?state=")


def test_every_permission_has_a_reason():
    written = yaml.safe_load((ROOT / "app.yml").read_text("utf-8"))["default_permissions"]
    shown = {one.name: one.level for one in manifest.permissions()}
    assert shown == written
    assert all(one.reason for one in (*manifest.permissions(), *manifest.OPTIONAL))


def stored_in(stage):
    return stage.settings.data_dir / "github-app.env"


async def test_the_credentials_are_stored_for_us_alone_and_shown_nowhere(stage):
    page = await stage.browser.open(await stage.confirmed())
    assert (page.status, "is registered" in page.text) == (200, True)
    assert stage.registering.done.is_set()
    text = stored_in(stage).read_text()
    assert stored_in(stage).stat().st_mode & 0o777 == 0o600
    for name in SECRET_NAMES:
        (secret,) = re.findall(rf'HEADGATE_GITHUB_{name}="([^"]+)"', text)
        assert secret[:30] not in page.text
    whole = all_settings.with_registered_app(stage.settings)
    assert whole.github_app_id == str(stage.sandbox.app_id)
    assert wiring.webhook_secrets_of(whole) == (stage.sandbox.webhook_secret,)
    assert whole.public_url == stage.url


async def test_the_state_must_be_the_one_of_this_browser_and_is_valid_once(stage):
    back = await stage.confirmed()
    query = parse_qs(urlsplit(back).query)
    wrong = back.replace(query["state"][0], "x" * 43)
    async with browsing() as stranger:
        assert (await stranger.open(back)).status == 403
        await stranger.open(stage.new_link())
        await stranger.press("Begin")
        assert (await stranger.open(back)).status == 400
    assert (await stage.browser.open(wrong)).status == 400
    assert not stored_in(stage).exists()
    assert (await stage.browser.open(back)).status == 200
    assert (await stage.browser.open(back)).status == 400


async def test_a_state_ends_after_an_hour(stage):
    back = await stage.confirmed()
    stage.clock.present += sessions.STATE_LIFETIME
    page = await stage.browser.open(back)
    assert (page.status, "Start again" in page.text) == (400, True)


async def test_a_code_that_github_does_not_know_leads_back_to_the_form(stage):
    back = await stage.confirmed()
    code = parse_qs(urlsplit(back).query)["code"][0]
    page = await stage.browser.open(back.replace(code, "old"))
    assert (page.status, "start again at /setup" in page.text) == (400, True)
    assert not stage.registering.done.is_set()


async def test_a_strange_answer_names_the_app_to_delete_and_shows_no_secret(stage):
    back = await stage.confirmed()
    fault = {"kind": "refuse", "status": 500, "message": "whoops"}
    match = {"method": "POST", "path": "/app-manifests/*"}
    await stage.sandbox.control.add_fault({"match": match, "fault": fault})
    page = await stage.browser.open(back)
    assert page.status == 502
    assert 'delete the App "Headgate" on github.localhost' in page.text
    assert not stage.registering.done.is_set()


@pytest.fixture
def nowhere(given):
    """Settings that lead to a host where nothing listens."""
    given["github_url"] = "http://127.0.0.1:9"


async def test_a_host_that_cannot_be_reached_leaves_the_code_for_another_try(nowhere, stage):
    page = await stage.fill()
    target = urlsplit(page.form("Create the GitHub App").action)
    state = parse_qs(target.query)["state"][0]
    for _ in range(2):
        page = await stage.browser.open(f"{stage.url}/setup/callback?code=c&state={state}")
        assert (page.status, "Reload this page" in page.text) == (502, True)


async def test_credentials_that_are_there_are_never_replaced(stage):
    back = await stage.confirmed()
    stored_in(stage).write_text("of another App")
    page = await stage.browser.open(back)
    assert page.status == 500
    assert "github-app.env is there already" in page.text
    assert f"{stage.sandbox.url}/apps/headgate" in page.text
    assert stored_in(stage).read_text() == "of another App"
    assert not stage.registering.done.is_set()


async def test_the_style_sheet_of_the_last_page_waits_for_the_service(given, capsys):
    settings, clock = all_settings.alone(port=0, **given), SystemClock()
    with closing(Address(settings)) as address:
        whole = asyncio.create_task(
            registering.registered(settings, Sessions(settings, clock), clock, address)
        )
        async with browsing() as browser:
            await browser.open(await printed_link(capsys, clock))
            await browser.press("Begin")
            await browser.press("Continue", organization="octo")
            await browser.press("Create the GitHub App")
            last = await browser.press("Create GitHub App for octo")
            assert (await whole).has_app
            parts, sheet = urlsplit(last.url), documents.address(pages.STYLE)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(f"GET {sheet} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            service = connections.runner(styled(), drain_s=0.0)
            await address.listen(service)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
            await service.cleanup()


async def test_probes_find_the_admin_listener_in_set_up_mode_and_the_address_is_stored(
    given, capsys
):
    port = free_port()
    admin = f"http://127.0.0.1:{port}"
    given |= {"admin_listen": f"127.0.0.1:{port}", "port": 0}
    settings = all_settings.alone(**given)
    clock = SystemClock()
    with closing(Address(settings)) as address:
        whole = asyncio.create_task(
            registering.registered(settings, Sessions(settings, clock), clock, address)
        )
        link = await printed_link(capsys, clock)
        assert sessions.stored_address(settings.data_dir) == link.partition("/setup")[0]
        found = [
            (await answer_to(f"{admin}/{name}"))[0] for name in ("healthz", "readyz", "metrics")
        ]
        assert found == [200, 503, 503]
        whole.cancel()
        await asyncio.gather(whole, return_exceptions=True)
    with pytest.raises(aiohttp.ClientConnectorError):
        await answer_to(f"{admin}/healthz")


async def test_probes_find_the_admin_listener_while_the_database_is_away(given):
    port = free_port()
    settings = all_settings.alone(**{**given, "admin_listen": f"127.0.0.1:{port}", "port": 0})
    found: list[int] = []
    answers = iter((DatabaseAway("It is away."), None))

    async def open_now():
        if away := next(answers):
            raise away
        url = f"http://127.0.0.1:{port}"
        found.extend([(await answer_to(f"{url}/{name}"))[0] for name in ("healthz", "readyz")])

    with closing(Address(settings)) as address:
        await starting.store_once_there(open_now, address, SystemClock())
    assert found == [200, 503]


async def test_a_public_address_is_stored_as_the_address_of_the_service(given):
    settings = all_settings.alone(public_url="https://queue.example.org", **given)
    sessions.store_address(settings, "http://127.0.0.1:8642")
    assert sessions.stored_address(settings.data_dir) == "https://queue.example.org"


async def printed_link(capsys, clock):
    """The link to the set-up pages, once it is printed."""
    text = ""
    async with asyncio.timeout(PRINTED_WITHIN_S):
        while not (found := re.search(r"http://\S+/setup\?token=\S+", text)):
            await clock.sleep(0.01)
            text += capsys.readouterr().out
    return found[0]


def styled():
    """What the service has of the set-up pages: their style sheet."""
    app = web.Application()
    app.router.add_get(documents.address(pages.STYLE), pages.style)
    app[connections.BROKEN] = listening.broken
    return app


async def test_an_app_without_a_webhook_secret_gets_one(stage):
    back = await stage.confirmed()
    stage.sandbox.world.webhook_secret = ""
    assert (await stage.browser.open(back)).status == 200
    whole = all_settings.with_registered_app(stage.settings)
    (secret,) = wiring.webhook_secrets_of(whole)
    assert (len(secret), secret) == (64, stage.sandbox.webhook_secret)


def test_a_session_remembers_the_newest_states_alone():
    session, now = Session("csrf", SystemClock().now()), SystemClock().now()
    choices = manifest.Choices("octo", "n", "https://q.example.org", "github.com")
    states = [session.new_state(choices, now) for _ in range(sessions.STATES_MAX + 1)]
    assert session.take(states[0], now) is None
    taken = session.take(states[-1], now)
    assert taken is not None
    assert taken.choices == choices
