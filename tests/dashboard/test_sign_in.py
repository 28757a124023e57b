"""Signing in with GitHub: the story in a browser, and everything that is refused.

The flow, its parameters and its errors are those of GitHub's documentation:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors
"""

import asyncio
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import text

from bot import listening, settings, wiring
from bot.github.options import GitHubOptions, addresses_of
from service.accounts.store import sessions
from service.accounts.store.sessions import AGE_MAX, IDLE_MAX, WebSession
from service.clock import SystemClock
from service.dashboard import sign_in, visitors
from service.errors import StartRefused
from service.runtime import DashboardAuth
from service.vocabulary import Actor, ActorKind
from tests.dashboard.signing_in import AGREE, LINK, PATH, enter, person
from tests.harness.world import REPO
from tests.store.conftest import NOW

OPTIONS = GitHubOptions("github.com", addresses_of("github.com"), "1", (), ())


def cookies(browser):
    return {one.key: one for one in browser.http.cookie_jar if one.key.startswith("headgate")}


async def test_a_person_signs_in_reads_and_signs_out(pages):
    async with person(pages, "carol") as browser:
        page = await enter(pages, browser)
        assert (page.status, urlsplit(page.url).path) == (200, PATH)
        assert "carol" in page.words
        cookie = cookies(browser)["headgate"]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
        assert "headgate-begun" not in cookies(browser)
        overview = await browser.open(pages.url)
        assert REPO in overview.text
        page = await browser.press("Sign out")
        assert (page.status, LINK in page.links) == (401, True)
        browser.http.cookie_jar.update_cookies({"headgate": cookie.value})
        assert (await browser.open(f"{pages.url}{PATH}")).status == 401
        # GitHub asks a person once, so a second sign-in needs no button.
        assert (await enter(pages, browser)).status == 200
        assert cookies(browser)["headgate"].value != cookie.value


async def test_nothing_of_the_persons_token_is_kept(pages):
    async with person(pages, "carol") as browser:
        await enter(pages, browser)
        value = cookies(browser)["headgate"].value
    rows = await pages.runtime.store.read(
        lambda session: session.execute(text("SELECT * FROM web_session")).all()
    )
    assert len(rows) == 1
    assert value not in str(rows[0])
    assert "ghu_" not in str(rows[0])
    query = text("SELECT actor_login, channel, action FROM audit")
    entries = await pages.runtime.store.read(lambda session: session.execute(query).all())
    assert ("carol", "dashboard", "session.open") in [tuple(each) for each in entries]


async def test_what_one_may_not_read_on_github_is_not_there(pages):
    async with person(pages, "dave") as browser:
        page = await enter(pages, browser)
        assert page.status == 404
        missing = await browser.open(f"{pages.url}/octo/nothing/main")
        assert (missing.status, missing.text) == (404, page.text)
        assert REPO not in (await browser.open(pages.url)).text


async def test_a_role_that_ends_ends_reading_within_a_minute(pages):
    async with person(pages, "carol") as browser:
        assert (await enter(pages, browser)).status == 200
        await pages.act("role", by="alice", login="carol", role="none")
        await pages.rest(visitors.KEPT.total_seconds() + 1)
        assert (await browser.open(f"{pages.url}{PATH}")).status == 404


async def test_the_removal_of_the_app_ends_reading_at_once(pages):
    async with person(pages, "carol") as browser:
        assert (await enter(pages, browser)).status == 200
        await pages.act("uninstall", by="alice")
        await pages.settle()
        assert (await browser.open(f"{pages.url}{PATH}")).status == 404


async def test_the_removal_ends_reading_also_after_the_database_was_away(pages):
    async with person(pages, "carol") as browser:
        assert (await enter(pages, browser)).status == 200
        # A write whose outcome is unknown makes the store forget what it has cached.
        pages.runtime.store.caches.clear()
        assert (await browser.open(f"{pages.url}{PATH}")).status == 200
        await pages.act("uninstall", by="alice")
        await pages.settle()
        assert (await browser.open(f"{pages.url}{PATH}")).status == 404


async def test_a_right_that_is_read_during_the_removal_is_not_remembered(pages):
    kept = pages.runtime.memory.of(visitors.KeptLevels)
    levels = visitors.Levels(pages.runtime)
    (provider,) = pages.runtime.providers.values()
    repo = (await provider.repositories())[0].ref
    carol = Actor(ActorKind.PERSON, "carol", "9")
    visitor = visitors.Visitor(carol, "tag", host=repo.host)
    reading = asyncio.create_task(levels.of(visitor, repo))
    await asyncio.sleep(0)
    kept.forget(repo)
    await reading
    assert not kept.known


async def begun(pages, browser):
    """The state and code with which GitHub sends the browser back, before it is there."""
    await browser.open(f"{pages.url}/login")
    form = browser.page.form(AGREE)
    data = [*form.fields, *form.buttons[AGREE]]
    async with browser.http.post(form.action, data=data, allow_redirects=False) as answer:
        back = urlsplit(answer.headers["Location"])
    return back.geturl(), {name: value for name, (value,) in parse_qs(back.query).items()}


async def test_a_sign_in_ends_in_the_browser_that_began_it(pages):
    callback = f"{pages.url}/auth/github/callback"
    async with person(pages, "carol") as browser, person(pages, "dave") as thief:
        back, fields = await begun(pages, browser)
        page = await thief.open(back)
        assert (page.status, "not begun in this browser" in page.text) == (400, True)
        page = await browser.open(f"{callback}?code={fields['code']}&state=forged")
        assert page.status == 400
        page = await browser.open(f"{callback}?code={fields['code']}")
        assert page.status == 400
        # A code that was given to another browser fails by PKCE, also with the own state.
        _, stolen = await begun(pages, thief)
        page = await browser.open(f"{callback}?code={stolen['code']}&state={fields['state']}")
        assert (page.status, "headgate" in cookies(browser)) == (401, False)
        assert (await browser.open(back)).status == 200
        # The code is used, and so is the cookie that belongs to it.
        assert (await browser.open(back)).status == 400


async def test_who_denies_is_not_signed_in(pages):
    async with person(pages, "carol") as browser:
        await browser.open(f"{pages.url}/login")
        page = await browser.press("Cancel")
        assert (page.status, "You did not sign in" in page.text) == (403, True)
        assert "headgate" not in cookies(browser)


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/octo/widgets/main?after=1", "/octo/widgets/main?after=1"),
        ("https://evil.test/", "/"),
        ("//evil.test/", "/"),
        ("//[", "/"),
        ("/\\evil.test/", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("", "/"),
        ("/" + "x" * 3000, "/"),
    ],
)
def test_a_sign_in_leads_to_pages_of_ours_only(path, leads_to):
    assert sign_in.own_path(path) == leads_to


async def test_only_our_own_page_signs_somebody_out(pages):
    async with person(pages, "carol") as browser, person(pages, "bob") as other:
        await enter(pages, browser)
        await enter(pages, other)
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        other_tag = dict(other.page.form("Sign out").fields)["form_tag"]
        for data, headers in (
            ({"form_tag": tag}, {"Origin": "https://evil.test"}),
            ({"form_tag": tag}, {"Origin": "null"}),
            ({"form_tag": tag}, {}),
            ({"form_tag": tag}, {"Origin": pages.url, "Sec-Fetch-Site": "cross-site"}),
            ({"form_tag": other_tag}, {"Origin": pages.url}),
            ({}, {"Origin": pages.url}),
        ):
            sent = browser.http.post(f"{pages.url}/logout", data=data, headers=headers)
            async with sent as answer:
                assert answer.status == 403
        assert (await browser.open(f"{pages.url}{PATH}")).status == 200
        assert (await browser.press("Sign out")).status == 401
        assert (await other.open(f"{pages.url}{PATH}")).status == 200


async def test_while_github_is_away_nobody_signs_in_and_the_page_says_so(pages):
    async with person(pages, "carol") as browser:
        back, _ = await begun(pages, browser)
        await pages.fault({"path": "/user"}, "fail_before", status=502)
        page = await browser.open(back)
        assert (page.status, "headgate" in cookies(browser)) == (503, False)


async def test_a_session_ends_by_idleness_and_by_age(store):
    made = WebSession(b"x" * 32, "github.test", "7", "carol", NOW, NOW)
    await store.run(sessions.create, made)

    async def is_open(at):
        return await store.read(sessions.find, made.digest, at) is not None

    assert await is_open(NOW + IDLE_MAX - timedelta(seconds=1))
    assert not await is_open(NOW + IDLE_MAX)
    for hours in range(6, 24 * 7, 6):
        await store.run(sessions.touch, made.digest, NOW + timedelta(hours=hours))
    assert await is_open(NOW + AGE_MAX - timedelta(seconds=1))
    assert not await is_open(NOW + AGE_MAX)
    later = WebSession(b"y" * 32, "github.test", "8", "bob", NOW + AGE_MAX, NOW + AGE_MAX)
    await store.run(sessions.create, later)
    assert await store.read(sessions.find, made.digest, NOW) is None


@pytest.mark.parametrize(
    ("given", "lacks"),
    [
        ({"public_url": "http://queue.example.org"}, "needs an https address"),
        ({}, "needs an https address"),
        ({"public_url": "https://queue.example.org"}, "GITHUB_CLIENT_ID"),
    ],
)
def test_a_sign_in_that_cannot_work_is_refused_at_the_start(given, lacks):
    chosen = settings.alone(dashboard_auth="github", **given)
    with pytest.raises(StartRefused, match=lacks):
        wiring.sign_in_of(chosen, OPTIONS, SystemClock())


def test_a_sign_in_needs_tls_or_this_machine():
    secure = settings.alone(dashboard_auth="github", public_url="https://queue.example.org")
    assert listening.readers_of(secure) is DashboardAuth.GITHUB


async def test_a_wrong_client_secret_is_the_operators_mistake_and_no_ones_guess(pages):
    async with person(pages, "carol") as browser:
        back, _ = await begun(pages, browser)
        pages.sandbox.app.client_secret = "another"
        page = await browser.open(back)
        assert (page.status, "headgate" in cookies(browser)) == (502, False)
