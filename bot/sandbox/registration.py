"""Registering and installing the App in a browser, and signing people in to another site with it.

A manifest comes from another site's form; the person confirms it, and goes back with a code that
is exchanged once for the credentials (the provider's "Registering a GitHub App from a manifest").
Signing in follows "Generating a user access token for a GitHub App".
"""

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hmac import compare_digest
from typing import Any
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from bot.sandbox.acts import installations
from bot.sandbox.auth import Credentials
from bot.sandbox.pages import Pages
from bot.sandbox.records import Account, App, Json, Kind
from bot.sandbox.refusal import not_found
from bot.sandbox.rest.call import Answer, Call, Reply, Route
from bot.sandbox.shapes import people
from bot.sandbox.world import World

NEW = "/settings/apps/new"
NEW_OF_ORGANIZATION = r"/organizations/{owner}/settings/apps/new"
CONFIRM = "/_sandbox/apps"
INSTALL = "/apps/{slug}/installations/new"
CODE_LIFETIME = timedelta(hours=1)
NAME_CHARS_MAX = 34

Show = Callable[[web.Request], Awaitable[web.StreamResponse]]

_AUTHORIZE = "/login/oauth/authorize"
_ACCESS_TOKEN = "/login/oauth/access_token"
SIGN_IN_CODE_LIFETIME = timedelta(minutes=10)
_TOKEN_LIFETIME_S = 28_800
_DOCS = "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors"
_ERRORS = {
    "incorrect_client_credentials": "The client_id and/or client_secret passed are incorrect.",
    "redirect_uri_mismatch": "The redirect_uri MUST match the registered callback URL.",
    "bad_verification_code": "The code passed is incorrect or expired.",
}


@dataclass(frozen=True, slots=True)
class _Grant:
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
        self._grants: dict[str, _Grant] = {}
        self._authorized: set[int] = set()

    def add_to(self, app: web.Application) -> None:
        """Add the pages to an application."""
        app.router.add_get(_AUTHORIZE, self.ask)
        app.router.add_post(_AUTHORIZE, self.authorize)
        app.router.add_post(_ACCESS_TOKEN, self.exchange)

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
        return _leading_to(shown, redirect_uri)

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
        grant = _Grant(self._pages.me(request), redirect_uri, challenge, self.world.now())
        self._grants[code] = grant
        back = urlencode({"code": code, "state": asked.get("state", "")})
        raise web.HTTPFound(f"{redirect_uri}?{back}")

    def _back(
        self, redirect_uri: str, query: Mapping[str, str], error: str, app: App
    ) -> web.StreamResponse:
        """Send an error to the App's own callback, never to a foreign address."""
        if not app.callback_urls:
            raise web.HTTPBadRequest(text=f"{redirect_uri} is not of this machine")
        back = {
            "error": error,
            "error_description": _ERRORS[error],
            "state": query.get("state", ""),
        }
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
        if grant is None or self.world.now() - grant.at > SIGN_IN_CODE_LIFETIME:
            return _error("bad_verification_code")
        if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            return _error("redirect_uri_mismatch")
        if grant.challenge and not compare_digest(_challenge_of(form), grant.challenge):
            return _error("bad_verification_code")
        token = self._credentials.mint_user_token(grant.account, secret(self.world, "user"))
        return {
            "access_token": token,
            "expires_in": _TOKEN_LIFETIME_S,
            "refresh_token": f"ghr_{secret(self.world, 'refresh')}",
            "refresh_token_expires_in": 15_897_600,
            "scope": "",
            "token_type": "bearer",
        }


class NotRegistered(Exception):
    """The page cannot do it; the message says why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a manifest; see `manifest_of`."""

    name: str
    slug: str
    hook_url: str
    redirect_url: str
    setup_url: str | None
    permissions: dict[str, str]
    events: list[str]
    callback_urls: list[str]
    is_public: bool


class Registration:
    """The pages of one world."""

    def __init__(self, world: World, pages: Pages) -> None:
        self.world = world
        self._pages = pages

    def add_to(self, app: web.Application) -> None:
        """Add the pages to an application."""
        routes: tuple[tuple[str, str, Show], ...] = (
            ("POST", NEW, self.ask),
            ("POST", NEW_OF_ORGANIZATION, self.ask),
            ("POST", CONFIRM, self.register),
            ("GET", INSTALL, self.choose),
            ("POST", INSTALL, self.install),
        )
        for method, path, show in routes:
            app.router.add_route(method, path, partial(self._with_refusals, show))

    async def _with_refusals(self, show: Show, request: web.Request) -> web.StreamResponse:
        try:
            return await show(request)
        except NotRegistered as refused:
            return self._pages.show(request, "refused.html", 422, message=str(refused))

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Show a manifest of another site, and ask whether to make the App."""
        form = await request.post()
        text, owner = str(form.get("manifest", "")), self._owner(request, request.match_info)
        manifest = _manifest_of(text)
        shown = self._pages.show(
            request,
            "app.html",
            manifest=manifest,
            text=text,
            owner=owner,
            state=request.query.get("state", ""),
        )
        return _leading_to(shown, manifest.redirect_url)

    async def register(self, request: web.Request) -> web.StreamResponse:
        """Make the App, and go back to the other site with a code."""
        form = await request.post()
        owner = self._owner(request, {"owner": str(form.get("owner", ""))})
        manifest = _manifest_of(str(form.get("manifest", "")))
        world = self.world
        if world.app is not None:
            raise NotRegistered("This sandbox has its App already.")
        made = world.app = world.add_app(manifest.slug, manifest.permissions, manifest.events)
        made.name, made.owner, made.setup_url = manifest.name, owner, manifest.setup_url
        made.callback_urls, made.is_public = manifest.callback_urls, manifest.is_public
        world.webhook_url = manifest.hook_url
        world.webhook_secret = secret(world, "webhook")
        code = secret(world, "code")
        world.manifest_codes[code] = world.now()
        back = {"code": code, "state": str(form.get("state", ""))}
        raise web.HTTPFound(f"{manifest.redirect_url}?{urlencode(back)}")

    async def choose(self, request: web.Request) -> web.StreamResponse:
        """Ask on which account and repositories to install the App."""
        app = self._app(request)
        owners = self._installable_on(app)
        listed = [one for one in self.world.repositories.values() if one.owner in owners]
        shown = self._pages.show(request, "install.html", app=app, owners=owners, listed=listed)
        return _leading_to(shown, app.setup_url)

    async def install(self, request: web.Request) -> web.StreamResponse:
        """Install the App, and go to its set-up page if it has one."""
        app, form = self._app(request), await request.post()
        owner = self._owner(request, {"owner": str(form.get("owner", ""))})
        if owner not in self._installable_on(app):
            raise NotRegistered(f"{app.name} is private: only {app.owner.login} can install it.")
        chosen = {int(str(one)) for one in form.getall("repository", [])}
        installation = installations.install(self.world, owner, chosen or None)
        installations.select(self.world, owner, chosen or None, owner)
        if app.setup_url is None:
            raise web.HTTPSeeOther("/")
        more = {"installation_id": installation.id, "setup_action": "install"}
        raise web.HTTPFound(f"{app.setup_url}?{urlencode(more)}")

    def _app(self, request: web.Request) -> App:
        app = self.world.apps.get(request.match_info["slug"])
        if app is None:
            raise NotRegistered(f"No App is called {request.match_info['slug']}.")
        return app

    def _installable_on(self, app: App) -> list[Account]:
        """Accounts that can install the App; of a private one, its owner alone."""
        everyone = [one for one in self.world.accounts.values() if one.kind is not Kind.BOT]
        return everyone if app.is_public else [app.owner]

    def _owner(self, request: web.Request, named: Any) -> Account:
        """The organization of that name, or without one the person of this browser."""
        login = named.get("owner")
        if not login:
            return self._pages.me(request)
        owner = self.world.account(login)
        if owner is None:
            raise NotRegistered(f"No account is called {login}.")
        return owner


def _manifest_of(text: str) -> Manifest:
    """Read a manifest. Raises NotRegistered naming the wrong field."""
    try:
        value: Json = json.loads(text)
        name, redirect_url = str(value["name"]).strip(), str(value["redirect_url"])
        hook_url, setup_url = str(value["hook_attributes"]["url"]), value.get("setup_url")
        permissions, events = dict(value["default_permissions"]), list(value["default_events"])
        callbacks = [str(one) for one in value.get("callback_urls", [])]
        is_public = bool(value.get("public", False))
    except (ValueError, TypeError, KeyError) as wrong:
        raise NotRegistered(f"The manifest is wrong: {wrong!r}") from None
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or len(name) > NAME_CHARS_MAX:
        raise NotRegistered(f"Name has to have 1 to {NAME_CHARS_MAX} characters.")
    if not value.get("url"):
        raise NotRegistered("The manifest has no url.")
    return Manifest(
        name, slug, hook_url, redirect_url, setup_url, permissions, events, callbacks, is_public
    )


def secret(world: World, purpose: str) -> str:
    """Return 40 hexadecimal digits, the same for the same story of a world."""
    seed = f"{world.seed}:{purpose}:{world.new_id()}".encode()
    return hashlib.sha256(seed).hexdigest()[:40]


def _leading_to(shown: web.Response, url: str | None) -> web.Response:
    """Let the forms of a page lead to another site as well."""
    if url is not None:
        parts = urlsplit(url)
        policy = shown.headers["Content-Security-Policy"]
        allowed = f"form-action 'self' {parts.scheme}://{parts.netloc}"
        shown.headers["Content-Security-Policy"] = policy.replace("form-action 'self'", allowed)
    return shown


async def _convert(call: Call) -> Answer:
    """Exchange the code of a manifest for the App's credentials, once and within an hour."""
    world, app = call.world, call.world.app
    began = world.manifest_codes.pop(call.params["code"], None)
    if began is None or app is None or world.now() - began > CODE_LIFETIME:
        raise not_found()
    credentials = {
        "client_secret": app.client_secret,
        "webhook_secret": world.webhook_secret,
        "pem": call.credentials.pem.decode(),
    }
    return Reply({**people.app(world, app), **credentials}, 201)


async def _change_hook(call: Call) -> Answer:
    """Change address or secret of the App's webhook."""
    call.check_app()
    call.world.webhook_url = call.optional("url") or call.world.webhook_url
    call.world.webhook_secret = call.optional("secret") or call.world.webhook_secret
    shown = {"content_type": "json", "insecure_ssl": "0", "secret": "********"}
    return Reply({**shown, "url": call.world.webhook_url})


ROUTES = (
    Route("POST", "/app-manifests/{code}/conversions", _convert, ("app",)),
    Route("PATCH", "/app/hook/config", _change_hook, ("app",)),
)


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
    return {"error": code, "error_description": _ERRORS[code], "error_uri": f"{_DOCS}#{code}"}
