"""Flags: the health of a test as a person states it, which wins over what the detector finds."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from service.accounts import access, audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.detector import health
from service.testhealth.operations import judge, messages, records, ticket_issues
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.store import cases as test_cases
from service.testhealth.store import listings, states
from service.testhealth.store.cases import Place
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.states import CaseState, ChangeKind, StateChange
from service.vocabulary import Actor, Flag, Health

REASON_MAX = 300
"""Characters of a status's reason."""

FLAGGED = {Flag.FLAKY: Health.FLAKY, Flag.BROKEN: Health.BROKEN}


@dataclass(frozen=True, slots=True)
class FlagRequest:
    """A flag to set on a test; NONE removes it."""

    test_id: str
    flag: Flag
    reason: str | None = None


async def put(
    runtime: Runtime, repository: RepositoryRecord, request: FlagRequest, actor: Actor
) -> ListedCase:
    """Flag a test; return the test as it is then.

    Raises NotFound(test_not_found), Invalid(reason_required).
    """
    if request.flag is not Flag.NONE:
        audit_log.require_reason(request.reason, f"why the test is {request.flag.value}")
    now = runtime.clock.now()
    row = audit_log.allowed(actor, repository.org_id, "test.flag", f"test/{request.test_id}", now)
    row = replace(row, reason=request.reason or "")
    test, _ = await judge.run_serialized(
        runtime, repository.id, _put, runtime, repository, request, row
    )
    return test


def _put(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    request: FlagRequest,
    row: AuditEntry,
) -> tuple[ListedCase, CachedIndex | None]:
    access.recheck(session, row.actor, row.at)
    context = records.context_of(session, runtime, repository, row.at)
    case = records.find_case(session, repository, request.test_id)
    # An upload that is judged meanwhile would write what it has read before.
    test_cases.lock(session, repository.id)
    before, judged, kept = _state(session, context, case), None, None
    if request.flag is Flag.NONE and before.flag is not Flag.NONE:
        judged, kept = _by_evidence(RepositoryTests(session, runtime, context), case.no, row)
        # Judging may have written down what it concluded from evidence that is too old now.
        before = _state(session, context, case)
    after = _flagged(before, request, row, judged)
    place = Place(repository.org_id, repository.id)
    states.put(session, place, after)
    changed = {"before": before.flag.value, "after": after.flag.value}
    audit.append(session, replace(row, subject=f"test/{case.id}", data=changed))
    test = records.described(session, context, [case.no])[0]
    if after != before:
        states.note(session, place, _change(before, after, row))
    if after.value is not before.value:
        messages.tell_status(session, runtime, context, after, before.value)
        ticket_issues.note_status(session, runtime, context, case.no)
    return test, kept


class _Judged(NamedTuple):
    """The health of a test by its evidence."""

    value: Health
    reason: str


def _flagged(
    before: CaseState, request: FlagRequest, row: AuditEntry, judged: _Judged | None
) -> CaseState:
    """Return the state with the flag, or as judged if the flag is removed."""
    if request.flag is Flag.NONE:
        value, reason = judged or (before.value, before.reason)
        said = replace(before, flag=Flag.NONE, flag_reason="", flagged_by="", flagged_at=None)
    else:
        value = FLAGGED[request.flag]
        reason = f"Flagged {value.value} by {row.actor.login}: {request.reason}"[:REASON_MAX]
        said = replace(
            before,
            flag=request.flag,
            flag_reason=request.reason or "",
            flagged_by=row.actor.login,
            flagged_at=row.at,
        )
    return replace(said, value=value, reason=reason, since=_since(before, value, row.at))


def _by_evidence(tests: RepositoryTests, no: int, row: AuditEntry) -> tuple[_Judged, CachedIndex]:
    """Return the health of a test without its flag, and the index to cache."""
    kept, evidence = judge.evidence_now(tests, [no])
    own_evidence, scale = evidence.get(no), kept.index.scale
    if own_evidence is None or scale is None:
        said = _reason_of_unjudged(tests.session, tests.context, no)
        return _Judged(Health.HEALTHY, said), kept
    taken_back = health.Flag(row.at, Health.HEALTHY, row.actor.login)
    judged = health.judge(replace(own_evidence, flags=(*own_evidence.flags, taken_back)), scale)
    return _Judged(judged.value, judged.reason), kept


def _state(session: Tx, context: RepositoryContext, case: ListedCase) -> CaseState:
    """Return the state of a test, judged or not."""
    stored = states.state(session, context.repository.id, case.no)
    if stored is not None:
        return stored
    said = _reason_of_unjudged(session, context, case.no)
    return CaseState(case.no, case.status, said, case.since)


def _reason_of_unjudged(session: Tx, context: RepositoryContext, no: int) -> str:
    cases = listings.listed_cases(session, context.repository.id, [no])
    return records.reasons_of_unjudged(session, context, cases)[no]


def _since(before: CaseState, value: Health, now: datetime) -> datetime:
    """Return since when the value holds: a new reason alone does not change the time."""
    return before.since if value is before.value else now


def _change(before: CaseState, after: CaseState, row: AuditEntry) -> StateChange:
    return StateChange(
        no=after.no,
        at=after.since,
        written_at=row.at,
        previous=before.value,
        value=after.value,
        reason=after.reason,
        actor_kind=row.actor.kind,
        actor_login=row.actor.login,
        kind=ChangeKind.UNFLAGGED if after.flag is Flag.NONE else ChangeKind.FLAGGED,
    )
