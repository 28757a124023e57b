"""Set-up mode: register the App in a browser before the service starts.

Only the set-up pages, `/healthz`, `/readyz` and the style sheet answer, and `/` leads to the first
page; other requests get 503 `setup_required`.
"""

import asyncio
import sys

import structlog
from aiohttp import web

from bot import listening
from bot import settings as all_settings
from bot.github import registration
from bot.github.options import GitHubOptions
from bot.github.registration import CodeExpired, RegisteredApp, RegistrationFailed
from bot.listening import Address
from bot.program import VERSION
from bot.settings import Settings
from bot.setup import credentials, entering, manifest, pages, sessions
from bot.setup.credentials import NotStored
from bot.setup.entering import Entering
from bot.setup.manifest import Choices, WrongChoice
from bot.setup.pages import FOREIGN_FORM, NO_SESSION, Pages
from bot.setup.sessions import Session, Sessions
from bot.uploader.proxies import Proxies
from service.clock import Clock
from service.http import connections, documents

DIRECT = Proxies()
DRAIN_S = 2.0
FORM_BYTES_MAX = 64 * 1024

EXPIRED = (
    "GitHub does not know this code any more",
    "It is valid once and for an hour. If GitHub shows the App already, delete it there, then "
    "start again at /setup.",
)
WRONG_STATE = (
    "This answer of GitHub belongs to no form of this browser",
    "It was used, is older than an hour, or was started elsewhere. Start again at /setup.",
)

CHECK = {"setup": "running"}
RETRY_AFTER_S = 30
NOT_SET_UP = {
    "title": "Headgate is not set up",
    "code": "setup_required",
    "detail": "The GitHub App is not registered yet. Open the address that `headgate serve` "
    "printed, or run `headgate setup-url`.",
}

log = structlog.get_logger()


async def registered(
    settings: Settings,
    open_sessions: Sessions,
    clock: Clock,
    address: Address,
    proxies: Proxies = DIRECT,
) -> Settings:
    """Return the settings with the App's credentials; without them, wait for the registration.

    Afterwards the service listens on the same address: what the browser asks for in between, such
    as the style sheet of the last page, waits. Raises StartRefused for a data directory that cannot
    be written, and for a port in use.
    """
    if settings.has_app:
        return settings
    token = sessions.new_link(settings, clock.now())
    registering = Registering(settings, open_sessions, clock, proxies)
    runner = connections.runner(registering.application(), drain_s=DRAIN_S)
    health = listening.health_for_operators(settings, CHECK, NOT_SET_UP, RETRY_AFTER_S)
    try:
        url = await address.listen(runner)
        sessions.store_address(settings, url)
        async with health:
            # No App is registered yet: the set-up pages wait.
            log.info("setup_required", url=url)
            link = sessions.link_of(settings.public_url or url, token)
            sys.stdout.write(
                "Headgate has no GitHub App yet. To register one, open this address within an "
                f"hour; it works once:\n\n  {link}\n\n"
            )
            sys.stdout.flush()
            await registering.done.wait()
    finally:
        await runner.cleanup()
    # The App's credentials are in the file.
    log.info("app_registered", file=str(settings.app_file))
    return all_settings.with_registered_app(settings)


class Registering:
    """The pages that register the App; `done` is set when its credentials are stored."""

    def __init__(
        self,
        settings: Settings,
        open_sessions: Sessions,
        clock: Clock,
        proxies: Proxies = DIRECT,
    ) -> None:
        self.done = asyncio.Event()
        self._settings = settings
        self._sessions = open_sessions
        self._clock = clock
        self._proxies = proxies
        self._pages = Pages(settings)
        self._entering = Entering(settings, open_sessions, "/setup")

    def application(self) -> web.Application:
        """Return the application of set-up mode."""
        app = web.Application(client_max_size=FORM_BYTES_MAX)
        app.add_routes(
            [
                web.get("/", self.home, allow_head=False),
                web.get("/setup", self.form, allow_head=False),
                web.post("/setup", self.ask),
                web.post(entering.PATH, self._entering.enter),
                web.get("/setup/callback", self.callback, allow_head=False),
                web.get(documents.address(pages.STYLE), pages.style),
            ]
        )
        listening.refuse_the_rest(app, CHECK, NOT_SET_UP, RETRY_AFTER_S)
        return app

    async def home(self, _request: web.Request) -> web.Response:
        """Lead a person to the set-up page, which says how to get in."""
        return self._pages.redirect("/setup")

    async def form(self, request: web.Request) -> web.Response:
        """Show the form; with a link, the page that exchanges it for a session."""
        token = request.query.get("token")
        if token is not None:
            return self._entering.offer(token)
        session = self._sessions.of(request)
        if session is None:
            return self._pages.refused(403, NO_SESSION)
        given = {"owner": "organization", "name": manifest.NAME, "host": self._settings.github_host}
        given["public_url"] = manifest.address_at(request.host)
        return self._form(session, given)

    def _form(
        self, session: Session, given: dict[str, str], error: str = "", status: int = 200
    ) -> web.Response:
        return self._pages.page(
            "register.html",
            status,
            given=given,
            error=error,
            csrf=session.csrf,
            settings=self._settings,
            is_host_set=manifest.is_host_set(self._settings),
            permissions=manifest.permissions(),
            optional=manifest.OPTIONAL,
        )

    async def ask(self, request: web.Request) -> web.Response:
        """Check the form, and show the page whose button posts the manifest to GitHub."""
        session = self._sessions.of(request)
        if session is None:
            return self._pages.refused(403, NO_SESSION)
        form = await pages.fields_of(request)
        if not sessions.is_own_form(request, session, form.get("csrf", ""), self._settings):
            return self._pages.refused(403, FOREIGN_FORM)
        try:
            choices = manifest.choices_of(form, self._settings)
        except WrongChoice as wrong:
            return self._form(session, form, str(wrong), 400)
        addresses = manifest.addresses_of(choices.host, self._settings)
        state = session.new_state(choices, self._clock.now())
        # GitHub must lead back to the address that has the cookie; a page of ours sends this.
        origin = request.headers.get("Origin", choices.public_url)
        return self._pages.page(
            "confirm.html",
            posts_to=manifest.target_of(choices, addresses, state),
            choices=choices,
            manifest=manifest.manifest(choices, origin),
            permissions=manifest.asked_for(choices),
        )

    async def callback(self, request: web.Request) -> web.Response:
        """Exchange the code for the credentials, and store them."""
        session = self._sessions.of(request)
        if session is None:
            return self._pages.refused(403, NO_SESSION)
        state, code = request.query.get("state", ""), request.query.get("code", "")
        pending = session.take(state, self._clock.now())
        if pending is None or not code:
            return self._pages.refused(400, WRONG_STATE)
        try:
            app = await registration.register(self._options(pending.choices), code, self._clock)
        except CodeExpired:
            return self._pages.refused(400, EXPIRED)
        except RegistrationFailed as failed:
            if not failed.is_sent:
                session.put_back(state, pending)
            return self._pages.refused(502, _failed(failed, pending.choices))
        return self._stored(session, app, pending.choices)

    def _stored(self, session: Session, app: RegisteredApp, choices: Choices) -> web.Response:
        try:
            credentials.store(self._settings, app, choices)
        except NotStored as failed:
            # GitHub made the App and its credentials cannot be written: make room, delete the App,
            # begin anew.
            log.error("app_not_stored", app=app.id, why=str(failed))
            return self._pages.refused(500, _not_stored(failed, app))
        session.install_url = f"{app.page}/installations/new"
        self.done.set()
        return self._pages.page("registered.html", app=app, install_url=session.install_url)

    def _options(self, choices: Choices) -> GitHubOptions:
        return GitHubOptions(
            host=choices.host,
            addresses=manifest.addresses_of(choices.host, self._settings),
            app_id="",
            private_keys=(),
            webhook_secrets=(),
            user_agent=f"headgate/{VERSION}",
            proxies=self._proxies,
        )


def _failed(failed: RegistrationFailed, choices: Choices) -> tuple[str, str]:
    heading = f"{choices.host} did not give the credentials of the App"
    if not failed.is_sent:
        return heading, f"The connection failed: {failed.message}. Reload this page to try again."
    return heading, (
        f"What happened: {failed.message}. A code is valid once, so delete the App "
        f'"{choices.name}" on {choices.host} and start again at /setup.'
    )


def _not_stored(failed: NotStored, app: RegisteredApp) -> tuple[str, str]:
    return "The credentials of the App could not be stored", (
        f"{failed}. GitHub shows them once, so delete the App at {app.page}, make the data "
        "directory writable or move the file away, and start again at /setup."
    )
