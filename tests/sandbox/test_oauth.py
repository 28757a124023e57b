"""Signing people in with the App, as on the provider's own pages.

Parameters, lifetimes and errors:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors
"""

import hashlib
from base64 import urlsafe_b64encode
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest

from bot.sandbox.app import SandboxOptions, running
from bot.sandbox.registration import SIGN_IN_CODE_LIFETIME

BACK = "http://127.0.0.1:1/auth/github/callback"
VERIFIER = "v" * 43
CHALLENGE = urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@pytest.fixture
async def sandbox():
    async with running(SandboxOptions(is_manual=True)) as started:
        yield started


@pytest.fixture
async def http(sandbox):
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(sandbox.url, cookie_jar=jar) as session:
        yield session


def asked(sandbox, **changes):
    given = {
        "client_id": sandbox.app.client_id,
        "redirect_uri": BACK,
        "state": "s-1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "authorize": "1",
    }
    return {**given, **changes}


async def code_of(sandbox, http, **changes):
    """The code with which the person is sent back."""
    form = asked(sandbox, **changes)
    async with http.post("/login/oauth/authorize", data=form, allow_redirects=False) as answer:
        back = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert back["state"] == ["s-1"]
    return back["code"][0]


async def exchanged(sandbox, http, given, **changes):
    """The answer to a code, which has status 200 in any case."""
    form = {
        "client_id": sandbox.app.client_id,
        "client_secret": sandbox.app.client_secret,
        "code": given,
        "code_verifier": VERIFIER,
        "redirect_uri": BACK,
        **changes,
    }
    headers = {"Accept": "application/json"}
    sent = http.post("/login/oauth/access_token", data=form, headers=headers)
    async with sent as answer:
        assert answer.status == 200
        return await answer.json()


async def test_a_code_gives_a_token_that_says_who_the_person_is(sandbox, http):
    token = await exchanged(sandbox, http, await code_of(sandbox, http))
    assert (token["token_type"], token["scope"]) == ("bearer", "")
    headers = {"Authorization": f"Bearer {token['access_token']}"}
    async with http.get("/api/v3/user", headers=headers) as answer:
        assert (await answer.json())["login"] == "alice"
    async with http.get("/api/v3/user") as answer:
        assert answer.status in (401, 403)


async def test_who_agreed_once_is_sent_back_at_once(sandbox, http):
    path = f"/login/oauth/authorize?{urlencode(asked(sandbox))}"
    async with http.get(path, allow_redirects=False) as answer:
        assert (answer.status, "Authorize" in await answer.text()) == (200, True)
    await code_of(sandbox, http)
    async with http.get(path, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"].startswith(BACK)) == (302, True)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_secret": "wrong"}, "incorrect_client_credentials"),
        ({"client_id": "wrong"}, "incorrect_client_credentials"),
        ({"code": "wrong"}, "bad_verification_code"),
        ({"code_verifier": "w" * 43}, "bad_verification_code"),
        ({"redirect_uri": "http://127.0.0.1:2/"}, "redirect_uri_mismatch"),
    ],
)
async def test_a_wrong_exchange_is_an_error_with_status_200(sandbox, http, changes, error):
    code = await code_of(sandbox, http)
    assert (await exchanged(sandbox, http, code, **changes))["error"] == error


async def test_a_code_is_valid_once_and_for_ten_minutes(sandbox, http):
    code = await code_of(sandbox, http)
    assert "access_token" in await exchanged(sandbox, http, code)
    assert (await exchanged(sandbox, http, code))["error"] == "bad_verification_code"
    late = await code_of(sandbox, http)
    sandbox.world.timeline.clock.advance(SIGN_IN_CODE_LIFETIME.total_seconds() + 1)
    assert (await exchanged(sandbox, http, late))["error"] == "bad_verification_code"


async def test_nobody_is_sent_to_an_address_that_is_not_registered(sandbox, http):
    path = f"/login/oauth/authorize?{urlencode(asked(sandbox, redirect_uri='https://evil.test/'))}"
    async with http.get(path, allow_redirects=False) as answer:
        assert answer.status == 400
    sandbox.app.callback_urls = [BACK]
    async with http.get(path, allow_redirects=False) as answer:
        back = urlsplit(answer.headers["Location"])
        assert back.geturl().startswith(f"{BACK}?")
        assert parse_qs(back.query)["error"] == ["redirect_uri_mismatch"]


async def test_by_default_the_answer_is_a_form(sandbox, http):
    form = {"client_id": "x"}
    async with http.post("/login/oauth/access_token", data=form) as answer:
        assert answer.content_type == "application/x-www-form-urlencoded"
        assert "incorrect_client_credentials" in await answer.text()
