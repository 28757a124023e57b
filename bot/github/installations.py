"""Which repositories we see, and deliveries that never reached us: calls of the App itself."""

from collections.abc import AsyncIterator
from datetime import datetime

from bot.github import payloads
from bot.github.client import Client
from bot.github.fields import Fields
from bot.github.line import Line
from bot.github.wire import Answer
from service.provider.errors import Gone, Refused, Suspended
from service.provider.port import Repository

PAGES_MAX = 100
REDELIVERED_MAX = 100  # a sweep (GITHUB.md 7.2)
REDELIVERY_PAUSE_S = 1.0


async def repositories(client: Client) -> tuple[Repository, ...]:
    """Every repository of every installation that is not suspended."""
    found: list[Repository] = []
    async for page in _app_pages(client, "/app/installations?per_page=100"):
        for each in page.listed:
            installation = payloads.installation_of(Fields(each))
            if not installation.is_suspended:
                found += await _repositories_of(client, installation.id)
    return tuple(found)


async def repository(line: Line) -> Repository:
    """One repository now, followed through a rename. Raises Gone(REPOSITORY)."""
    answer = await line.get("")
    found = payloads.repository_of(answer.fields, line.client.options.host)
    line.client.tokens.learn(found.ref, found.id.id)
    return found


async def redeliver(client: Client, since: datetime) -> int:
    """Have deliveries sent again whose last try since then failed; each once."""
    asked: set[str] = set()
    async for page in _app_pages(client, "/app/hook/deliveries?status=failure&per_page=100"):
        for each in page.listed:
            attempt = payloads.attempt_of(Fields(each))
            if attempt.at < since or len(asked) == REDELIVERED_MAX:
                return len(asked)
            if attempt.guid in asked:
                continue
            if asked:
                await client.clock.sleep(REDELIVERY_PAUSE_S)
            asked.add(attempt.guid)
            await _redeliver(client, attempt.id)
    return len(asked)


async def _redeliver(client: Client, attempt_id: str) -> None:
    try:
        await client.app_call("POST", f"/app/hook/deliveries/{attempt_id}/attempts", {})
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
            one = payloads.repository_of(each, client.options.host)
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
