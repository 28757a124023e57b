"""The last step of the manifest flow: from the code to the credentials of a new App."""

import secrets
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from bot.github import options as github_options
from bot.github.client import GitHubClient
from bot.github.options import SECRET_CHARS_MIN, GitHubOptions
from bot.github.reading import Fields, Unreadable
from bot.github.troubles import HostTroubles
from bot.github.wire import Broken, Exchange, Wire
from service.clock import Clock
from service.errors import StartRefused
from service.provider.errors import ProviderError
from service.troubles import Troubles

SECRET_BYTES = 32
LOST = (404, 422)


class CodeExpired(Exception):
    """GitHub does not know the code any more: it is older than an hour, or was used."""


class RegistrationFailed(Exception):
    """GitHub did not give the credentials; `is_sent` False: the code has not been used."""

    def __init__(self, message: str, *, is_sent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.is_sent = is_sent


@dataclass(frozen=True, slots=True)
class RegisteredApp:
    """A new App with its credentials; `page` is its public page."""

    id: str
    name: str
    page: str
    client_id: str
    client_secret: str = field(repr=False)
    webhook_secret: str = field(repr=False)
    private_key: str = field(repr=False)


async def register(options: GitHubOptions, code: str, clock: Clock) -> RegisteredApp:
    """Exchange a code for the App that was made with it; a code is valid once.

    `options` name the host; they have no credentials yet. An App without a webhook secret gets
    one. Raises CodeExpired, RegistrationFailed.
    """
    wire = Wire(options, HostTroubles(options.host, clock, Troubles(clock)))
    url = f"{options.addresses.api}/app-manifests/{quote(code, safe='')}/conversions"
    try:
        answer = await wire.send(Exchange("POST", url, "", False))
    except Broken as failure:
        raise RegistrationFailed(failure.message, is_sent=failure.sent) from failure
    finally:
        await wire.close()
    if answer.status in LOST:
        raise CodeExpired
    if answer.status != 201:
        raise RegistrationFailed(f"GitHub answered {answer.status}", is_sent=True)
    try:
        made = _app_of(answer.fields)
    except Unreadable as failure:
        raise RegistrationFailed(
            f"the answer lacks something: {failure}", is_sent=True
        ) from failure
    if len(made.webhook_secret) >= SECRET_CHARS_MIN:
        return made
    return await _with_webhook_secret(options, made, clock)


def _app_of(answer: Fields) -> RegisteredApp:
    return RegisteredApp(
        id=answer.id("id"),
        name=answer.text("name"),
        page=answer.text("html_url"),
        client_id=answer.text("client_id"),
        client_secret=answer.text("client_secret"),
        webhook_secret=answer.words("webhook_secret"),
        private_key=answer.text("pem"),
    )


async def _with_webhook_secret(
    options: GitHubOptions, made: RegisteredApp, clock: Clock
) -> RegisteredApp:
    secret = secrets.token_hex(SECRET_BYTES)
    try:
        key = github_options.parse_private_key(made.private_key)
        client = GitHubClient(replace(options, app_id=made.id, private_keys=(key,)), clock)
        try:
            await client.app_call("PATCH", "/app/hook/config", {"secret": secret})
        finally:
            await client.close()
    except (ProviderError, StartRefused) as failure:
        raise RegistrationFailed("the webhook secret could not be set", is_sent=True) from failure
    return replace(made, webhook_secret=secret)
