"""Comments and reviews read again, for commands whose delivery never arrived."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from bot.github import graphql, translate
from bot.github.client import Query, RepositoryClient
from bot.github.reading import Fields
from bot.github.translate import OwnApp
from service.provider.signals import Delivery, Where
from service.provider.values import CommentsRead

OVERLAP = timedelta(minutes=1)
"""A comment may become visible this long after its own timestamp."""
PAGES_MAX = 3
"""Pages that one sweep of a repository reads: of comments, or of changed pull requests."""
EVENTS = {
    "comment": ("issue_comment", "created"),
    "review": ("pull_request_review", "submitted"),
}
"""The event and its action, by the source of a command."""
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


async def reviews_since(
    client: RepositoryClient, where: Where, start: datetime, own: OwnApp
) -> CommentsRead:
    """Read reviews of the open pull requests that changed since then, as if just delivered.

    REST does not say whether a review was edited, so GraphQL reads the reviews. It is asked only
    if a pull request changed: otherwise the list is answered with 304, which costs nothing.
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
    for number, review in await graphql.reviews(client, list(changes)):
        if review.is_edited or review.at < start - OVERLAP:
            continue
        body = {"review": review.shape, "pull_request": changes[number][1]}
        delivery = _delivery(client, where, "review", review.id, body)
        if _is_command(delivery, own):
            found.append((review.at, delivery))
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
