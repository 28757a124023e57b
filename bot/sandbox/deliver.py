"""Webhooks: events as deliveries to the App, and the log of every attempt.

`emit` builds the payload at once and sends it when it is due, so that a delivery may be late but
never contains what happened later. GitHub promises no order of deliveries: with `Face.jitter_s`
they overtake each other. Each is sent once, within 10 s, without retries (the provider's
"Handling failed webhook deliveries"). Faults are applied before sending.
"""

import hashlib
import hmac
import json
import uuid
import zlib
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
LOG_BYTES_MAX = 32 * 2**20
LOG_MAX = 20_000
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
        packed=zlib.compress(json.dumps(payload, separators=(",", ":")).encode(), 1),
        redelivery=False,
        at=world.now(),
    )
    copies = [(world.orders.random() * world.face.jitter_s, attempt)]
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
    _keep(world, attempt)
    if world.courier is not None:
        await world.courier(attempt)


def _keep(world: World, attempt: Attempt) -> None:
    """Log an attempt; drop those past their days, or the oldest above a bound of this process.

    The world's days may be minutes, so days alone are no bound.
    """
    log = world.attempts
    log.append(attempt)
    world.attempts_bytes += len(attempt.packed)
    begin = world.now() - (LOG_KEPT_GHES if world.is_ghes else LOG_KEPT)
    while log[0].at < begin or len(log) > LOG_MAX or world.attempts_bytes > LOG_BYTES_MAX:
        world.attempts_bytes -= len(log.popleft().packed)


def headers_of(world: World, attempt: Attempt, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery, with the signature over its bytes."""
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
        "X-Hub-Signature": f"sha1={hmac.new(secret, body, 'sha1').hexdigest()}",
        "X-Hub-Signature-256": f"sha256={hmac.new(secret, body, 'sha256').hexdigest()}",
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
    before, body = world.timeline.now(), attempt.body
    try:
        async with session.post(
            world.webhook_url or "",
            data=body,
            headers=headers_of(world, attempt, body),
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
