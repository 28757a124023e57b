"""Webhooks: what is told to the App, when, and the log of every attempt.

`emit` takes a picture of the payload at once and sends it when it is due, so a delivery may
be late but never knows the future. One attempt each, 10 s, no retry (the provider's "Handling
failed webhook deliveries"). Faults of deliveries are asked of strikes.py before sending.
"""

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import aiohttp

from bot.sandbox import strikes
from bot.sandbox.records import Account, App, Installation, Json
from bot.sandbox.shapes import people, repositories
from bot.sandbox.world import Attempt, Repository, World

TIMEOUT_S = 10.0
LOG_KEPT = timedelta(days=3)
LOG_KEPT_GHES = timedelta(days=7)
ANSWER_KEPT = 65_536
APP_SLUG = "headgate"
ALWAYS_SENT = frozenset(
    {
        "ping",
        "installation",
        "installation_repositories",
        "installation_target",
        "github_app_authorization",
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, to be told: `fields` are its own part of the payload."""

    name: str
    action: str | None
    fields: Json
    sender: Account


def emit(world: World, repository: Repository | None, event: Event) -> None:
    """Tell the App of an event, if an installation of it sees the repository and wants it."""
    app = world.apps.get(APP_SLUG)
    if app is None or not _is_wanted(app, event.name):
        return
    for installation in list(world.installations.values()):
        sees = repository is None or world.covers(installation, repository)
        if installation.app is app and sees and installation.suspended_at is None:
            emit_to(world, installation, repository, event)


def emit_to(
    world: World, installation: Installation, repository: Repository | None, event: Event
) -> None:
    """Tell one installation, suspended or not."""
    payload: Json = {"action": event.action} if event.action is not None else {}
    payload.update(event.fields)
    if repository is not None:
        payload["repository"] = repositories.repository(repository)
        if people.owner_is_organization(repository):
            payload["organization"] = people.organization(world, repository.owner)
    payload["sender"] = people.account(world, event.sender)
    payload.setdefault(
        "installation",
        {"id": installation.id, "node_id": people.node_id("Installation", installation.id)},
    )
    attempt = Attempt(
        id=world.new_id(),
        guid=_guid(world),
        event=event.name,
        action=event.action,
        installation=installation.id,
        repository=repository.id if repository is not None else None,
        payload=payload,
        body=json.dumps(payload, separators=(",", ":")).encode(),
        redelivery=False,
        at=world.now(),
    )
    for delay, copy in strikes.of_delivery(world, attempt, _guid):
        dispatch(world, copy, delay)


def _is_wanted(app: App, event: str) -> bool:
    return event in ALWAYS_SENT or event in app.events


def _guid(world: World) -> str:
    seed = f"{world.seed}:delivery:{world.new_id()}".encode()
    return str(uuid.UUID(bytes=hashlib.sha256(seed).digest()[:16], version=4))


def dispatch(world: World, attempt: Attempt, delay: float = 0.0) -> None:
    """Send a prepared delivery after `delay` seconds; without an address it is not sent."""
    if world.webhook_url is None or world.courier is None:
        return
    name = f"delivery of {attempt.event}.{attempt.action}"
    wait = world.knobs.delivery_delay_s + delay
    world.timeline.later(wait, name, partial(_send, world, attempt))


async def _send(world: World, attempt: Attempt) -> None:
    attempt.at = world.now()
    attempt.headers = {**headers_of(world, attempt), **attempt.headers}
    for name in [name for name, value in attempt.headers.items() if not value]:
        del attempt.headers[name]
    world.attempts.append(attempt)
    kept = LOG_KEPT_GHES if world.is_ghes else LOG_KEPT
    while world.attempts[0].at < world.now() - kept:
        del world.attempts[0]
    if world.courier is not None:
        await world.courier.carry(attempt)


def headers_of(world: World, attempt: Attempt) -> dict[str, str]:
    """The headers of a delivery, with the signature over its bytes."""
    secret = world.webhook_secret.encode()
    return {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/sandbox",
        "X-GitHub-Delivery": attempt.guid,
        "X-GitHub-Event": attempt.event,
        "X-GitHub-Hook-ID": "1",
        "X-GitHub-Hook-Installation-Target-ID": str(world.apps[APP_SLUG].id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature": f"sha1={hmac.new(secret, attempt.body, 'sha1').hexdigest()}",
        "X-Hub-Signature-256": f"sha256={hmac.new(secret, attempt.body, 'sha256').hexdigest()}",
    }


def redeliver(world: World, attempt: Attempt) -> None:
    """Send an old delivery again, under its old GUID, with a line of its own in the log."""
    again = replace(
        attempt,
        id=world.new_id(),
        redelivery=True,
        headers={},
        answer_code=0,
        answer="",
        status="queued",
    )
    dispatch(world, again)


class HttpCourier:
    """Carries deliveries by HTTP to the address the App registered."""

    def __init__(self, world: World, session: aiohttp.ClientSession) -> None:
        self._world = world
        self._session = session

    async def carry(self, attempt: Attempt) -> None:
        """Post the bytes; a receiver that fails or hangs is only written down."""
        before = self._world.timeline.now()
        try:
            async with self._session.post(
                self._world.webhook_url or "",
                data=attempt.body,
                headers=attempt.headers,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                allow_redirects=False,
            ) as answer:
                attempt.answer_code = answer.status
                attempt.answer_headers = dict(answer.headers)
                attempt.answer = (await answer.content.read(ANSWER_KEPT)).decode(errors="replace")
                good = 200 <= answer.status < 300
                attempt.status = "OK" if good else f"Invalid HTTP Response: {answer.status}"
        except TimeoutError:
            attempt.status = "timed out"
        except aiohttp.ClientError:
            attempt.status = "failed to connect to host"
        attempt.duration_s = (self._world.timeline.now() - before).total_seconds()


def is_failure(attempt: Attempt) -> bool:
    """Whether the receiver did not answer with 2xx."""
    return attempt.status not in ("OK", "queued")
