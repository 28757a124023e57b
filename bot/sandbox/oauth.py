"""Signing people in to another site with the App: GitHub's web application flow.

Rules: the provider's page "Generating a user access token for a GitHub App".
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from bot.sandbox.auth import Credentials
from bot.sandbox.pages import Pages
from bot.sandbox.records import Account, App
from bot.sandbox.registration import leading_to, secret
from bot.sandbox.world import World

AUTHORIZE = "/login/oauth/authorize"
ACCESS_TOKEN = "/login/oauth/access_token"
CODE_LIFETIME = timedelta(minutes=10)
TOKEN_LIFETIME_S = 28_800
DOCS = "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors"
ERRORS = {
    "incorrect_client_credentials": "The client_id and/or client_secret passed are incorrect.",
    "redirect_uri_mismatch": "The redirect_uri MUST match the registered callback URL.",
    "bad_verification_code": "The code passed is incorrect or expired.",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """A code until it is exchanged, once."""

    account: Account
    redirect_uri: str
    challenge: str
    at: datetime


class SignIn:
    """The pages of the flow, and the exchange of codes."""

    def __init__(self, world: World, credentials: Credentials, pages: Pages) -> None:
        self.world = world
        self._credentials = credentials
        self._pages = pages
        self._grants: dict[str, Grant] = {}
        self._authorized: set[int] = set()

    def add_to(self, app: web.Application) -> None:
        """Add the pages to an application."""
        app.router.add_get(AUTHORIZE, self.ask)
        app.router.add_post(AUTHORIZE, self.authorize)
        app.router.add_post(ACCESS_TOKEN, self.exchange)

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Ask the person of this browser; who agreed before is sent back at once."""
        query, app = request.query, self.world.app
        if app is None or query.get("client_id") != app.client_id:
            return self._pages.show(request, "refused.html", 404, message="No such App.")
        redirect_uri = query.get("redirect_uri", "")
        if not _is_callback(app, redirect_uri):
            return self._back(redirect_uri, query, "redirect_uri_mismatch", app)
        if self._pages.me(request).id in self._authorized:
            return self._granted(request, query)
        shown = self._pages.show(request, "authorize.html", app=app, asked=query)
        return leading_to(shown, redirect_uri)

    async def authorize(self, request: web.Request) -> web.StreamResponse:
        """Take the answer of the person."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        app = self.world.app
        if app is None or not _is_callback(app, form.get("redirect_uri", "")):
            raise web.HTTPBadRequest
        if form.get("authorize") != "1":
            back = {
                "error": "access_denied",
                "error_description": "The user has denied your application access.",
                "state": form.get("state", ""),
            }
            raise web.HTTPFound(f"{form['redirect_uri']}?{urlencode(back)}")
        self._authorized.add(self._pages.me(request).id)
        return self._granted(request, form)

    def _granted(self, request: web.Request, asked: Mapping[str, str]) -> web.StreamResponse:
        code = secret(self.world, "oauth")[:20]
        challenge = asked.get("code_challenge", "")
        if asked.get("code_challenge_method", "S256") != "S256":
            raise web.HTTPBadRequest
        redirect_uri = asked["redirect_uri"]
        grant = Grant(self._pages.me(request), redirect_uri, challenge, self.world.now())
        self._grants[code] = grant
        back = urlencode({"code": code, "state": asked.get("state", "")})
        raise web.HTTPFound(f"{redirect_uri}?{back}")

    def _back(
        self, redirect_uri: str, query: Mapping[str, str], error: str, app: App
    ) -> web.StreamResponse:
        """Send an error to the App's own callback, never to a foreign address."""
        if not app.callback_urls:
            raise web.HTTPBadRequest(text=f"{redirect_uri} is not of this machine")
        back = {"error": error, "error_description": ERRORS[error], "state": query.get("state", "")}
        raise web.HTTPFound(f"{app.callback_urls[0]}?{urlencode(back)}")

    async def exchange(self, request: web.Request) -> web.StreamResponse:
        """Exchange a code for a token of the person; errors have status 200 as well."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        answer = self._exchanged(form)
        if "json" in request.headers.get("Accept", ""):
            return web.json_response(answer)
        return web.Response(
            text=urlencode(answer), content_type="application/x-www-form-urlencoded"
        )

    def _exchanged(self, form: Mapping[str, str]) -> dict[str, object]:
        app = self.world.app
        is_app = app is not None and form.get("client_id") == app.client_id
        if app is None or not is_app or form.get("client_secret") != app.client_secret:
            return _error("incorrect_client_credentials")
        grant = self._grants.pop(form.get("code", ""), None)
        if grant is None or self.world.now() - grant.at > CODE_LIFETIME:
            return _error("bad_verification_code")
        if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            return _error("redirect_uri_mismatch")
        if grant.challenge and not compare_digest(_challenge_of(form), grant.challenge):
            return _error("bad_verification_code")
        token = self._credentials.mint_user_token(grant.account, secret(self.world, "user"))
        return {
            "access_token": token,
            "expires_in": TOKEN_LIFETIME_S,
            "refresh_token": f"ghr_{secret(self.world, 'refresh')}",
            "refresh_token_expires_in": 15_897_600,
            "scope": "",
            "token_type": "bearer",
        }


def _is_callback(app: App, redirect_uri: str) -> bool:
    """Return whether an App's sign-in may lead there.

    An App that was not registered by a manifest has no list; any address of this machine will do.
    """
    if app.callback_urls:
        return redirect_uri in app.callback_urls
    return urlsplit(redirect_uri).hostname in ("127.0.0.1", "localhost", "::1")


def _challenge_of(form: Mapping[str, str]) -> str:
    """Return the S256 challenge of the verifier in a form."""
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _error(code: str) -> dict[str, object]:
    return {"error": code, "error_description": ERRORS[code], "error_uri": f"{DOCS}#{code}"}
