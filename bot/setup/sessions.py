"""One-time links to the set-up pages, and the sessions of the browsers that used one.

A link is a random token in an address. Its hash is in a file of the data directory, so that
`headgate setup-url` can make another link while the service runs. Sessions are in memory.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from bot.settings import Settings
from bot.setup.manifest import Choices
from service.clock import Clock
from service.errors import StartRefused

TOKEN_BYTES = 32
LINK_FILE = "setup-link.json"
ADDRESS_FILE = "address.json"
LINK_LIFETIME = timedelta(minutes=60)
SESSION_LIFETIME = timedelta(hours=2)
SESSIONS_MAX = 20
STATE_LIFETIME = timedelta(hours=1)
"""GitHub gives an hour from the manifest to the exchange of its code."""
STATES_MAX = 20
COOKIE = "headgate-setup"

log = structlog.get_logger()


def new_link(settings: Settings, now: datetime) -> str:
    """Return the token of a new link, which is valid once and replaces the link before it.

    Raises StartRefused when the data directory cannot be written.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    kept = {"digest": _digest(token), "expires_at": (now + LINK_LIFETIME).isoformat()}
    try:
        _write(settings.data_dir / LINK_FILE, kept)
    except OSError as failed:
        raise StartRefused(
            f"HEADGATE_DATA_DIR: {settings.data_dir} cannot be written ({failed.strerror}). Give a "
            "directory that can be"
        ) from failed
    return token


def store_address(settings: Settings, url: str) -> None:
    """Store where this service is reached, for `headgate setup-url`; `url` is where it listens."""
    path = settings.data_dir / ADDRESS_FILE
    try:
        _write(path, {"url": settings.public_url or url})
    except OSError as failed:
        log.info("address_not_stored", file=str(path), why=failed.strerror)


def _write(path: Path, content: Mapping[str, str]) -> None:
    """Replace a file of the data directory by this content, readable by us alone."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(json.dumps(content))
    draft.replace(path)


def stored_address(data_dir: Path) -> str | None:
    """Return where the last service of this directory is reached; None if it is not known."""
    try:
        return str(json.loads((data_dir / ADDRESS_FILE).read_text("utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def link_of(root: str, token: str) -> str:
    """Return the address that a person opens; `root` is an address of the service."""
    return f"{root}/setup?token={token}"


def is_valid(data_dir: Path, token: str, now: datetime) -> bool:
    """Return whether the token is the one of the present link."""
    try:
        kept = json.loads((data_dir / LINK_FILE).read_text("utf-8"))
        digest, expires_at = str(kept["digest"]), datetime.fromisoformat(kept["expires_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return hmac.compare_digest(_digest(token), digest) and now < expires_at


def _redeem(data_dir: Path, token: str, now: datetime) -> bool:
    """Return whether the token is the one of the present link, and end the link if it is."""
    if not is_valid(data_dir, token, now):
        return False
    try:
        (data_dir / LINK_FILE).unlink()
    except FileNotFoundError:
        return False  # another request was faster
    return True


@dataclass(frozen=True, slots=True)
class Pending:
    """A manifest that was sent to GitHub, until its code comes back."""

    choices: Choices
    until: datetime


@dataclass(slots=True)
class Session:
    """A browser that used a link. `install_url`: where the App is installed, once it is known."""

    csrf: str
    until: datetime
    install_url: str | None = None
    _pending: dict[str, Pending] = field(default_factory=dict)

    def new_state(self, choices: Choices, now: datetime) -> str:
        """Return the `state` of a manifest, which is valid once and for an hour."""
        state = secrets.token_urlsafe(TOKEN_BYTES)
        if len(self._pending) >= STATES_MAX:
            del self._pending[next(iter(self._pending))]
        self._pending[_digest(state)] = Pending(choices, now + STATE_LIFETIME)
        return state

    def take(self, state: str, now: datetime) -> Pending | None:
        """Return what was sent with this state, once; None for a wrong, used or old one."""
        pending = self._pending.pop(_digest(state), None)
        return pending if pending is not None and now < pending.until else None

    def put_back(self, state: str, pending: Pending) -> None:
        """Make a state valid again whose code GitHub has not seen."""
        self._pending[_digest(state)] = pending


class Sessions:
    """The sessions of this process, by the hash of their cookie."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._data_dir = settings.data_dir
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def is_valid(self, token: str) -> bool:
        """Return whether a link can be used. It stays valid."""
        return is_valid(self._data_dir, token, self._clock.now())

    def enter(self, token: str) -> str | None:
        """Use a link; the cookie of a new session, None if the link is not valid."""
        now = self._clock.now()
        if not _redeem(self._data_dir, token, now):
            return None
        live = [(key, one) for key, one in self._sessions.items() if now < one.until]
        self._sessions = dict(live[-SESSIONS_MAX + 1 :])
        cookie = secrets.token_urlsafe(TOKEN_BYTES)
        csrf = secrets.token_urlsafe(TOKEN_BYTES)
        self._sessions[_digest(cookie)] = Session(csrf, now + SESSION_LIFETIME)
        return cookie

    def of(self, request: web.Request) -> Session | None:
        """Return the session of the browser, None without a valid one."""
        session = self._sessions.get(_digest(request.cookies.get(COOKIE, "")))
        return session if session is not None and self._clock.now() < session.until else None


def is_own_form(request: web.Request, session: Session, csrf: str, settings: Settings) -> bool:
    """Return whether a form was sent by a page of ours to the browser of this session."""
    is_same = hmac.compare_digest(csrf.encode(), session.csrf.encode())
    return is_same and is_own_page(request, settings)


def is_own_page(request: web.Request, settings: Settings) -> bool:
    """Return whether a form was sent by a page of ours."""
    origin = urlsplit(request.headers.get("Origin", "")).netloc
    own = {request.host, urlsplit(settings.public_url or "").netloc}
    return request.headers.get("Sec-Fetch-Site") == "same-origin" or origin in own - {""}


def set_cookie(answer: web.Response, cookie: str, settings: Settings) -> None:
    """Give the browser the cookie of its session; GitHub's redirect back must send it too."""
    answer.set_cookie(
        COOKIE,
        cookie,
        path="/setup",
        max_age=int(SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="Lax",
        secure=(settings.public_url or "").startswith("https://"),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
