"""The events that endpoints are told, by name (API.md 11.1)."""

from collections.abc import Collection

NAMES: tuple[str, ...] = (
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
    "test_case.status_changed",
    "test_case.quarantining_setting_changed",
    "test_case.ticket_linked",
    "upload.processed",
    "upload.failed_after_landing",
    "queue.created",
    "queue.updated",
    "queue.deleted",
    "queue.state_changed",
    "queue.held",
    "queue.released",
    "queue.drained",
    "queue.landing_mismatch",
    "webhook.test",
    "webhook.endpoint_disabled",
    "audit.sealed",
)
"""Every event; which part tells it is that part's matter."""

EVERY = "*"


def group_of(name: str) -> str:
    """The pattern of a name's group: `queue.*`."""
    return f"{name.partition('.')[0]}.{EVERY}"


PATTERNS: tuple[str, ...] = (EVERY, *dict.fromkeys(map(group_of, NAMES)), *NAMES)
"""Whatever an endpoint may ask for."""


def wants(patterns: Collection[str], name: str) -> bool:
    """Whether an endpoint that asked for these is told of the event."""
    return EVERY in patterns or group_of(name) in patterns or name in patterns
