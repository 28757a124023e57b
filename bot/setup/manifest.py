"""From the form of the set-up page to the manifest of a GitHub App.

The manifest is `app.yml` with the addresses of this deployment; the comment behind each permission
there is its reason on the page.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import yaml

from bot import forms
from bot.github import options as github_options
from bot.github.options import Addresses
from bot.settings import Settings, parse_root_url
from service.errors import StartRefused

# The wheel carries it inside the package.
APP_YML = next(
    path
    for folder in (Path(__file__).parents[1], Path(__file__).parents[2])
    if (path := folder / "app.yml").exists()
)
NAME = "Headgate"
NAME_CHARS_MAX = 34
"""GitHub's limit for the name of an App."""

_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PERMISSION = re.compile(r"^  (\w+): (\w+) +# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Permission:
    """A permission that the App asks for, and what Headgate does with it."""

    name: str
    level: str
    reason: str


OPTIONAL = (
    Permission("workflows", "write", "test pull requests that change .github/workflows"),
    Permission("actions", "write", "run failed jobs again, stop CI runs that are no longer needed"),
    Permission("issues", "write", "open and close an issue for each flaky test"),
)
"""Permissions that a person may add."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a person on the form; `organization` empty: the App is owned by a person."""

    organization: str
    name: str
    public_url: str
    host: str
    optional: frozenset[str] = frozenset()


class WrongChoice(ValueError):
    """A field of the form is wrong; the text says what to enter."""


def permissions() -> tuple[Permission, ...]:
    """Return the permissions of `app.yml`, in its order, with their reasons."""
    found = _PERMISSION.findall(APP_YML.read_text("utf-8"))
    return tuple(Permission(name, level, reason) for name, level, reason in found)


def asked_for(choices: Choices) -> tuple[Permission, ...]:
    """Return every permission that the App will have, the optional ones last."""
    added = [one for one in OPTIONAL if one.name in choices.optional]
    names = {one.name for one in added}
    return (*(one for one in permissions() if one.name not in names), *added)


def choices_of(form: Mapping[str, object], settings: Settings) -> Choices:
    """Return the choices of a form. Settings that are made already win.

    Raises WrongChoice.
    """
    host = settings.github_host if is_host_set(settings) else _text(form, "host").lower()
    try:
        addresses = addresses_of(host, settings)
    except StartRefused as refused:
        raise WrongChoice(f'"{host}" is not the name of a GitHub host.') from refused
    is_person = form.get("owner") == "person"
    organization = "" if is_person else _text(form, "organization")
    if not is_person and not _LOGIN.fullmatch(organization):
        raise WrongChoice(
            f"Enter the name of the organization as it is in its address: {host}/NAME."
        )
    name = _text(form, "name")
    if not 1 <= len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise WrongChoice(f"Enter a name for the App with 1 to {NAME_CHARS_MAX} characters.")
    public_url = settings.public_url or _public_url(_text(form, "public_url"), addresses)
    chosen = frozenset(one.name for one in OPTIONAL if form.get(one.name))
    return Choices(organization, name, public_url, host, chosen)


def is_host_set(settings: Settings) -> bool:
    """Return whether the GitHub host is a setting, so that the form does not ask for it."""
    return bool({"github_host", "github_url"} & settings.model_fields_set)


def addresses_of(host: str, settings: Settings) -> Addresses:
    """Return the addresses of the chosen GitHub host. Raises StartRefused."""
    return github_options.addresses_of(host, settings.github_url)


def address_at(host: str) -> str:
    """Return the address under which a browser probably reaches `HOST[:PORT]`.

    A proxy may terminate TLS, so that the request itself does not show it.
    """
    is_local = forms.is_loopback(urlsplit(f"//{host}").hostname or "")
    return f"{'http' if is_local else 'https'}://{host}"


def _text(form: Mapping[str, object], name: str) -> str:
    return str(form.get(name, "")).strip()


def _public_url(text: str, addresses: Addresses) -> str:
    try:
        root = parse_root_url(text)
    except ValueError as wrong:
        raise WrongChoice(f"The public address {wrong}.") from None
    parts = urlsplit(root)
    is_local = forms.is_loopback(parts.hostname or "")
    if is_local and not forms.is_loopback(urlsplit(addresses.web).hostname or ""):
        raise WrongChoice(
            f"GitHub cannot send webhooks to {parts.hostname}, which is an address of your own "
            "machine. Enter the address of Headgate that GitHub can reach."
        )
    if parts.scheme != "https" and not is_local:
        raise WrongChoice("The public address must begin with https://.")
    return root


def manifest(choices: Choices, origin: str) -> str:
    """Return the manifest as JSON; `origin` is where the browser of the person reaches us."""
    text: dict[str, object] = yaml.safe_load(APP_YML.read_text("utf-8"))
    value = _with_address(text, choices.public_url)
    named = {one.name: one.level for one in asked_for(choices)}
    changed = {
        "name": choices.name,
        "redirect_url": f"{origin}/setup/callback",
        "default_permissions": named,
    }
    return json.dumps({**value, **changed}, indent=2)


def _with_address(value: dict[str, object], public_url: str) -> dict[str, object]:
    return {name: _filled(one, public_url) for name, one in value.items()}


def _filled(value: object, public_url: str) -> object:
    match value:
        case str():
            return value.replace("{public_url}", public_url)
        case list():
            return [_filled(one, public_url) for one in value]
        case dict():
            return _with_address(value, public_url)
        case _:
            return value


def target_of(choices: Choices, addresses: Addresses, state: str) -> str:
    """Return GitHub's address to which the browser posts the manifest."""
    owner = f"/organizations/{quote(choices.organization)}" if choices.organization else ""
    return f"{addresses.web}{owner}/settings/apps/new?{urlencode({'state': state})}"
