"""Deeds as the audit log keeps them: who did or was denied what, at whose request."""

from datetime import datetime

import structlog

from service.accounts.store.audit import AuditRow
from service.errors import Invalid
from service.vocabulary import Actor, QueueRef

REQUEST_ID = "request_id"


def deed(actor: Actor, org_id: int | None, action: str, subject: str, at: datetime) -> AuditRow:
    """A deed that is done, with the id of the HTTP request that this task serves, if any.

    The id is that of the log's lines (`X-Request-Id`, API.md 1.5). Transaction functions run on
    threads that serve no request, so a deed is put into words before its transaction.
    """
    found = structlog.contextvars.get_contextvars().get(REQUEST_ID, "")
    return AuditRow(
        at=at,
        org_id=org_id,
        actor=actor,
        action=action,
        subject=subject,
        decision="allowed",
        request_id=str(found),
    )


def need_reason(said: str | None, why: str) -> None:
    """Raise Invalid(reason_required) where nothing is said of `why`, blanks being nothing."""
    if not said or not said.strip():
        raise Invalid(f"Say in `reason` {why}; blanks say nothing.", code="reason_required")


def place_of(queue: QueueRef) -> str:
    """A queue as subject of a deed."""
    return f"{queue.repo.host}/{queue.repo.slug}@{queue.branch}"
