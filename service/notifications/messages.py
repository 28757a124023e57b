"""Messages to endpoints: the fields that all of them have, and how long they may be. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

Json = Mapping[str, object]

LIST_MAX = 300
TEXT_MAX = 1000
"""Longer lists and texts are cut, so that no body exceeds 20 kB (API.md 11.1)."""


@dataclass(frozen=True, slots=True)
class Message:
    """One event for every endpoint that wants it: its name, its time and its whole body."""

    event: str
    at: datetime
    body: str


def tests_webhook(organization: str, at: datetime) -> Message:
    """What an administrator has sent to see whether it arrives."""
    return message_of("webhook.test", at, common_fields("webhook.test", organization, at))


def endpoint_disabled(organization: str, endpoint: str, reason: str, at: datetime) -> Message:
    """An endpoint gets nothing more; for the others."""
    name = "webhook.endpoint_disabled"
    told = {"endpoint_id": endpoint, "reason": reason}
    return message_of(name, at, {**common_fields(name, organization, at), **told})


def common_fields(name: str, organization: str, at: datetime) -> Json:
    """What every message says of itself."""
    return {
        "type": name,
        "action": name.rpartition(".")[2],
        "timestamp": time_text(at),
        "organization": organization,
    }


def message_of(name: str, at: datetime, fields: Json) -> Message:
    """The message with these fields, cut to what fits."""
    return Message(name, at, orjson.dumps(_fitted(fields)).decode())


def _fitted(fields: Json) -> Json:
    """The fields with long lists and texts cut; then it says so."""
    cut = {name: _cut(value) for name, value in fields.items()}
    return {**cut, "truncated": True} if cut != fields else fields


def _cut(value: object) -> object:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    return value[:LIST_MAX] if isinstance(value, list) else value


def time_text(at: datetime) -> str:
    """UTC with three decimals (API.md 1.3)."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
