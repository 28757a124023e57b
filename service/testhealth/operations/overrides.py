"""Set, remove and expire quarantine overrides (docs/design/quarantine.md 3)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.accounts import access, audit_log
from service.accounts.store import access as stored_access
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import FieldError, Malformed
from service.runtime import Runtime
from service.testhealth.operations import messages, records
from service.testhealth.store import cases as test_cases
from service.testhealth.store import listings, quarantine
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import StoredOverride
from service.vocabulary import SYSTEM, Actor, Override

ALWAYS_FOR = timedelta(days=30)
EXPIRES_WITHIN = timedelta(days=366)
EXPIRED = "expired"
"""Reason of the event when an override's time is over."""


@dataclass(frozen=True, slots=True)
class OverrideRequest:
    """An override to set; `expires_at` None: 30 days for ALWAYS, no end for NEVER."""

    test_id: str
    override: Override
    reason: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OverrideView:
    """The override now, and whether the test is quarantined by it or otherwise."""

    test_id: str
    override: Override
    expires_at: datetime | None
    quarantined: bool


async def put(
    runtime: Runtime, repository: RepositoryRecord, request: OverrideRequest, actor: Actor
) -> OverrideView:
    """Set a quarantine override; the newest one counts.

    It is stored also while quarantining is off, and counts once that is on. Raises
    NotFound(test_not_found), Invalid(reason_required), Malformed(invalid_field).
    """
    now = runtime.clock.now()
    if request.override is not Override.UNSPECIFIED:
        audit_log.require_reason(request.reason, f"why the test is {request.override.value}")
    said = replace(request, expires_at=_end(request, now))
    row = audit_log.allowed(
        actor, repository.org_id, "test.set_override", f"test/{request.test_id}", now
    )
    row = replace(row, reason=request.reason or "")
    return await runtime.store.run(_put, runtime, repository, said, row)


def _end(request: OverrideRequest, now: datetime) -> datetime | None:
    """Return when the override expires; None: never, or it is removed."""
    if request.override is Override.UNSPECIFIED:
        return None
    if request.expires_at is None:
        return now + ALWAYS_FOR if request.override is Override.ALWAYS_QUARANTINE else None
    if not now < request.expires_at <= now + EXPIRES_WITHIN:
        message = f"must lie ahead, at most {EXPIRES_WITHIN.days} days"
        fault = FieldError("/expires_at", "range", message)
        raise Malformed(f"/expires_at {message}.", errors=(fault,))
    return request.expires_at


def _put(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    request: OverrideRequest,
    row: AuditEntry,
) -> OverrideView:
    access.recheck(session, row.actor, row.at)
    # One override at a time: each closes the one before.
    test_cases.lock(session, repository.id)
    case = records.find_case(session, repository, request.test_id)
    said = StoredOverride(
        no=case.no,
        override=request.override,
        reason=request.reason or "",
        at=row.at,
        actor_kind=row.actor.kind,
        actor_login=row.actor.login,
        expires_at=request.expires_at,
    )
    before = quarantine.override_of(session, repository.id, case.no)
    _change(session, runtime, repository, before, said)
    changed = {"before": _words(before), "after": _words(said)}
    audit.append(session, replace(row, subject=f"test/{case.id}", data=changed))
    context = records.context_of(session, runtime, repository, row.at)
    (test,) = records.described(session, context, [case.no])
    return OverrideView(case.id, request.override, request.expires_at, test.quarantined)


def _change(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    before: StoredOverride | None,
    said: StoredOverride,
) -> None:
    """Store an override, and notify endpoints unless nothing has changed."""
    previous = Override.UNSPECIFIED if before is None else before.override
    if said.override is Override.UNSPECIFIED and before is None:
        return
    quarantine.put_override(session, Place(repository.org_id, repository.id), said)
    context = records.context_of(session, runtime, repository, said.at)
    messages.tell_override(session, runtime, context, said, previous)


async def expire(runtime: Runtime) -> None:
    """Remove every expired override; notify endpoints and append to the audit log."""
    now = runtime.clock.now()
    row = audit_log.allowed(SYSTEM, None, "test.expire_override", "", now)
    while await runtime.store.run(_expire, runtime, row):
        pass


def _expire(session: Tx, runtime: Runtime, row: AuditEntry) -> bool:
    """Remove as many as fit in a transaction; return whether there were any."""
    expired = quarantine.expired(session, row.at)
    for place, before in expired:
        test_cases.lock(session, place.repository_id)
        if quarantine.override_of(session, place.repository_id, before.no) != before:
            # It was replaced meanwhile.
            continue
        repository = stored_access.repository(session, place.repository_id)
        said = StoredOverride(
            before.no, Override.UNSPECIFIED, EXPIRED, row.at, SYSTEM.kind, SYSTEM.login
        )
        _change(session, runtime, repository, before, said)
        case = listings.listed_cases(session, place.repository_id, [before.no])[0]
        deed = replace(
            row,
            org_id=repository.org_id,
            subject=f"test/{case.id}",
            reason=EXPIRED,
            data={"before": _words(before), "after": _words(said)},
        )
        audit.append(session, deed)
    return bool(expired)


def _words(said: StoredOverride | None) -> dict[str, str | None]:
    """Return an override as the audit log has it."""
    if said is None:
        return {"override": Override.UNSPECIFIED.value, "expires_at": None}
    expires_at = None if said.expires_at is None else said.expires_at.isoformat()
    return {"override": said.override.value, "expires_at": expires_at}
