"""Where GitHub's deliveries come in: checked, stored, answered; nothing is decided here.

The order of the checks is GITHUB.md 7.1: the signature is compared over the raw bytes before
anything is parsed, and nothing of a refused delivery is kept or echoed.
"""

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from service.clock import Clock
from service.errors import DatabaseUnavailable
from service.provider.signals import Delivery
from service.telemetry import SILENT, Meter

PATH = "/webhooks/github"
BODY_BYTES_MAX = 25 * 1024 * 1024  # what GitHub caps payloads at
BODY_TIME_S = 10.0
DEPTH_MAX = 64
HEADER = re.compile(r"[\x21-\x7e]{1,100}")
SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")

Accept = Callable[[Delivery], Awaitable[bool]]
"""Stores a delivery and commits; True when its id was new. Raises DatabaseUnavailable."""

Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class Receiver:
    """What a receiver stands on; `secrets` are one or two, checked at start."""

    host: str
    secrets: tuple[str, ...]
    clock: Clock
    accept: Accept
    body_time_s: float = BODY_TIME_S
    telemetry: Meter = SILENT


def receiver(parts: Receiver) -> Handler:
    """The handler of `POST /webhooks/github`: 202 when new, 200 when known, else a refusal."""

    async def receive(request: web.Request) -> web.Response:
        delivery = await _read(request, parts)
        if isinstance(delivery, int):
            # Whoever is refused may have named any event: it is no label.
            _count(parts, "unknown", "refused")
            return web.Response(status=delivery)
        try:
            new = await parts.accept(delivery)
        except DatabaseUnavailable as unavailable:
            _count(parts, delivery.event, "unavailable")
            retry = {"Retry-After": str(unavailable.retry_after_s)}
            return web.Response(status=503, headers=retry)
        _count(parts, delivery.event, "accepted" if new else "duplicate")
        at = delivery.received_at.timestamp()
        parts.telemetry.level("headgate_delivery_last_received_timestamp_seconds", at)
        return web.Response(status=202 if new else 200)

    return receive


async def _read(request: web.Request, parts: Receiver) -> Delivery | int:
    """The delivery, or the status that refuses it."""
    refusal = _refusal_of(request)
    if refusal is not None:
        return refusal
    body = await _body_of(request, parts.body_time_s)
    if isinstance(body, int):
        return body
    if not is_signed(body, request.headers.getall("X-Hub-Signature-256", []), parts.secrets):
        parts.telemetry.count("headgate_credentials_rejected_total", "webhook_signature")
        return 401
    return _delivery_of(request.headers, body, parts) or 400


def _count(parts: Receiver, event: str, outcome: str) -> None:
    parts.telemetry.count("headgate_deliveries_received_total", event, outcome)


def is_signed(body: bytes, signatures: Sequence[str], secrets: Sequence[str]) -> bool:
    """Whether exactly one signature stands there and one of the secrets made it.

    Compared as bytes in constant time under every secret, so that neither content nor which
    secret matched shows in the time taken.
    """
    given = signatures[0].encode("utf-8", "surrogateescape") if len(signatures) == 1 else b""
    if not SIGNATURE.fullmatch(given):
        return False
    matches = [hmac.compare_digest(given, _signature(body, secret)) for secret in secrets]
    return any(matches)


def _signature(body: bytes, secret: str) -> bytes:
    return b"sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()


def _refusal_of(request: web.Request) -> int | None:
    """Why the body is not even read."""
    if request.content_length is not None and request.content_length > BODY_BYTES_MAX:
        return 413
    if request.headers.get("Content-Encoding") or request.content_type != "application/json":
        return 415
    return None


async def _body_of(request: web.Request, seconds: float) -> bytes | int:
    """The raw bytes, or the status that refuses them."""
    parts = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.content.iter_any():
                parts += part
                if len(parts) > BODY_BYTES_MAX:
                    return 413
    except TimeoutError:
        return 408
    return bytes(parts)


def _delivery_of(headers: Mapping[str, str], body: bytes, parts: Receiver) -> Delivery | None:
    """The delivery, None when a header is faulty or the body no JSON object."""
    event, key = headers.get("X-GitHub-Event", ""), headers.get("X-GitHub-Delivery", "")
    content = _object_of(body)
    if content is None or not HEADER.fullmatch(event) or not HEADER.fullmatch(key):
        return None
    action = content.get("action")
    repository = content.get("repository")
    number = repository.get("id") if isinstance(repository, dict) else None
    return Delivery(
        host=parts.host,
        id=key,
        event=event,
        action=action if isinstance(action, str) else None,
        repository_id=str(number) if isinstance(number, int | str) else None,
        body=body,
        received_at=parts.clock.now(),
    )


def _object_of(body: bytes) -> dict[str, object] | None:
    """Strict JSON: UTF-8, no NaN or Infinity, at most 64 deep."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _depth_is_fine(found) else None


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _depth_is_fine(found: object) -> bool:
    level = [found]
    for _ in range(DEPTH_MAX):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, dict | list)
        ]
        if not level:
            return True
    return False
