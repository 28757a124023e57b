"""The kinds of endpoints.

Handlers become endpoints by the decorators `read` and `write`; each module of handlers ends
with the table of its endpoints, and `service/process/api/routes.py` joins the tables.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel

from service.http import intake
from service.http.callers import Call, Caller
from service.http.intake import Intake
from service.http.models.common import Request
from service.http.rates import RateClass
from service.runtime import EnumCase, Options
from service.vocabulary import Role

Asked = TypeVar("Asked", bound=Request)

VERSIONED = "/v1"

JSON = "application/json; charset=utf-8"
"""Content-Type of most answers."""


Answers = type[BaseModel] | str
"""The content of a success: a model of its JSON, or the whole Content-Type of what is no JSON."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that is no JSON: its whole Content-Type and its bytes.

    `headers` stand beside those that every answer has; `Cache-Control` replaces theirs.
    """

    content_type: str
    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Shown = BaseModel | bytes | Page
"""The answers of handlers; bytes are encoded JSON."""


@dataclass(frozen=True, slots=True)
class Posted:
    """An endpoint that is asked by a body; `writes` when it may change something.

    The body is a JSON object unless `intake` says otherwise; `model` is that object.

    `takes_oidc`: a job of the provider's CI may prove itself by an OIDC token instead.

    `forks` says who a request comes from that names a fork's CI run instead of a token. What
    writes may be sent with an `Idempotency-Key`. `answers` and `codes` are for the document
    alone: see `answering`.
    """

    path: str
    role: Role
    model: type[Request]
    handler: Callable[..., Awaitable[Shown]]
    writes: bool
    forks: Callable[..., Awaitable[Caller]] | None = None
    takes_oidc: bool = False
    answers: Answers | None = None
    codes: tuple[str, ...] = ()
    rate: RateClass = RateClass.READ
    intake: Intake = intake.JSON
    method = "POST"

    def answering(self, answers: Answers, *codes: str) -> "Posted":
        """The same endpoint, with what its success holds and its own codes.

        Codes that any endpoint of its kind may answer are left out: `codes.py` knows them.
        """
        return replace(self, answers=answers, codes=codes)


@dataclass(frozen=True, slots=True)
class Fetched:
    """An endpoint without body; `role` None: any token may ask.

    With a `query` its handler gets that model too, read from the address. `operation` is its
    name in the document; that of `Posted` is the name of its model. `takes_oidc` as with `Posted`.
    """

    path: str
    role: Role | None
    handler: Callable[..., Awaitable[Shown]]
    answers: Answers | None = None
    codes: tuple[str, ...] = ()
    rate: RateClass = RateClass.READ
    query: type[Request] | None = None
    operation: str = ""
    takes_oidc: bool = False
    method = "GET"

    def answering(self, answers: Answers, *codes: str) -> "Fetched":
        """As with `Posted`."""
        return replace(self, answers=answers, codes=codes)


EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Streamed:
    """An endpoint without body whose handler answers with the parts of an event stream.

    The handler gets its `query`, and the header `Last-Event-ID`, None without it. What refuses the
    request is raised before it returns the iterator. A stream with nothing to send returns empty
    parts, so that the place of a client that has left is free soon.
    """

    path: str
    role: Role
    handler: Callable[..., Awaitable[AsyncIterator[bytes]]]
    query: type[Request]
    operation: str
    codes: tuple[str, ...] = ()
    rate: RateClass = RateClass.READ
    answers = EVENT_STREAM
    method = "GET"


@dataclass(frozen=True, slots=True)
class Open:
    """An endpoint without token, about this process alone; it may answer `statuses`."""

    path: str
    handler: Callable[..., Awaitable[tuple[int, BaseModel]]]
    answers: type[BaseModel]
    statuses: tuple[int, ...] = (200,)
    operation: str = ""
    method = "GET"


@dataclass(frozen=True, slots=True)
class Document:
    """A page without token, the same for everybody; its path may have `variables`.

    The handler may raise HttpRefused. What is not listed belongs to a page, not to the
    contract.
    """

    path: str
    handler: Callable[["Look"], Page]
    answers: str
    variables: type[BaseModel] | None = None
    codes: tuple[str, ...] = ()
    is_listed: bool = True
    operation: str = ""
    method = "GET"


Secured = Posted | Fetched | Streamed
"""Endpoints that need a token."""

Route = Secured | Open | Document


@dataclass(frozen=True, slots=True)
class Contract:
    """All that the OpenAPI document describes: endpoints, and the model of each message sent."""

    routes: tuple[Route, ...]
    messages: tuple[tuple[str, type[BaseModel]], ...]

    @property
    def listed(self) -> tuple[Route, ...]:
        """The endpoints that belong to the contract."""
        return tuple(
            each for each in self.routes if not isinstance(each, Document) or each.is_listed
        )


@dataclass(frozen=True, slots=True)
class Look:
    """The inputs of a page: the variables of its path, the contract, settings, the time."""

    variables: Mapping[str, str]
    contract: Contract
    options: Options
    now: datetime

    @property
    def case(self) -> EnumCase:
        """The case of enums in answers."""
        return self.options.enum_case


Handler = Callable[[Call, Asked], Awaitable[Shown]]


def read(
    name: str, model: type[Asked], answers: Answers, *codes: str, role: Role = Role.READ
) -> Callable[[Handler[Asked]], Posted]:
    """Make a handler the endpoint `/v1/NAME` that changes nothing.

    `codes` are its own refusals; those of every endpoint of its kind are added.
    """

    def endpoint(handler: Handler[Asked]) -> Posted:
        path = f"{VERSIONED}/{name}"
        return Posted(path, role, model, handler, writes=False, answers=answers, codes=codes)

    return endpoint


def write(
    name: str, role: Role, model: type[Asked], answers: Answers, *codes: str
) -> Callable[[Handler[Asked]], Posted]:
    """Make a handler the endpoint `/v1/NAME` that may change something; `codes` as for `read`."""

    def endpoint(handler: Handler[Asked]) -> Posted:
        made = Posted(
            f"{VERSIONED}/{name}", role, model, handler, writes=True, rate=RateClass.WRITE
        )
        return replace(made, answers=answers, codes=codes)

    return endpoint
