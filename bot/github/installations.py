"""Calls of the App itself: the repositories it sees, and deliveries that never reached us."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import structlog

from bot.github import reading, translate
from bot.github.client import GitHubClient, RepositoryClient
from bot.github.reading import Fields
from bot.github.wire import Answer
from service.provider.errors import AppRefused, Gone, NotPermitted, Refused, Suspended
from service.provider.signals import FailedDelivery
from service.provider.values import Repository

PAGES_MAX = 100

log = structlog.get_logger()


async def repositories(github: GitHubClient) -> tuple[Repository, ...]:
    """Return every repository of every installation that is not suspended."""
    found: list[Repository] = []
    for each in await installations(github):
        number = each.id("id")
        github.tokens.learn_rights(number, reading.permissions_of(each))
        if each.text_or("suspended_at", None) is None:
            found += await _repositories_of(github, number)
    return tuple(found)


async def installations(github: GitHubClient) -> Sequence[Fields]:
    """Return every installation of the App, as GitHub describes it."""
    pages = _app_pages(github, "/app/installations?per_page=100")
    return [each async for page in pages for each in page.objects]


async def repository(client: RepositoryClient) -> Repository:
    """Read one repository, also after a rename. Raises Gone(REPOSITORY)."""
    answer = await client.get("", is_kept=True)
    found = reading.repository_of(answer.fields, client.github.options.host)
    client.github.tokens.learn(found.ref, found.id.id)
    return found


async def failed_deliveries(github: GitHubClient, since: datetime) -> tuple[FailedDelivery, ...]:
    """Return deliveries with a failed attempt since then, each with the newest, oldest first."""
    newest: dict[str, FailedDelivery] = {}
    async for page in _app_pages(github, "/app/hook/deliveries?status=failure&per_page=100"):
        tries = [_failed_delivery(each) for each in page.objects]
        for one in tries:
            if one.at >= since:
                newest.setdefault(one.id, one)
        if tries and tries[-1].at < since:
            break
    return tuple(reversed(newest.values()))


def _failed_delivery(answer: Fields) -> FailedDelivery:
    lost = translate.lost_with(answer.words("event"), answer.text_or("action", None))
    number, at = answer.id("id"), answer.moment("delivered_at")
    return FailedDelivery(answer.text("guid"), number, at, lost=lost)


async def redeliver(github: GitHubClient, attempt: str) -> None:
    """Ask GitHub to send the delivery of an attempt again, under the same GUID."""
    try:
        await github.app_call("POST", f"/app/hook/deliveries/{attempt}/attempts")
    except (Gone, Refused):
        return  # too old to be sent again; the sweeps read the same facts


async def _repositories_of(github: GitHubClient, installation: str) -> list[Repository]:
    found: list[Repository] = []
    path: str | None = "/installation/repositories?per_page=100"
    for _ in range(PAGES_MAX):
        if path is None:
            break
        try:
            answer = await github.installation_call(installation, path)
        except (Gone, Suspended):
            return []  # it was removed while we listed
        except AppRefused:
            raise
        except NotPermitted as refused:
            # One account keeps the App out, by its list of allowed addresses for example. The
            # others are read.
            log.warning("installation_refused", installation=installation, why=refused.message)
            return []
        for each in answer.fields.each("repositories"):
            one = reading.repository_of(each, github.options.host)
            github.tokens.learn(one.ref, one.id.id)
            found.append(one)
        path = answer.next_page
    return found


async def _app_pages(github: GitHubClient, path: str) -> AsyncIterator[Answer]:
    following: str | None = path
    for _ in range(PAGES_MAX):
        if following is None:
            return
        answer = await github.app_call("GET", following)
        yield answer
        following = answer.next_page
