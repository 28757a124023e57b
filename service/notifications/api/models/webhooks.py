"""Bodies of the webhook endpoints, in snake_case."""

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.fields import FieldInfo

from service.http.models import common
from service.http.models.common import Integer, Moment, Repository, SnakeRequest
from service.http.models.shared import SnakeListed, Uuid
from service.notifications.endpoints import EndpointChange
from service.notifications.messages import EVENTS, PATTERNS
from service.notifications.notifications import DeliveryPage, ReplayRequest
from service.vocabulary import DeliveryState, EndpointFormat, EndpointState, RepoRef

EVENTS_MAX = 50
REPOSITORIES_MAX = 500
OVERLAP_HOURS_MAX = 72


def _word_of(words: tuple[str, ...]) -> Callable[[object], object]:
    """Return a reader of one of the words, in any letter case."""

    def word_in(value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lower() not in words:
            raise common.unknown_word(value, words)
        return value.lower()

    return word_in


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _one_of(words: tuple[str, ...]) -> FieldInfo:
    """Return the words as the document lists them."""
    listed: FieldInfo = Field(json_schema_extra={"enum": list(words)})
    return listed


Pattern = Annotated[str, BeforeValidator(_word_of(PATTERNS)), _one_of(PATTERNS)]
Patterns = Annotated[
    list[Pattern], Field(min_length=1, max_length=EVENTS_MAX), AfterValidator(_distinct)
]
Event = Annotated[str, BeforeValidator(_word_of(EVENTS)), _one_of(EVENTS)]
Url = Annotated[str, Field(min_length=1, max_length=2000)]
Repositories = Annotated[list[Repository], Field(max_length=REPOSITORIES_MAX)]
Description = Annotated[str, Field(max_length=200, pattern=common.LINE)]
State = Annotated[EndpointState, BeforeValidator(common.one_of(EndpointState))]
Format = Annotated[EndpointFormat, BeforeValidator(common.one_of(EndpointFormat))]
Overlap = Annotated[Integer, Field(ge=0, le=OVERLAP_HOURS_MAX)]
Message = Annotated[
    str, Field(pattern=common.MESSAGE, examples=["msg_5b0e4f3e9d0a3b1a54c1b7de0f8c6c1e"])
]


class CreateEndpoint(SnakeRequest):
    """`/webhooks/create-endpoint`; `repositories` null: all of the organization."""

    url: Url
    """Where messages are sent: https, reachable from the internet. For example
    `https://hooks.example.org/headgate`.
    """
    events: Patterns
    """Names of events, groups such as `queue.*`, or `*`. For example `["pull_request.*"]`"""
    repositories: Repositories | None = None
    """Only events of these repositories; without it of all."""
    description: Description | None = None
    """What the endpoint is for. For example `deployments`."""
    format: Format | None = None
    """`json`, or `slack` for an incoming webhook of Slack or Mattermost; `json` unless sent."""

    def change(self) -> EndpointChange:
        """Return the values to set."""
        return EndpointChange(
            self.url,
            tuple(self.events),
            _refs(self.repositories),
            self.description,
            self.format,
        )


class ListEndpoints(SnakeListed):
    """`/webhooks/list-endpoints`."""


class Chosen(SnakeRequest):
    """A request about one endpoint."""

    id: Uuid
    """The endpoint."""

    def endpoint(self) -> str:
        """Return the id as it is stored."""
        return self.id.lower()


class UpdateEndpoint(Chosen):
    """`/webhooks/update-endpoint`: what is not sent stays; `repositories` null lifts the limit."""

    url: Url | None = None
    """Where messages are sent. For example `https://hooks.example.org/headgate`."""
    events: Patterns | None = None
    """Names of events, groups such as `queue.*`, or `*`. For example `["pull_request.*"]`"""
    repositories: Repositories | None = None
    """Only events of these repositories; null: of all."""
    description: Description | None = None
    """What the endpoint is for. For example `deployments`."""
    format: Format | None = None
    """`json`, or `slack` for an incoming webhook of Slack or Mattermost."""
    state: State | None = None
    """Whether messages are sent."""

    def change(self) -> EndpointChange:
        """Return the values to set."""
        return EndpointChange(
            url=self.url,
            events=None if self.events is None else tuple(self.events),
            repositories=_refs(self.repositories),
            description=self.description,
            format=self.format,
            is_enabled=None if self.state is None else self.state is EndpointState.ENABLED,
            everywhere="repositories" in self.model_fields_set and self.repositories is None,
        )


class DeleteEndpoint(Chosen):
    """`/webhooks/delete-endpoint`."""


class RotateSecret(Chosen):
    """`/webhooks/rotate-secret`; the old secret signs too for so many hours."""

    overlap_hours: Overlap | None = None
    """Hours that the old secret signs as well; 24 unless sent."""


class TestEndpoint(Chosen):
    """`/webhooks/test-endpoint`."""

    __test__ = False


class ListDeliveries(SnakeListed):
    """`/webhooks/list-deliveries`; facts in [since, until)."""

    endpoint_id: Uuid
    """The endpoint."""
    event: Event | None = None
    """Only messages of this event."""
    state: Annotated[DeliveryState, BeforeValidator(common.one_of(DeliveryState))] | None = None
    """Only messages in this state."""
    since: Moment | None = None
    """Only events at this time or later."""
    until: Moment | None = None
    """Only events before this time."""

    def wanted(self) -> DeliveryPage:
        """Return which deliveries to list."""
        return DeliveryPage(
            endpoint_id=self.endpoint_id.lower(),
            selection=self.page(),
            event=self.event,
            state=self.state,
            since=self.since,
            until=self.until,
        )


class ReplayMessages(SnakeRequest):
    """`/webhooks/replay`: one message, or the ended ones of facts in [since, until)."""

    endpoint_id: Uuid
    """The endpoint."""
    message_id: Message | None = None
    """One message."""
    since: Moment | None = None
    """All messages of events at this time or later."""
    until: Moment | None = None
    """And before this time."""
    include_delivered: bool | None = None
    """Whether to send delivered messages again as well."""

    def replay(self) -> ReplayRequest:
        """Return which deliveries are sent again."""
        return ReplayRequest(
            self.message_id, self.since, self.until, include_delivered=bool(self.include_delivered)
        )

    def is_clear(self) -> bool:
        """Return whether it names either one message or both ends of a span."""
        ends = (self.since is not None) + (self.until is not None)
        return ends == (2 if self.message_id is None else 0)


def _refs(given: list[Repository] | None) -> tuple[RepoRef, ...] | None:
    return None if given is None else tuple(each.ref for each in given)
