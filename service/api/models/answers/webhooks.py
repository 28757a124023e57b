"""Answers of the webhook endpoints (API.md 9)."""

from typing import Literal

from service.api.models.answers.common import (
    Id,
    LeftOut,
    RepositoryShown,
    SnakeAnswer,
    Time,
)


class Endpoint(SnakeAnswer):
    """Where messages are sent, without the secret that signs them."""

    id: Id
    url: str
    events: list[str]
    repositories: list[RepositoryShown] | None
    description: str
    state: Literal["enabled", "disabled"]
    disabled_reason: str | None
    last_success_at: Time | None
    last_failure_at: Time | None
    created_at: Time


class EndpointCreated(Endpoint):
    """A new endpoint; its secret is shown this once."""

    secret: str


class EndpointsListed(SnakeAnswer):
    """Endpoints; no `next_cursor` at the end."""

    endpoints: list[Endpoint]
    next_cursor: LeftOut[str] = None


class EndpointDeleted(SnakeAnswer):
    """The endpoint is gone, with what waited to be sent to it."""

    deleted: Literal[True]


class SecretRotated(SnakeAnswer):
    """The new secret, shown this once."""

    secret: str


class AttemptEnded(SnakeAnswer):
    """How one try to deliver ended; `error` null is a success."""

    status_code: int | None
    duration_ms: int | None
    error: str | None


class AttemptShown(AttemptEnded):
    """One try to deliver."""

    at: Time


class EndpointTested(AttemptEnded):
    """What the receiver answered to `webhook.test`."""

    message_id: str


class Delivery(SnakeAnswer):
    """One message at one endpoint, with every try that was made."""

    message_id: str
    event: str
    state: Literal["pending", "delivered", "failed"]
    attempts: list[AttemptShown]
    next_attempt_at: Time | None
    payload: dict[str, object]


class DeliveriesListed(SnakeAnswer):
    """Messages of an endpoint, the newest first; no `next_cursor` at the end."""

    deliveries: list[Delivery]
    next_cursor: LeftOut[str] = None


class Replayed(SnakeAnswer):
    """How many messages are sent again."""

    queued: int
