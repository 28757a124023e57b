"""The audit log: who did or was denied what, in which request."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

import structlog

from service.accounts.store import audit
from service.database import page_tokens, paging
from service.database.page_tokens import Listing
from service.database.paging import Page, PageSelection
from service.errors import Invalid
from service.runtime import Runtime
from service.vocabulary import Actor, QueueRef

REQUEST_ID = "request_id"

AuditEntry: TypeAlias = audit.AuditEntry
AuditFilter: TypeAlias = audit.AuditFilter


def allowed(
    actor: Actor, org_id: int | None, action: str, subject: str, at: datetime
) -> AuditEntry:
    """Return the entry of an allowed action, with the id of the HTTP request, if any.

    The id is that of the log's lines (`X-Request-Id`; docs/design/http.md 5). Threads that run
    transactions serve no request, so an entry is made before its transaction.
    """
    request_id = structlog.contextvars.get_contextvars().get(REQUEST_ID, "")
    return AuditEntry(
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


async def entries(
    runtime: Runtime, org_ids: Sequence[int] | None, wanted: AuditFilter, selection: PageSelection
) -> Page[AuditEntry]:
    """Return a page of the entries of these organizations, newest first; None: all entries.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    times = [None if at is None else page_tokens.micros(at) for at in (wanted.since, wanted.until)]
    filters = (wanted.actor, wanted.action, wanted.subject, *times)
    place = paging.place_of(runtime, Listing("activity", None, filters=filters), selection)
    before = int(place.key[0]) if place.key else audit.NEWEST
    found = await runtime.store.read(audit.entries_before, org_ids, wanted, before, place.limit)
    return place.page(found, lambda entry: (entry.id,))
