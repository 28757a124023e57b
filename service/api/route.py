"""The kinds of endpoints, and what each of them says of itself.

The lines stand in one file a group (`pull_request_routes.py` and its kin); `routes.py` joins
them. What becomes of a request by these words is decided in `app.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from service.api.call import Call
from service.api.health import Readiness
from service.api.models.common import Request
from service.api.rates import RateClass
from service.api.responses import Json
from service.operations.views import Caller
from service.vocabulary import Role

Asked = TypeVar("Asked", bound=Request)

VERSIONED = "/v1"


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that is no JSON: its whole Content-Type and its bytes."""

    content_type: str
    body: bytes


Shown = Json | bytes | Page
"""What handlers answer; bytes are encoded JSON."""


@dataclass(frozen=True, slots=True)
class Posted:
    """An endpoint that is asked by a JSON object; `writes` when it may change something.

    `forks` says who a request comes from that names a fork's CI run instead of a token. What
    writes may be sent with an `Idempotency-Key`.
    """

    path: str
    role: Role
    model: type[Request]
    handler: Callable[..., Awaitable[Shown]]
    writes: bool
    forks: Callable[..., Awaitable[Caller]] | None = None
    rate: RateClass = RateClass.READ
    method = "POST"


@dataclass(frozen=True, slots=True)
class Fetched:
    """An endpoint without body; `role` None: any token may ask."""

    path: str
    role: Role | None
    handler: Callable[[Call], Awaitable[Shown]]
    rate: RateClass = RateClass.READ
    method = "GET"


@dataclass(frozen=True, slots=True)
class Open:
    """An endpoint without token, about this process alone."""

    path: str
    handler: Callable[[Readiness, str], tuple[int, object]]
    method = "GET"


Route = Posted | Fetched | Open


def read(
    name: str,
    model: type[Asked],
    handler: Callable[[Call, Asked], Awaitable[Shown]],
    role: Role = Role.READ,
) -> Posted:
    """A question under `/v1`."""
    return Posted(f"{VERSIONED}/{name}", role, model, handler, writes=False)


def write(
    name: str, role: Role, model: type[Asked], handler: Callable[[Call, Asked], Awaitable[Shown]]
) -> Posted:
    """A wish under `/v1`: what it is about may change."""
    path = f"{VERSIONED}/{name}"
    return Posted(path, role, model, handler, writes=True, rate=RateClass.WRITE)
