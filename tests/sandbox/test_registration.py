"""Registering the App by a manifest, and installing it, as a browser does it."""

import html
import json
import re
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from bot.sandbox.app import SandboxOptions, running
from tests.sandbox.client import Client, app_token

NEW = "/organizations/octo/settings/apps/new?state=s-1"
BACK = "https://queue.example.org/setup/callback"
MANIFEST = {
    "name": "Our Queue",
    "url": "https://queue.example.org",
    "hook_attributes": {"url": "https://queue.example.org/hook"},
    "redirect_url": BACK,
    "setup_url": "https://queue.example.org/setup/queues",
    "default_permissions": {"contents": "write"},
    "default_events": ["push"],
}


@pytest.fixture
async def sandbox():
    async with running(SandboxOptions(is_manual=True, has_app=False)) as started:
        await started.seed(repositories=[{"full_name": "octo/widgets"}, {"full_name": "octo/b"}])
        yield started


@pytest.fixture
async def browser(sandbox):
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(sandbox.url, cookie_jar=jar) as session:

        async def go(path, form=None, **headers):
            method = "GET" if form is None else "POST"
            async with session.request(
                method, path, data=form, headers=headers, allow_redirects=False
            ) as answer:
                return answer.status, await answer.text(), answer.headers

        yield go


async def asked(browser, **changes):
    """The page that a manifest of another site leads to."""
    form = {"manifest": json.dumps({**MANIFEST, **changes})}
    return await browser(NEW, form, Origin="https://queue.example.org")


async def confirmed(browser):
    """Query of the address to which the confirmed page leads back."""
    _, page, _ = await asked(browser)
    fields = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)
    form = {name: html.unescape(value) for name, value in fields}
    status, _, headers = await browser("/_sandbox/apps", form)
    assert status == 302
    back = urlsplit(headers["Location"])
    assert back.geturl().startswith(f"{BACK}?")
    return {name: value for name, (value,) in parse_qs(back.query).items()}


async def converted(sandbox, http, code):
    return await Client(sandbox, http, None).call("POST", f"/app-manifests/{code}/conversions")


async def test_a_world_without_an_app_has_no_installation_and_no_webhooks(sandbox):
    assert sandbox.world.app is None
    assert sandbox.world.installations == {}
    assert set(sandbox.environment()) == {"HEADGATE_GITHUB_URL", "HEADGATE_GITHUB_HOST"}


async def test_the_app_of_ci_is_not_the_one_to_register(sandbox, browser, http):
    ci = "triggers: {pull_request: true}\nchecks: [{name: unit, seconds: 1}]\n"
    await sandbox.act("open", "alice", "octo/widgets", files={".sandbox/ci.yml": ci})
    await sandbox.settle()
    assert "sandbox-ci" in sandbox.world.apps
    assert set(sandbox.environment()) == {"HEADGATE_GITHUB_URL", "HEADGATE_GITHUB_HOST"}
    made = await converted(sandbox, http, (await confirmed(browser))["code"])
    assert made.body["slug"] == "our-queue"


async def test_a_manifest_of_another_site_only_asks(browser, sandbox):
    status, page, headers = await asked(browser)
    assert status == 200
    assert "Create GitHub App for octo" in page
    assert "form-action 'self' https://queue.example.org" in headers["Content-Security-Policy"]
    assert sandbox.world.app is None


async def test_another_site_cannot_confirm(browser, sandbox):
    status, _, _ = await browser("/_sandbox/apps", {"manifest": "{}"}, Origin="https://evil.test")
    assert status == 403
    assert sandbox.world.app is None


@pytest.mark.parametrize("changes", [{"name": "n" * 35}, {"url": ""}, {"redirect_url": None}])
async def test_a_wrong_manifest_is_refused(browser, changes):
    given = {key: value for key, value in changes.items() if value is not None}
    manifest = {key: value for key, value in MANIFEST.items() if key not in changes} | given
    status, page, _ = await browser(NEW, {"manifest": json.dumps(manifest)})
    assert (status, 'role="alert"' in page) == (422, True)


async def test_the_code_is_exchanged_once_for_credentials_that_work(browser, sandbox, http):
    back = await confirmed(browser)
    assert back["state"] == "s-1"
    made = await converted(sandbox, http, back["code"])
    assert made.status == 201
    assert made.body["slug"] == "our-queue"
    assert made.body["owner"]["login"] == "octo"
    assert made.body["permissions"] == {"contents": "write"}
    assert made.body["pem"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert made.body["webhook_secret"] == sandbox.webhook_secret
    app = await Client(sandbox, http, app_token(sandbox)).call("GET", "/app")
    assert app.body["id"] == made.body["id"]
    assert (await converted(sandbox, http, back["code"])).status == 404


async def test_a_code_is_worthless_after_an_hour(browser, sandbox, http):
    back = await confirmed(browser)
    sandbox.world.timeline.advance(3601)
    assert (await converted(sandbox, http, back["code"])).status == 404


async def test_the_webhook_gets_another_secret(browser, sandbox, http):
    await confirmed(browser)
    body = {"secret": "t" * 40}
    client = Client(sandbox, http, app_token(sandbox))
    answer = await client.call("PATCH", "/app/hook/config", body)
    assert (answer.status, sandbox.webhook_secret) == (200, "t" * 40)


async def test_the_app_is_installed_on_chosen_repositories(browser, sandbox):
    await confirmed(browser)
    _, page, _ = await browser("/apps/our-queue/installations/new")
    (number,) = re.findall(r'value="(\d+)"> octo/b', page)
    form = {"owner": "octo", "repository": number}
    status, _, headers = await browser("/apps/our-queue/installations/new", form)
    assert status == 302
    assert headers["Location"].startswith(f"{MANIFEST['setup_url']}?installation_id=")
    (installation,) = sandbox.world.installations.values()
    seen = sandbox.world.repositories_of(installation)
    assert [one.full_name for one in seen] == ["octo/b"]


async def test_only_its_owner_can_install_a_private_app(browser, sandbox):
    """GitHub Docs, "Making a GitHub App public or private"."""
    await sandbox.seed(repositories=[{"full_name": "carol/website"}])
    await confirmed(browser)
    _, page, _ = await browser("/apps/our-queue/installations/new")
    assert ("octo/b" in page, "carol/website" in page) == (True, False)
    status, page, _ = await browser("/apps/our-queue/installations/new", {"owner": "carol"})
    assert (status, "only octo can install it" in page) == (422, True)
    assert sandbox.world.installations == {}


async def test_there_is_no_page_for_an_app_that_is_not_registered(browser):
    assert (await browser("/apps/headgate/installations/new"))[0] == 422
