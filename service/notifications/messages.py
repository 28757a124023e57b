"""Messages to endpoints: events, common fields and limits of their length. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

Json = Mapping[str, object]

LIST_MAX = 300
TEXT_MAX = 1000
"""Longer lists and texts are cut, so that no body exceeds 20 kB.

See docs/design/notifications.md 1.
"""


EVENTS: tuple[str, ...] = (
    "pull_request.submitted",
    "pull_request.not_ready",
    "pull_request.queued",
    "pull_request.testing",
    "pull_request.tests_passed",
    "pull_request.pending_failure",
    "pull_request.failed",
    "pull_request.canceled",
    "pull_request.merged",
    "pull_request_batch.submitted",
    "pull_request_batch.queued",
    "pull_request_batch.testing",
    "pull_request_batch.pending_failure",
    "pull_request_batch.failed",
    "pull_request_batch.canceled",
    "pull_request_batch.merged",
    "next_step.changed",
    "test_run.started",
    "test_run.finished",
    "test_case.status_changed",
    "test_case.quarantining_setting_changed",
    "test_case.ticket_linked",
    "upload.processed",
    "upload.failed_after_landing",
    "flake_costs.exceeded",
    "test_machine.failing",
    "queue.created",
    "queue.updated",
    "queue.deleted",
    "queue.state_changed",
    "queue.held",
    "queue.released",
    "queue.drained",
    "queue.landing_mismatch",
    "target.red",
    "target.culprit",
    "target.green",
    "conflict.foreseen",
    "conflict.gone",
    "webhook.test",
    "webhook.endpoint_disabled",
)
"""Every event (docs/design/notifications.md 1)."""

EVERY = "*"


def _group_of(name: str) -> str:
    """Return the pattern of a name's group: `queue.*`."""
    return f"{name.partition('.')[0]}.{EVERY}"


PATTERNS: tuple[str, ...] = (EVERY, *dict.fromkeys(map(_group_of, EVENTS)), *EVENTS)
"""The ways in which an endpoint selects events: all, a group, or by name."""


def wants(patterns: Collection[str], name: str) -> bool:
    """Return whether an endpoint with these patterns receives the event."""
    return EVERY in patterns or _group_of(name) in patterns or name in patterns


@dataclass(frozen=True, slots=True)
class Message:
    """One event for every endpoint that wants it: its name, its time and its whole body."""

    event: str
    at: datetime
    body: str


def webhook_test(organization: str, at: datetime) -> Message:
    """Return the message that an administrator sends to test an endpoint."""
    return message_of("webhook.test", at, common_fields("webhook.test", organization, at))


def endpoint_disabled(organization: str, endpoint: str, reason: str, at: datetime) -> Message:
    """Return the message to the other endpoints that one was disabled."""
    name = "webhook.endpoint_disabled"
    fields = {"endpoint_id": endpoint, "reason": reason}
    return message_of(name, at, {**common_fields(name, organization, at), **fields})


def common_fields(name: str, organization: str, at: datetime) -> Json:
    """Return the fields that every message has."""
    return {
        "type": name,
        "action": name.rpartition(".")[2],
        "timestamp": time_text(at),
        "organization": organization,
    }


def message_of(name: str, at: datetime, fields: Json) -> Message:
    """Return the message with these fields, cut to the limits."""
    return Message(name, at, orjson.dumps(_fitted(fields)).decode())


def _fitted(fields: Json) -> Json:
    """Return the fields with long lists and texts cut, and `truncated` if any was."""
    cut = {name: _cut(value) for name, value in fields.items()}
    return {**cut, "truncated": True} if cut != fields else fields


def _cut(value: object) -> object:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    return value[:LIST_MAX] if isinstance(value, list) else value


def time_text(at: datetime) -> str:
    """Return a time in UTC with three decimals (docs/design/http.md 3)."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
