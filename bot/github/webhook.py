"""The receiver of GitHub's deliveries: checks, stores and answers them.

The signature is compared over the raw bytes before anything is parsed. No part of a refused
delivery is stored or echoed.
"""

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from service.body_budget import BodyBudget, Share, overloaded
from service.clock import Clock
from service.errors import DatabaseUnavailable, Overloaded
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
    """The parts of a receiver; `secrets` are one or two, checked at start."""

    host: str
    secrets: tuple[str, ...]
    clock: Clock
    accept: Accept
    body_time_s: float = BODY_TIME_S
    telemetry: Meter = SILENT
    budget: BodyBudget = field(default_factory=BodyBudget)


def receiver(parts: Receiver) -> Handler:
    """Return the handler of `POST /webhooks/github`: 202 if new, 200 if known, else a refusal."""

    async def receive(request: web.Request) -> web.Response:
        try:
            return await _received(request, parts)
        except Overloaded as crowded:
            _count(parts, "unknown", "unavailable")
            return _come_again(crowded)

    return receive


async def _received(request: web.Request, parts: Receiver) -> web.Response:
    """Read, check and store one delivery. Raises Overloaded if there is no memory for its body."""
    proof = Proof(request.headers.getall("X-Hub-Signature-256", []), parts.secrets)
    refusal = _refusal_of(request)
    if refusal is not None:
        return _refused(parts, refusal)
    if not proof.is_possible:
        return _unproved(parts)
    limit = asyncio.timeout(parts.body_time_s)

    def give_way() -> None:
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())

    with parts.budget.share(give_way) as share:
        body = await _body_of(request, Taking(limit, share, proof))
        if isinstance(body, int):
            return _refused(parts, body)
        if not proof.holds():
            return _unproved(parts)
        delivery = _delivery_of(request.headers, body, parts)
        return _refused(parts, 400) if delivery is None else await _stored(delivery, parts)


async def _stored(delivery: Delivery, parts: Receiver) -> web.Response:
    try:
        new = await parts.accept(delivery)
    except DatabaseUnavailable as unavailable:
        _count(parts, delivery.event, "unavailable")
        return _come_again(unavailable)
    _count(parts, delivery.event, "accepted" if new else "duplicate")
    at = delivery.received_at.timestamp()
    parts.telemetry.level("headgate_delivery_last_received_timestamp_seconds", at)
    return web.Response(status=202 if new else 200)


def _unproved(parts: Receiver) -> web.Response:
    parts.telemetry.count("headgate_credentials_rejected_total", "webhook_signature")
    return _refused(parts, 401)


def _refused(parts: Receiver, status: int) -> web.Response:
    # A sender without a valid signature may name any event, so it is no metric label.
    _count(parts, "unknown", "refused")
    return web.Response(status=status)


def _come_again(crowded: Overloaded) -> web.Response:
    return web.Response(status=503, headers={"Retry-After": str(crowded.retry_after_s)})


def _count(parts: Receiver, event: str, outcome: str) -> None:
    parts.telemetry.count("headgate_deliveries_received_total", event, outcome)


class Proof:
    """The signature of one body, computed while the body is read.

    Compared as bytes in constant time under every secret, so that neither content nor which
    secret matched shows in the time taken. Two signatures are refused.
    """

    def __init__(self, signatures: Sequence[str], secrets: Sequence[str]) -> None:
        given = signatures[0].encode("utf-8", "surrogateescape") if len(signatures) == 1 else b""
        self._given = given
        self.is_possible = SIGNATURE.fullmatch(given) is not None
        self._digests = [hmac.new(secret.encode(), digestmod=hashlib.sha256) for secret in secrets]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        for digest in self._digests:
            digest.update(chunk)

    def holds(self) -> bool:
        """Return whether exactly one signature was given and one of the secrets made it."""
        matches = [
            hmac.compare_digest(self._given, b"sha256=" + digest.hexdigest().encode())
            for digest in self._digests
        ]
        return self.is_possible and any(matches)


@dataclass(frozen=True, slots=True)
class Taking:
    """The checks on a body while it is read: time limit, share of memory, signature."""

    limit: asyncio.Timeout
    share: Share
    proof: Proof


def _refusal_of(request: web.Request) -> int | None:
    """Return the status that refuses a request before its body is read; None without one."""
    if request.content_length is not None and request.content_length > BODY_BYTES_MAX:
        return 413
    if request.headers.get("Content-Encoding") or request.content_type != "application/json":
        return 415
    return None


async def _body_of(request: web.Request, taking: Taking) -> bytes | int:
    """Return the raw bytes, or the status that refuses them. Raises Overloaded."""
    parts = bytearray()
    try:
        async with taking.limit:
            async for part in request.content.iter_any():
                taking.share.take(len(part))
                taking.proof.feed(part)
                parts += part
                if len(parts) > BODY_BYTES_MAX:
                    return 413
            taking.share.finish()
    except TimeoutError:
        if taking.share.is_evicted:
            raise overloaded() from None
        return 408
    return bytes(parts)


def _delivery_of(headers: Mapping[str, str], body: bytes, parts: Receiver) -> Delivery | None:
    """Return the delivery, None if a header is invalid or the body is no JSON object."""
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
    """Parse strict JSON: UTF-8, no NaN or Infinity, at most 64 deep."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    # Nothing is deeper than there are openings, and most deliveries have few.
    is_flat = body.count(b"{") + body.count(b"[") <= DEPTH_MAX
    return found if isinstance(found, dict) and (is_flat or _depth_is_fine(found)) else None


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
