"""Messages to webhook endpoints: what all have, and those about endpoints."""

from typing import Literal

from pydantic import BaseModel

from service.http.models.answers.common import (
    Id,
    LeftOut,
    RepositoryShown,
    SnakeAnswer,
    Time,
)


class MessageShown(SnakeAnswer):
    """What every message has."""

    type: str
    """The event. For example `pull_request.failed`."""
    action: str
    """The last part of the event. For example `failed`."""
    timestamp: Time
    """When it happened; not when it is sent."""
    organization: str
    """Slug of the organization. For example `octo`."""
    truncated: LeftOut[Literal[True]] = None
    """A list or text was cut, so that the message has at most 20 kB."""


class RepositoryMessage(MessageShown):
    """A message about something of one repository."""

    repository: RepositoryShown
    """The repository."""


class WebhookTested(MessageShown):
    """An administrator tests an endpoint."""


class EndpointDisabledMessage(MessageShown):
    """Another endpoint of the organization was disabled."""

    endpoint_id: Id
    """The endpoint that was disabled."""
    reason: str
    """Why, as a sentence. For example `Only failures for 5 days.`"""


WEBHOOK_MESSAGES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("webhook.test", WebhookTested),
    ("webhook.endpoint_disabled", EndpointDisabledMessage),
)
"""Events and their messages."""
