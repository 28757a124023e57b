"""The audit log as people read it: filtered, newest first."""

from collections.abc import Sequence
from typing import TypeAlias

from service.accounts.store import audit
from service.runtime import Runtime

AuditEntry: TypeAlias = audit.AuditEntry
AuditFilter: TypeAlias = audit.AuditFilter


async def entries(
    runtime: Runtime, org_ids: Sequence[int] | None, wanted: AuditFilter
) -> tuple[AuditEntry, ...]:
    """Return the entries of these organizations, newest first; None: all entries."""
    return await runtime.store.read(audit.page, org_ids, wanted)
