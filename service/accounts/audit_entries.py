"""Entries of the audit log: who did or was denied what, in which request."""

from datetime import datetime

import structlog

from service.accounts.store.audit import AuditRow
from service.errors import Invalid
from service.vocabulary import Actor, QueueRef

REQUEST_ID = "request_id"


def allowed(actor: Actor, org_id: int | None, action: str, subject: str, at: datetime) -> AuditRow:
    """Return the entry of an allowed action, with the id of the HTTP request, if any.

    The id is that of the log's lines (`X-Request-Id`; docs/design/http.md 5). Threads that run
    transactions serve no request, so an entry is made before its transaction.
    """
    request_id = structlog.contextvars.get_contextvars().get(REQUEST_ID, "")
    return AuditRow(
        at=at,
        org_id=org_id,
        actor=actor,
        action=action,
        subject=subject,
        decision="allowed",
        request_id=str(request_id),
    )


def require_reason(reason: str | None, why: str) -> None:
    """Raise Invalid(reason_required) if there is no reason, or only blanks."""
    if not reason or not reason.strip():
        raise Invalid(f"Say in `reason` {why}; blanks say nothing.", code="reason_required")


def subject_of_queue(queue: QueueRef) -> str:
    """Return a queue as the subject of an entry."""
    return f"{queue.repo.host}/{queue.repo.slug}@{queue.branch}"
