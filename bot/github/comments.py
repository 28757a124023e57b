"""Comments read again, for commands whose delivery never arrived."""

import json
from datetime import datetime

from bot.github import translate
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from bot.github.translate import OwnApp
from service.provider.signals import Delivery, Where
from service.provider.values import CommentsRead

PAGES_MAX = 3
"""Of 100 comments each, in one look at a repository."""
EVENT, ACTION = "issue_comment", "created"


async def since(
    client: RepositoryClient, where: Where, start: datetime, own: OwnApp
) -> CommentsRead:
    """Read comments changed since then, in the order of their change, as if just delivered.

    The request stays the same until the next comment, so that its ETag holds and the call does not
    count against GitHub's hourly limit.
    """
    query = {"sort": "updated", "direction": "asc", "since": start.strftime("%Y-%m-%dT%H:%M:%SZ")}
    found: list[Delivery] = []
    newest: datetime | None = None
    pages = 0
    complete = True
    async for page in client.pages("/issues/comments", None, query, is_kept=True):
        for each in page.listed:
            comment = Fields(each)
            newest = comment.moment("updated_at")
            delivery = _delivery(client, where, each)
            is_edited = comment.moment("created_at") != newest
            if delivery is not None and not is_edited and _is_command(delivery, own):
                found.append(delivery)
        pages += 1
        complete = page.next_page is None
        if pages == PAGES_MAX:
            break
    return CommentsRead(tuple(found), newest, complete)


def _delivery(client: RepositoryClient, where: Where, comment: object) -> Delivery | None:
    """Return the delivery that GitHub would have sent; None for a plain issue."""
    fields = Fields(comment)
    number = _number_of(fields)
    if number is None:
        return None
    payload = {
        "action": ACTION,
        "issue": {"number": number, "pull_request": {}},
        "comment": comment,
        "repository": {"id": int(where.id.id), "full_name": where.ref.slug},
    }
    return Delivery(
        host=where.ref.host,
        id=f"comment-{fields.id('id')}",
        event=EVENT,
        action=ACTION,
        repository_id=where.id.id,
        body=json.dumps(payload).encode(),
        received_at=client.clock.now(),
    )


def _number_of(comment: Fields) -> int | None:
    """Return the pull request of a listed comment; None when it is on a plain issue."""
    page, _, _ = comment.text("html_url").partition("#")
    kind, number = page.rsplit("/", 2)[1:]
    return int(number) if kind == "pull" and number.isdecimal() else None


def _is_command(delivery: Delivery, own: OwnApp) -> bool:
    return bool(translate.signals_of(delivery, own))
