"""Who did what, or was denied it: appended in the transaction of the deed, never changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, desc, insert, select

from service.accounts.store.tables_access import AuditRow as Row
from service.database.codec import json_object, json_of
from service.vocabulary import Actor, ActorKind, Channel

audit = Row.__table__
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


def tail(session: Connection, org_id: int, limit: int) -> tuple[AuditRow, ...]:
    """An organization's newest entries, newest first."""
    statement = select(audit).where(audit.c.org_id == org_id).order_by(desc(audit.c.id))
    return tuple(
        AuditRow(
            at=row.at,
            org_id=row.org_id,
            actor=Actor(
                ActorKind(row.actor_kind), row.actor_login, row.actor_id, Channel(row.channel)
            ),
            action=row.action,
            subject=row.subject,
            decision=row.decision,
            reason=row.reason,
            request_id=row.request_id,
            data=json_object(row.data),
        )
        for row in session.execute(statement.limit(limit))
    )
