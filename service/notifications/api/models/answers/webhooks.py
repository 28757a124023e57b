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
from service.vocabulary import DeliveryState, EndpointFormat, EndpointState

MessageId = Annotated[
    str,
    Field(pattern=r"^msg_[0-9a-f]{32}$", examples=["msg_5b0e4f3e9d0a3b1a54c1b7de0f8c6c1e"]),
]
"""The same on retries and replays."""

Secret = Annotated[
    str,
    Field(
        pattern=r"^whsec_[A-Za-z0-9+/]{43}=$",
        examples=["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="],
    ),
]
"""What an endpoint's messages are signed with."""


class Endpoint(SnakeAnswer):
    """An endpoint without its secret; `repositories` null is all of the organization's."""

    id: Id
    """The endpoint."""
    url: str
    """Where messages are sent. For example `https://hooks.example.org/headgate`."""
    events: list[str]
    """The events that it receives. For example `["pull_request.*"]`"""
    repositories: list[RepositoryShown] | None
    """The repositories whose events it receives; null: all."""
    description: str
    """What it is for. For example `deployments`."""
    format: EndpointFormat
    """How messages are written: the fields of each, or one text for Slack."""
    state: EndpointState
    """Whether messages are sent."""
    disabled_reason: str | None
    """Why it is disabled; null if it is not. For example `It answered 410.`"""
    last_success_at: Time | None
    """When a message was received last; null: never."""
    last_failure_at: Time | None
    """When a message was not received last; null: never."""
    created_at: Time
    """When it was made."""


class EndpointCreated(Endpoint):
    """A new endpoint; `secret` is shown this once."""

    secret: Secret
    """What messages are signed with, shown this once."""


class EndpointsListed(SnakeAnswer):
    """Endpoints, oldest first; no `next_cursor` at the end."""

    endpoints: list[Endpoint]
    """Endpoints, oldest first."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""


class EndpointDeleted(SnakeAnswer):
    """The endpoint is forgotten."""

    deleted: Literal[True]
    """It is deleted."""


class SecretRotated(SnakeAnswer):
    """The new secret, shown this once."""

    secret: Secret
    """What messages are signed with, shown this once."""


class EndpointTested(SnakeAnswer):
    """The one attempt of a test; `error` null is a success."""

    message_id: MessageId
    """The message."""
    status_code: int | None
    """What the endpoint answered; null without an answer. For example `200`."""
    duration_ms: Count
    """Milliseconds until the answer."""
    error: str | None
    """What went wrong; null: nothing. For example `No answer within 15 s.`"""


class Attempt(SnakeAnswer):
    """One attempt in the log; `error` null is a success."""

    at: Time
    """When it was made."""
    status_code: int | None
    """What the endpoint answered; null without an answer. For example `200`."""
    duration_ms: Count
    """Milliseconds until the answer."""
    error: str | None
    """What went wrong; null: nothing. For example `No answer within 15 s.`"""


class Delivery(SnakeAnswer):
    """One message at one endpoint; `payload` is what is sent."""

    message_id: MessageId
    """The message."""
    event: str
    """The event. For example `pull_request.merged`."""
    state: DeliveryState
    """Whether the endpoint has received it."""
    attempts: list[Attempt]
    """Every attempt, oldest first."""
    next_attempt_at: Time | None
    """When the next attempt is made; null: none."""
    payload: dict[str, object]
    """What is sent. For example `{"type": "pull_request.merged"}`"""


class DeliveriesListed(SnakeAnswer):
    """Deliveries, newest facts first; no `next_cursor` at the end."""

    deliveries: list[Delivery]
    """Messages, newest events first."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""


class Replayed(SnakeAnswer):
    """How many messages are sent again."""

    queued: Count
    """How many messages are sent again."""
