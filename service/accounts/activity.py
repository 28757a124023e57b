"""The audit log as people read it: filtered, newest first."""

from collections.abc import Sequence
from typing import TypeAlias

from service.accounts.store import audit
from service.database import page_tokens, paging
from service.database.page_tokens import Listing
from service.database.paging import Page, PageSelection
from service.runtime import Runtime

AuditEntry: TypeAlias = audit.AuditEntry
AuditFilter: TypeAlias = audit.AuditFilter


async def entries(
    runtime: Runtime, org_ids: Sequence[int] | None, wanted: AuditFilter, selection: PageSelection
) -> Page[AuditEntry]:
    """Return the entries of these organizations, newest first; None: all entries.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    times = [None if at is None else page_tokens.micros(at) for at in (wanted.since, wanted.until)]
    filters = (wanted.actor, wanted.action, wanted.subject, *times)
    place = paging.place_of(runtime, Listing("activity", None, filters=filters), selection)
    before = int(place.key[0]) if place.key else audit.NEWEST
    found = await runtime.store.read(audit.entries_before, org_ids, wanted, before, place.limit)
    return place.page(found, lambda entry: (entry.id,))
