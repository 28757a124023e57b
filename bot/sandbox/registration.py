"""Registering and installing the App in a browser, as on the provider's own pages.

A manifest comes from another site's form; the person confirms it, and goes back with a code that
is exchanged once for the credentials (the provider's "Registering a GitHub App from a manifest").
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from bot.sandbox.acts import installations
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
        return leading_to(shown, manifest.redirect_url)

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
        return leading_to(shown, app.setup_url)

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


def leading_to(shown: web.Response, url: str | None) -> web.Response:
    """Let the forms of a page lead to another site as well."""
    if url is not None:
        parts = urlsplit(url)
        policy = shown.headers["Content-Security-Policy"]
        allowed = f"form-action 'self' {parts.scheme}://{parts.netloc}"
        shown.headers["Content-Security-Policy"] = policy.replace("form-action 'self'", allowed)
    return shown


async def convert(call: Call) -> Answer:
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
    Route("POST", "/app-manifests/{code}/conversions", convert, ("app",)),
    Route("PATCH", "/app/hook/config", _change_hook, ("app",)),
)
