"""Which repositories we see, and deliveries that never reached us: calls of the App itself."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

from bot.github import answers, translate
from bot.github.client import Client
from bot.github.fields import Fields
from bot.github.line import Line
from bot.github.wire import Answer
from service.provider.errors import Gone, Refused, Suspended
from service.provider.values import (
    FailedDelivery,
    Repository,
)

PAGES_MAX = 100


async def repositories(client: Client) -> tuple[Repository, ...]:
    """Every repository of every installation that is not suspended."""
    found: list[Repository] = []
    async for page in _app_pages(client, "/app/installations?per_page=100"):
        for each in page.listed:
            installation = answers.installation_of(Fields(each))
            client.tokens.learn_rights(installation.id, installation.permissions)
            if not installation.is_suspended:
                found += await _repositories_of(client, installation.id)
    return tuple(found)


async def repository(line: Line) -> Repository:
    """One repository now, followed through a rename. Raises Gone(REPOSITORY)."""
    answer = await line.get("")
    found = answers.repository_of(answer.fields, line.client.options.host)
    line.client.tokens.learn(found.ref, found.id.id)
    return found


async def failed_deliveries(client: Client, since: datetime) -> tuple[FailedDelivery, ...]:
    """Deliveries of which a try since then failed, each with its newest such try, oldest first."""
    newest: dict[str, FailedDelivery] = {}
    async for page in _app_pages(client, "/app/hook/deliveries?status=failure&per_page=100"):
        tries = [_failed_delivery(Fields(each)) for each in page.listed]
        for one in tries:
            if one.at >= since:
                newest.setdefault(one.id, one)
        if tries and tries[-1].at < since:
            break
    return tuple(reversed(newest.values()))


def _failed_delivery(answer: Fields) -> FailedDelivery:
    lost = translate.lost_with(answer.words("event"), answer.text_or("action", None))
    return replace(answers.failed_delivery_of(answer), lost=lost)


async def redeliver(client: Client, attempt: str) -> None:
    """Have what this try carried sent again, under the same GUID."""
    try:
        await client.app_call("POST", f"/app/hook/deliveries/{attempt}/attempts", {})
    except (Gone, Refused):
        return  # too old to be sent again; the sweeps find what it told


async def _repositories_of(client: Client, installation: str) -> list[Repository]:
    found: list[Repository] = []
    path: str | None = "/installation/repositories?per_page=100"
    for _ in range(PAGES_MAX):
        if path is None:
            break
        try:
            answer = await client.installation_call(installation, path)
        except (Gone, Suspended):
            return []  # it went while we listed
        for each in answer.fields.each("repositories"):
            one = answers.repository_of(each, client.options.host)
            client.tokens.learn(one.ref, one.id.id)
            found.append(one)
        path = answer.next_page
    return found


async def _app_pages(client: Client, path: str) -> AsyncIterator[Answer]:
    following: str | None = path
    for _ in range(PAGES_MAX):
        if following is None:
            return
        answer = await client.app_call("GET", following)
        yield answer
        following = answer.next_page
