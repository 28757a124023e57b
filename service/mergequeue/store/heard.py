"""Commands that were answered, so that each is answered once however it arrives."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.tables_deliveries import HeardCommandRow

KEPT = timedelta(days=14)
"""Longer than any sweep looks back, and than a provider sends a delivery again."""

heard = HeardCommandRow.__table__

NOTE = upsert(heard).on_conflict_do_nothing()
_OF_REPOSITORY = heard.c.repository_id == bindparam("of_repository")
SELECT_HEARD = select(heard.c.source_id).where(
    _OF_REPOSITORY,
    heard.c.source == bindparam("of_source"),
    heard.c.source_id.in_(bindparam("ids", expanding=True)),
)
SELECT_LATER = (
    select(heard.c.source_id)
    .where(
        _OF_REPOSITORY,
        heard.c.topic == bindparam("of_topic"),
        heard.c.said_at > bindparam("after"),
    )
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class HeardCommand:
    """A command by its origin; `topic` is what it changes, empty if it changes nothing."""

    repository_id: int
    org_id: int
    source: str
    source_id: str
    topic: str
    said_at: datetime


def note(session: Connection, command: HeardCommand, at: datetime) -> None:
    """Keep that the command was answered; repeating it changes nothing."""
    session.execute(
        NOTE,
        {
            "repository_id": command.repository_id,
            "source": command.source,
            "source_id": command.source_id,
            "org_id": command.org_id,
            "topic": command.topic,
            "said_at": command.said_at,
            "heard_at": at,
        },
    )


def among(
    session: Connection, repository_id: int, source: str, ids: Sequence[str]
) -> frozenset[str]:
    """Return which of these comments were answered."""
    asked = {"of_repository": repository_id, "of_source": source, "ids": ids}
    return frozenset(session.execute(SELECT_HEARD, asked).scalars())


def is_overtaken(session: Connection, command: HeardCommand) -> bool:
    """Return whether a command said later has already changed the same thing."""
    if not command.topic:
        return False
    asked = {
        "of_repository": command.repository_id,
        "of_topic": command.topic,
        "after": command.said_at,
    }
    return session.execute(SELECT_LATER, asked).first() is not None
