"""Places for requests that wait for a change (docs/design/http.md 12)."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from aiohttp import web

from service.errors import Overloaded
from service.runtime import Options

WAITING_MAX = 400
WAITING_A_TOKEN = 40
RETRY_AFTER_S = 5

_waited_s: ContextVar[float] = ContextVar("waited_s", default=0.0)
_request: ContextVar[web.Request | None] = ContextVar("request", default=None)


class Versioned(NamedTuple):
    """An encoded answer, and its version: it changes with the answer."""

    version: str
    body: bytes


class Waiting:
    """The requests of one application that wait."""

    def __init__(self, _options: Options) -> None:
        self._waiting: Counter[str] = Counter()
        self.is_stopping = False

    @contextmanager
    def place(self, token_id: str) -> Iterator[None]:
        """Hold a place while waiting. Raises Overloaded where too many wait."""
        if self._waiting.total() >= WAITING_MAX or self._waiting[token_id] >= WAITING_A_TOKEN:
            raise Overloaded(
                f"Too many requests wait for a change: at most {WAITING_A_TOKEN} of a token and "
                f"{WAITING_MAX} in all. Ask without waitFor, or for several pull requests at once.",
                retry_after_s=RETRY_AFTER_S,
            )
        self._waiting[token_id] += 1
        try:
            yield
        finally:
            self._waiting[token_id] -= 1
            if not self._waiting[token_id]:
                del self._waiting[token_id]


def begin(request: web.Request) -> None:
    """A request begins: it has not waited."""
    _waited_s.set(0.0)
    _request.set(request)


def has_client_left() -> bool:
    """Return whether the connection of the request that began here is closed."""
    request = _request.get()
    return request is not None and has_left(request)


def has_left(request: web.Request) -> bool:
    """Return whether the connection of a request is closed."""
    return request.transport is None or request.transport.is_closing()


def waited_for_change_s() -> float:
    """Return how long this request has waited for a change."""
    return _waited_s.get()


def note(seconds: float) -> None:
    """Note how long this request has waited for a change."""
    _waited_s.set(seconds)
