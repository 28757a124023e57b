"""Acts of our own App as GitHub shows them, for a database that may be older than they are.

GitHub names the account that merged or closed a pull request or wrote a comment, and nobody else
can act as our App's account. Names of branches and texts prove nothing here.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from bot.github import reading
from bot.github.client import Query, RepositoryClient
from bot.github.reading import Fields, Person
from service.provider import markers
from service.provider.errors import GoneKind
from service.provider.values import LandedByUs, ListedPullRequest, StatusPosted
from service.vocabulary import Sha

PAGES_MAX = 5
"""Pages of 100 that one look reads: of comments, and of closed pull requests."""

_LANDED = re.compile(r"<!-- headgate:reply landed-([0-9a-f]{40}|[0-9a-f]{64}) -->")
_LEFT = frozenset({"failure", "cancelled", "neutral"})
"""Conclusions of our check run about a submission that has left the queue unmerged."""

_STAMP = "%Y-%m-%dT%H:%M:%SZ"


async def landed(client: RepositoryClient, number: int) -> LandedByUs | None:
    """Return how our App landed a pull request; None if another merged or closed it.

    Of people's pull requests our App closes those alone whose commits it has landed.
    """
    pull = (await client.get(f"/pulls/{number}", missing=GoneKind.PULL_REQUEST)).fields
    if pull.moment_or_none("merged_at") is not None:
        is_ours = await _is_merger_ours(client, pull.inner_or_none("merged_by"))
        return LandedByUs(_sha(pull.words("merge_commit_sha"))) if is_ours else None
    if pull.words("state") != "closed" or await _is_ours(client, pull.inner_or_none("user")):
        return None
    issue = (await client.get(f"/issues/{number}", missing=GoneKind.PULL_REQUEST)).fields
    if not await _is_ours(client, issue.inner_or_none("closed_by")):
        return None
    return LandedByUs(await _named_in_comments(client, number))


async def is_merged_by_another(client: RepositoryClient, number: int) -> bool:
    """Return whether GitHub names another account than our App's as who merged a pull request.

    Of an account that was deleted it may name none, which says nothing.
    """
    pull = (await client.get(f"/pulls/{number}", missing=GoneKind.PULL_REQUEST)).fields
    merged_by = pull.inner_or_none("merged_by")
    return merged_by is not None and not await _is_merger_ours(client, merged_by)


async def shows_end(
    client: RepositoryClient, app_id: str, sha: Sha, name: str, submission: str
) -> bool:
    """Return whether our newest check run about a submission says that it left unmerged.

    GitHub itself ends those that are open for two weeks, as stale: that says nothing.
    """
    listed, _ = await client.listed(
        f"/commits/{sha}/check-runs", "check_runs", {"check_name": name, "filter": "all"}
    )
    wanted = (name, app_id, submission)
    ours = [
        run
        for run in listed
        if (run.text("name"), reading.app_id_of(run), run.words("external_id")) == wanted
    ]
    newest = max(ours, key=lambda run: run.number("id"), default=None)
    return newest is not None and newest.words("conclusion") in _LEFT


async def statuses_posted(
    client: RepositoryClient, app_id: str, marker: str, since: datetime
) -> Sequence[StatusPosted]:
    """Return the status comments that our App has made or changed since then, newest first."""
    query = {"sort": "updated", "direction": "desc", "since": since.strftime(_STAMP)}
    slug = await client.github.slug()
    found = []
    pages = 0
    async for page in client.pages("/issues/comments", None, query):
        for comment in page.objects:
            words = reading.words_of(comment)
            created = reading.time_of(comment, "created_at")
            if not markers.is_marked(words.body, marker) or created is None:
                continue
            if words.is_by_app(app_id, slug):
                number = int(comment.text("issue_url").rpartition("/")[2])
                found.append(StatusPosted(number, words.id, words.body, created))
        pages += 1
        if pages == PAGES_MAX:
            break
    return found


async def closed_pull_requests(
    client: RepositoryClient, base: str, since: datetime
) -> Sequence[ListedPullRequest]:
    """Return the pull requests onto a branch that were closed since then."""
    query: Query = {"state": "closed", "base": base, "sort": "updated", "direction": "desc"}
    found: list[ListedPullRequest] = []
    pages = 0
    async for page in client.pages("/pulls", None, query):
        changed = [each for each in page.objects if each.moment("updated_at") >= since]
        # One that was closed long before is listed too, because somebody has commented on it.
        closed = (each for each in changed if (each.moment_or_none("closed_at") or since) >= since)
        found += [reading.listed_pull_of(each) for each in closed]
        pages += 1
        if len(changed) < len(page.objects) or pages == PAGES_MAX:
            break
    return found


async def _is_merger_ours(client: RepositoryClient, account: Fields | None) -> bool:
    """Return the same as `_is_ours`, also if our App was renamed since its name was read."""
    if await _is_ours(client, account):
        return True
    person = reading.person_of(account)
    if person is None or not person.is_bot:
        return False
    await client.github.read_slug()
    return await _is_ours(client, account)


async def _is_ours(client: RepositoryClient, account: Fields | None) -> bool:
    person: Person | None = reading.person_of(account)
    login = f"{await client.github.slug()}[bot]".lower()
    return person is not None and person.is_bot and person.login.lower() == login


async def _named_in_comments(client: RepositoryClient, number: int) -> Sha | None:
    """Return the commit that our own comment names as the landing of a closed pull request."""
    listed, _ = await client.listed(f"/issues/{number}/comments", missing=GoneKind.PULL_REQUEST)
    for comment in reversed(listed):
        named = _LANDED.match(comment.words("body"))
        if named is not None and await _is_ours(client, comment.inner_or_none("user")):
            return Sha(named[1])
    return None


def _sha(text: str) -> Sha | None:
    return Sha(text) if text else None
