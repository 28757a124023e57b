"""Answers of the webhook endpoints."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.models.answers.common import (
    Count,
    Id,
    LeftOut,
    RepositoryShown,
    SnakeAnswer,
    Time,
)
from service.vocabulary import DeliveryState, EndpointState

MessageId = Annotated[str, Field(pattern=r"^msg_[0-9a-f]{32}$")]
"""The same on retries and replays."""

Secret = Annotated[str, Field(pattern=r"^whsec_[A-Za-z0-9+/]{43}=$")]
"""What an endpoint's messages are signed with."""


class Endpoint(SnakeAnswer):
    """An endpoint without its secret; `repositories` null is all of the organization's."""

    id: Id
    url: str
    events: list[str]
    repositories: list[RepositoryShown] | None
    description: str
    state: EndpointState
    disabled_reason: str | None
    last_success_at: Time | None
    last_failure_at: Time | None
    created_at: Time


class EndpointCreated(Endpoint):
    """A new endpoint; `secret` is shown this once."""

    secret: Secret


class EndpointsListed(SnakeAnswer):
    """Endpoints, oldest first; no `next_cursor` at the end."""

    endpoints: list[Endpoint]
    next_cursor: LeftOut[str] = None


class EndpointDeleted(SnakeAnswer):
    """The endpoint is forgotten."""

    deleted: Literal[True]


class SecretRotated(SnakeAnswer):
    """The new secret, shown this once."""

    secret: Secret


class EndpointTested(SnakeAnswer):
    """The one attempt of a test; `error` null is a success."""

    message_id: MessageId
    status_code: int | None
    duration_ms: Count
    error: str | None


class Attempt(SnakeAnswer):
    """One attempt in the log; `error` null is a success."""

    at: Time
    status_code: int | None
    duration_ms: Count
    error: str | None


class Delivery(SnakeAnswer):
    """One message at one endpoint; `payload` is what is sent."""

    message_id: MessageId
    event: str
    state: DeliveryState
    attempts: list[Attempt]
    next_attempt_at: Time | None
    payload: dict[str, object]


class DeliveriesListed(SnakeAnswer):
    """Deliveries, newest facts first; no `next_cursor` at the end."""

    deliveries: list[Delivery]
    next_cursor: LeftOut[str] = None


class Replayed(SnakeAnswer):
    """How many messages are sent again."""

    queued: Count
