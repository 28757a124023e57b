"""Comments, reviews and labels read again, for commands whose delivery never arrived.

REST says neither whether a review was edited nor, in a webhook, which change of a label it is, so
submitted reviews and changes of labels are read by GraphQL.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.github import graphql, translate
from bot.github.client import Query, RepositoryClient
from bot.github.reading import Fields, Person, person_of
from bot.github.translate import OwnApp
from service.provenance import ProviderTime
from service.provider import labels as names
from service.provider.errors import Gone, GoneKind
from service.provider.labels import LabelChange
from service.provider.signals import Delivery, Where
from service.provider.values import CommentsRead
from service.vocabulary import ActorKind, Channel

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


async def _label_events(client: RepositoryClient, number: int) -> tuple[LabelEvent, ...]:
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
    return {
        "id": int(account.id("databaseId")),
        "login": graphql.login_of(account),
        "type": account.text("__typename"),
    }


OVERLAP = timedelta(minutes=1)
"""A comment may become visible this long after its own timestamp."""
PAGES_MAX = 3
"""Pages that one sweep of a repository reads: of comments, or of changed pull requests."""
EVENTS = {
    "comment": ("issue_comment", "created"),
    "review": ("pull_request_review", "submitted"),
    "label": ("pull_request", "labeled"),
}
"""The event and its action, by the source of a command. A removal has the same: it says to look."""
REVIEWED_EACH = 30
"""Pull requests on a page of changed ones; a look reads their newest reviews."""


async def since(
    client: RepositoryClient, where: Where, start: datetime, own: OwnApp
) -> CommentsRead:
    """Read comments changed since then, in the order of their change, as if just delivered.

    The request stays the same until the next comment, so that its ETag holds and the call does not
    count against GitHub's hourly limit.
    """
    query = {"sort": "updated", "direction": "asc", "since": start.strftime("%Y-%m-%dT%H:%M:%SZ")}
    found: list[Delivery] = []
    next_start = start
    pages = 0
    async for page in client.pages("/issues/comments", None, query, is_kept=True):
        for each in page.listed:
            comment = Fields(each)
            newest = comment.moment("updated_at")
            next_start = max(start, newest - OVERLAP)
            delivery = _comment(client, where, each)
            is_edited = comment.moment("created_at") != newest
            if delivery is not None and not is_edited and _is_command(delivery, own):
                found.append(delivery)
        pages += 1
        if pages == PAGES_MAX and page.next_page is not None:
            # The next sweep goes on here; timestamps have whole seconds.
            next_start = max(newest, start + timedelta(seconds=1))
            break
    return CommentsRead(tuple(found), next_start)


@dataclass(frozen=True, slots=True)
class LabelReader:
    """A selection of people and labels whose changes are commands."""

    own: OwnApp
    labels: Collection[str]

    def newest(self, events: Sequence[LabelEvent], start: datetime) -> Iterator[LabelEvent]:
        """Yield the newest change of each label that our own App did not make, if it is newer.

        An earlier sweep has seen an older one, when the label may have had no meaning yet.
        """
        for label in self.labels:
            changes = _changes_of(events, label, self.own)
            if changes is not None and changes.newest.at > start:
                yield changes.newest


@dataclass(frozen=True, slots=True)
class LabelChanges:
    """The newest change of a label by others; `undone`: our own App removed the label after it."""

    newest: LabelEvent
    undone: bool


def _changes_of(events: Sequence[LabelEvent], label: str, own: OwnApp) -> LabelChanges | None:
    """Return the newest change of a label that our own App did not make, None if there is none."""
    undone: bool | None = None
    for event in reversed(events):
        if not names.is_same(event.label, label):
            continue
        if own.actor(event.person).kind is not ActorKind.SELF:
            return LabelChanges(event, undone or False)
        if undone is None:
            undone = not event.added
    return None


async def label_change(
    client: RepositoryClient, number: int, label: str, own: OwnApp
) -> LabelChange | None:
    """Read the newest change of a label by others than our App. Raises Gone(PULL_REQUEST)."""
    changes = _changes_of(await _label_events(client, number), label, own)
    if changes is None:
        return None
    event = changes.newest
    actor = own.actor(event.person, Channel.LABEL)
    return LabelChange(event.id, event.added, actor, ProviderTime(event.at), changes.undone)


async def reviews_and_labels_since(
    client: RepositoryClient, where: Where, start: datetime, reader: LabelReader
) -> CommentsRead:
    """Read what was done on open pull requests that changed since then, as if just delivered.

    GraphQL reads it. It is asked only if a pull request changed: otherwise the list is answered
    with 304, which costs nothing.
    """
    query: Query = {
        "state": "open",
        "sort": "updated",
        "direction": "desc",
        "per_page": REVIEWED_EACH,
    }
    changes: dict[int, tuple[datetime, object]] = {}
    pages = 0
    async for page in client.pages("/pulls", None, query, is_kept=True):
        changed = [
            (pull.number("number"), (pull.moment("updated_at"), each))
            for each, pull in zip(page.listed, page.objects, strict=True)
            if pull.moment("updated_at") > start
        ]
        changes.update(changed)
        pages += 1
        if len(changed) < REVIEWED_EACH or pages == PAGES_MAX:
            break
    if not changes:
        return CommentsRead((), start)
    found: list[tuple[datetime, Delivery]] = []
    for each in await activity(client, list(changes)):
        reviews = (one for one in each.reviews if one.at >= start - OVERLAP)
        done: list[Review | LabelEvent] = [*reviews, *reader.newest(each.labels, start)]
        for one in done:
            delivery = _done(client, where, one, changes[each.number][1])
            if delivery is not None and _is_command(delivery, reader.own):
                found.append((one.at, delivery))
    found.sort(key=lambda one: one[0])
    # Another change may have the same second, or become visible later.
    newest = min(max(at for at, _ in changes.values()), client.clock.now() - OVERLAP)
    return CommentsRead(tuple(delivery for _, delivery in found), max(start, newest))


def _comment(client: RepositoryClient, where: Where, comment: object) -> Delivery | None:
    """Return the delivery that GitHub would have sent; None for a plain issue."""
    fields = Fields(comment)
    number = _number_of(fields)
    if number is None:
        return None
    body = {"issue": {"number": number, "pull_request": {}}, "comment": comment}
    return _delivery(client, where, "comment", fields.id("id"), body)


def _done(
    client: RepositoryClient, where: Where, done: Review | LabelEvent, pull: object
) -> Delivery | None:
    """Return the delivery that GitHub would have sent; None for an edited review."""
    match done:
        case Review():
            body = {"review": done.shape, "pull_request": pull}
            return None if done.is_edited else _delivery(client, where, "review", done.id, body)
        case LabelEvent():
            labelled = {"label": {"name": done.label}, "pull_request": pull}
            return _delivery(client, where, "label", done.id, labelled)


def _delivery(
    client: RepositoryClient, where: Where, source: str, number: str, body: Mapping[str, object]
) -> Delivery:
    event, action = EVENTS[source]
    repository = {"id": int(where.id.id), "full_name": where.ref.slug}
    return Delivery(
        host=where.ref.host,
        id=f"{source}-{number}",
        event=event,
        action=action,
        repository_id=where.id.id,
        body=json.dumps({"action": action, "repository": repository, **body}).encode(),
        received_at=client.clock.now(),
    )


def _number_of(comment: Fields) -> int | None:
    """Return the pull request of a listed comment; None when it is on a plain issue."""
    page, _, _ = comment.text("html_url").partition("#")
    kind, number = page.rsplit("/", 2)[1:]
    return int(number) if kind == "pull" and number.isdecimal() else None


def _is_command(delivery: Delivery, own: OwnApp) -> bool:
    return bool(translate.signals_of(delivery, own))
