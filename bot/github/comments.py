"""Comments, reviews and labels read again, for commands whose delivery never arrived."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.github import activity, translate
from bot.github.activity import LabelEvent, Review
from bot.github.client import Query, RepositoryClient
from bot.github.reading import Fields
from bot.github.translate import OwnApp
from service.provenance import ProviderTime
from service.provider import labels as names
from service.provider.labels import LabelChange
from service.provider.signals import Delivery, Where
from service.provider.values import CommentsRead
from service.vocabulary import ActorKind, Channel

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
    """Whose changes of which labels are commands."""

    own: OwnApp
    labels: Collection[str]

    def newest(self, events: Sequence[LabelEvent], start: datetime) -> Iterator[LabelEvent]:
        """Yield the newest change of each label if it is newer, unless our own App made it.

        An earlier sweep has seen an older one, when the label may have had no meaning yet.
        """
        for label in self.labels:
            event = newest_of(events, label)
            if event is None or event.at <= start:
                continue
            if self.own.actor(event.person).kind is not ActorKind.SELF:
                yield event


def newest_of(events: Sequence[LabelEvent], label: str) -> LabelEvent | None:
    """Return the newest change of a label, None if there is none."""
    return next((one for one in reversed(events) if names.is_same(one.label, label)), None)


async def label_change(
    client: RepositoryClient, number: int, label: str, own: OwnApp
) -> LabelChange | None:
    """Read the newest change of a label of a pull request. Raises Gone(PULL_REQUEST)."""
    event = newest_of(await activity.label_events(client, number), label)
    if event is None:
        return None
    actor = own.actor(event.person, Channel.LABEL)
    return LabelChange(event.id, event.added, actor, ProviderTime(event.at))


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
    for each in await activity.activity(client, list(changes)):
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
