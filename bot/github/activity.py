"""Acts of people on pull requests, by GraphQL: submitted reviews, and labels added and removed.

REST says neither whether a review was edited nor, in a webhook, which change of a label it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.github import graphql
from bot.github.client import RepositoryClient
from bot.github.reading import BOT, Fields, Person, person_of
from service.provider.errors import Gone, GoneKind

USER = """
{ __typename login ... on User { databaseId } ... on Bot { databaseId } }
"""
LABEL_EVENTS = f"""
    nodes {{
      __typename
      ... on LabeledEvent {{ id createdAt label {{ name }} actor {USER} }}
      ... on UnlabeledEvent {{ id createdAt label {{ name }} actor {USER} }}
    }}
"""
ACTIVITY = f"""
query Activity($owner: String!, $name: String!) {{
  repository(owner: $owner, name: $name) {{
    id
    %s
  }}
}}
fragment ActivityFields on PullRequest {{
  reviews(last: 20) {{
    nodes {{ databaseId body submittedAt lastEditedAt author {USER} }}
  }}
  timelineItems(last: 20, itemTypes: [LABELED_EVENT, UNLABELED_EVENT]) {{ {LABEL_EVENTS} }}
}}
"""
LABEL_CHANGES = f"""
query LabelChanges($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{
    id
    pullRequest(number: $number) {{
      timelineItems(last: 100, itemTypes: [LABELED_EVENT, UNLABELED_EVENT]) {{ {LABEL_EVENTS} }}
    }}
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Review:
    """A submitted review; `shape` has the fields of REST that translation reads."""

    id: str
    at: datetime
    is_edited: bool
    shape: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """A label was added or removed; `person` is None for an account that does not act."""

    id: str
    at: datetime
    label: str
    added: bool
    person: Person | None


@dataclass(frozen=True, slots=True)
class Activity:
    """The newest 20 reviews and changes of labels of a pull request, oldest first."""

    number: int
    reviews: tuple[Review, ...]
    labels: tuple[LabelEvent, ...]


async def activity(client: RepositoryClient, numbers: Sequence[int]) -> list[Activity]:
    """Read pull requests by one document; one that is gone is left out."""
    named = "\n".join(
        f"pr_{number}: pullRequest(number: {number}) {{ ...ActivityFields }}" for number in numbers
    )
    repository = await graphql.repository(client, ACTIVITY % named, {})
    return [
        Activity(number, tuple(_reviews_of(pull)), tuple(_label_events_of(pull)))
        for number in numbers
        if (pull := repository.inner_or_none(f"pr_{number}")) is not None
    ]


async def label_events(client: RepositoryClient, number: int) -> tuple[LabelEvent, ...]:
    """Read the newest 100 changes of labels, oldest first. Raises Gone(PULL_REQUEST)."""
    repository = await graphql.repository(client, LABEL_CHANGES, {"number": number})
    pull = repository.inner_or_none("pullRequest")
    if pull is None:
        raise Gone(f"Pull request {number} is gone.", GoneKind.PULL_REQUEST)
    return tuple(_label_events_of(pull))


def _reviews_of(pull: Fields) -> Iterator[Review]:
    connection = pull.inner_or_none("reviews")
    for node in () if connection is None else connection.each("nodes"):
        if node.moment_or_none("submittedAt") is None:
            continue
        shape = {
            "id": int(node.id("databaseId")),
            "body": node.words("body"),
            "submitted_at": node.text("submittedAt"),
            "user": _user_of(node.inner_or_none("author")),
        }
        yield Review(
            id=node.id("databaseId"),
            at=node.moment("submittedAt"),
            is_edited=node.moment_or_none("lastEditedAt") is not None,
            shape=shape,
        )


def _label_events_of(pull: Fields) -> Iterator[LabelEvent]:
    for node in pull.inner("timelineItems").each("nodes"):
        label = node.inner_or_none("label")
        if label is None:  # although the schema denies it: a label that was deleted
            continue
        user = _user_of(node.inner_or_none("actor"))
        yield LabelEvent(
            id=node.text("id"),
            at=node.moment("createdAt"),
            label=label.text("name"),
            added=node.text("__typename") == "LabeledEvent",
            person=None if user is None else person_of(Fields(user)),
        )


def _user_of(account: Fields | None) -> dict[str, object] | None:
    """Return an account as REST shows it; None for one that gives no commands.

    Only a person or a bot has a number here.
    """
    if account is None or account.id_or_none("databaseId") is None:
        return None
    kind = account.text("__typename")
    return {
        "id": int(account.id("databaseId")),
        "login": account.text("login") + ("[bot]" if kind == BOT else ""),
        "type": kind,
    }
