"""Webhooks: events as deliveries to the App, and the log of every attempt.

`emit` builds the payload at once and sends it when it is due, so that a delivery may be late but
never contains what happened later. Each is sent once, within 10 s, without retries (the
provider's "Handling failed webhook deliveries"). Faults are applied before sending.
"""

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import aiohttp

from bot.sandbox.faults import Fault
from bot.sandbox.records import Account, Installation, Json
from bot.sandbox.shapes import people, repositories
from bot.sandbox.world import Attempt, Repository, World

TIMEOUT_S = 10.0
LOG_KEPT = timedelta(days=3)
LOG_KEPT_GHES = timedelta(days=7)
APP_SLUG = "headgate"
ALWAYS_SENT = frozenset({"installation", "installation_repositories", "installation_target"})


@dataclass(frozen=True, slots=True)
class Event:
    """An event to send; `fields` are its own part of the payload."""

    name: str
    action: str | None
    fields: Json
    sender: Account
    repository: Repository | None = None


def emit(
    repository: Repository, name: str, action: str | None, fields: Json, sender: Account
) -> None:
    """Send an event of a repository to the App, if an installation sees it and wants it."""
    world = repository.world
    app = world.app
    if app is None or not (name in ALWAYS_SENT or name in app.events):
        return
    for installation in list(world.installations.values()):
        sees = world.covers(installation, repository)
        if installation.app is app and sees and installation.suspended_at is None:
            emit_to(world, installation, Event(name, action, fields, sender, repository))


def emit_to(world: World, installation: Installation, event: Event) -> None:
    """Send an event to one installation, suspended or not."""
    repository = event.repository
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
    copies = [(0.0, attempt)]
    for fault in world.faults.of_delivery(event.name, event.action):
        copies = _struck(world, fault, copies)
    for delay, copy in copies:
        _dispatch(world, copy, delay)


def _struck(
    world: World, fault: Fault, copies: list[tuple[float, Attempt]]
) -> list[tuple[float, Attempt]]:
    """Return what a fault sends in place of these attempts, each after a delay in seconds."""
    value = fault.fault
    match fault.kind:
        case "drop":
            return []
        case "duplicate":
            times = range(int(value.get("n", 1)))
            return copies + [
                (delay, replace(one, id=world.new_id())) for delay, one in copies for _ in times
            ]
        case "delay":
            return [(delay + float(value.get("s", 60)), one) for delay, one in copies]
        case _:
            window = float(value.get("window", 10))
            return [(delay + world.chance.random() * window, one) for delay, one in copies]


def _guid(world: World) -> str:
    seed = f"{world.seed}:delivery:{world.new_id()}".encode()
    return str(uuid.UUID(bytes=hashlib.sha256(seed).digest()[:16], version=4))


def _dispatch(world: World, attempt: Attempt, delay: float = 0.0) -> None:
    """Send a prepared delivery after `delay` seconds; without an address it is not sent."""
    if world.webhook_url is None or world.courier is None:
        return
    name = f"delivery of {attempt.event}.{attempt.action}"
    world.timeline.later(delay, name, partial(_send, world, attempt))


async def _send(world: World, attempt: Attempt) -> None:
    attempt.at = world.now()
    attempt.headers = _headers_of(world, attempt)
    world.attempts.append(attempt)
    kept = LOG_KEPT_GHES if world.is_ghes else LOG_KEPT
    while world.attempts[0].at < world.now() - kept:
        del world.attempts[0]
    if world.courier is not None:
        await world.courier(attempt)


def _headers_of(world: World, attempt: Attempt) -> dict[str, str]:
    """The headers of a delivery, with the signature over its bytes."""
    secret = world.webhook_secret.encode()
    return {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/sandbox",
        "X-GitHub-Delivery": attempt.guid,
        "X-GitHub-Event": attempt.event,
        "X-GitHub-Hook-ID": "1",
        "X-GitHub-Hook-Installation-Target-ID": str(world.app.id if world.app else 0),
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
        answer_code=0,
        status="queued",
    )
    _dispatch(world, again)


async def carry(world: World, session: aiohttp.ClientSession, attempt: Attempt) -> None:
    """Post a delivery to the App's address; a receiver that fails or hangs is only logged."""
    before = world.timeline.now()
    try:
        async with session.post(
            world.webhook_url or "",
            data=attempt.body,
            headers=attempt.headers,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            allow_redirects=False,
        ) as answer:
            await answer.read()
            attempt.answer_code = answer.status
            is_good = 200 <= answer.status < 300
            attempt.status = "OK" if is_good else f"Invalid HTTP Response: {answer.status}"
    except TimeoutError:
        attempt.status = "timed out"
    except aiohttp.ClientError:
        attempt.status = "failed to connect to host"
    attempt.duration_s = (world.timeline.now() - before).total_seconds()


def is_failure(attempt: Attempt) -> bool:
    """Return whether the receiver did not answer with 2xx."""
    return attempt.status not in ("OK", "queued")
