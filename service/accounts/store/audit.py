"""Record who did what, or was denied it: appended in the transaction of the deed, never changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, Row, desc, func, insert, select

from service.accounts.store.tables_access import AuditRow as AuditTable
from service.database.codec import json_object, json_of
from service.vocabulary import Actor, ActorKind, Channel

audit = AuditTable.__table__
INSERT = insert(audit)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One deed. `subject` names the thing (`queue/12`), `decision` is allowed or denied."""

    at: datetime
    org_id: int | None
    actor: Actor
    action: str
    subject: str
    decision: str
    reason: str = ""
    request_id: str = ""
    data: Mapping[str, object] = field(default_factory=dict)


def append(session: Connection, row: AuditRow) -> None:
    """Write one deed down."""
    session.execute(
        INSERT,
        {
            "at": row.at,
            "org_id": row.org_id,
            "actor_kind": row.actor.kind.value,
            "actor_id": row.actor.id,
            "actor_login": row.actor.login,
            "channel": row.actor.channel.value,
            "action": row.action,
            "subject": row.subject,
            "decision": row.decision,
            "reason": row.reason,
            "request_id": row.request_id,
            "data": json_of(row.data),
        },
    )


NEWEST = 2**63 - 1
"""Above the number of every entry."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the log by its number, which grows with time."""

    id: int
    row: AuditRow


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The selection of entries; empty texts select all.

    `actor` is a whole login or name, `action` the beginning of one, `subject` any part of one;
    times are [since, until).
    """

    actor: str = ""
    action: str = ""
    subject: str = ""
    since: datetime | None = None
    until: datetime | None = None


def tail(session: Connection, org_id: int, limit: int) -> tuple[AuditRow, ...]:
    """An organization's newest entries, newest first."""
    return tuple(each.row for each in before(session, (org_id,), AuditFilter(), NEWEST, limit))


def of_deployment(session: Connection, action: str) -> tuple[AuditRow, ...]:
    """Return the entries of an action that belong to no organization, oldest first."""
    statement = (
        select(audit).where(audit.c.org_id.is_(None), audit.c.action == action).order_by(audit.c.id)
    )
    return tuple(_row(row) for row in session.execute(statement))


def before(
    session: Connection, org_ids: Sequence[int] | None, wanted: AuditFilter, no: int, limit: int
) -> tuple[AuditEntry, ...]:
    """Return entries of these organizations before a number, newest first; None: of all or none."""
    statement = select(audit).where(audit.c.id < no).order_by(desc(audit.c.id)).limit(limit)
    if org_ids is not None:
        statement = statement.where(audit.c.org_id.in_(org_ids))
    if wanted.actor:
        statement = statement.where(func.lower(audit.c.actor_login) == wanted.actor.lower())
    if wanted.action:
        statement = statement.where(audit.c.action.startswith(wanted.action, autoescape=True))
    if wanted.subject:
        statement = statement.where(audit.c.subject.contains(wanted.subject, autoescape=True))
    if wanted.since is not None:
        statement = statement.where(audit.c.at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(audit.c.at < wanted.until)
    return tuple(AuditEntry(row.id, _row(row)) for row in session.execute(statement))


def _row(row: Row[*tuple[object, ...]]) -> AuditRow:
    return AuditRow(
        at=row.at,
        org_id=row.org_id,
        actor=Actor(ActorKind(row.actor_kind), row.actor_login, row.actor_id, Channel(row.channel)),
        action=row.action,
        subject=row.subject,
        decision=row.decision,
        reason=row.reason,
        request_id=row.request_id,
        data=json_object(row.data),
    )
