"""Record who did what, or was denied it: appended in the same transaction, never changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, Row, desc, func, insert, select

from service.accounts.store.tables_access import AuditRow
from service.database.codec import json_object, json_of
from service.vocabulary import Actor, ActorKind, Channel

audit = AuditRow.__table__
INSERT = insert(audit)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action. `subject` names the thing (`queue/12`), `decision` is allowed or denied.

    `id` grows with time; 0 until it is stored.
    """

    at: datetime
    org_id: int | None
    actor: Actor
    action: str
    subject: str
    decision: str
    reason: str = ""
    request_id: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    id: int = field(default=0, compare=False)


def append(session: Connection, entry: AuditEntry) -> None:
    """Append an audit entry."""
    session.execute(
        INSERT,
        {
            "at": entry.at,
            "org_id": entry.org_id,
            "actor_kind": entry.actor.kind.value,
            "actor_id": entry.actor.id,
            "actor_login": entry.actor.login,
            "channel": entry.actor.channel.value,
            "action": entry.action,
            "subject": entry.subject,
            "decision": entry.decision,
            "reason": entry.reason,
            "request_id": entry.request_id,
            "data": json_of(entry.data),
        },
    )


NEWEST = 2**63 - 1
"""Above the number of every entry."""


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


def newest(session: Connection, org_id: int, limit: int) -> tuple[AuditEntry, ...]:
    """Return an organization's newest entries, newest first."""
    return entries_before(session, (org_id,), AuditFilter(), NEWEST, limit)


def of_deployment(session: Connection, *actions: str) -> tuple[AuditEntry, ...]:
    """Return the entries of actions that belong to no organization, oldest first."""
    is_one = audit.c.action.in_(actions)
    statement = select(audit).where(audit.c.org_id.is_(None), is_one).order_by(audit.c.id)
    return tuple(_entry(row) for row in session.execute(statement))


def of_subject(
    session: Connection, org_id: int, action: str, subject: str
) -> tuple[AuditEntry, ...]:
    """Return the entries of an action about one thing of an organization, oldest first."""
    is_meant = (audit.c.action == action) & (audit.c.subject == subject)
    statement = select(audit).where(audit.c.org_id == org_id, is_meant).order_by(audit.c.id)
    return tuple(_entry(row) for row in session.execute(statement))


def entries_before(
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
    return tuple(_entry(row) for row in session.execute(statement))


def _entry(row: Row[*tuple[object, ...]]) -> AuditEntry:
    return AuditEntry(
        at=row.at,
        org_id=row.org_id,
        actor=Actor(ActorKind(row.actor_kind), row.actor_login, row.actor_id, Channel(row.channel)),
        action=row.action,
        subject=row.subject,
        decision=row.decision,
        reason=row.reason,
        request_id=row.request_id,
        data=json_object(row.data),
        id=row.id,
    )
