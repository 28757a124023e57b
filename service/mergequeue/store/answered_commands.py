"""Commands that were answered, so that each is answered once however it arrives."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.tables_deliveries import HeardCommandRow
from service.provenance import ProviderTime

KEPT = timedelta(days=14)
"""Longer than the time that any sweep covers, and than providers redeliver."""

heard = HeardCommandRow.__table__

NOTE = upsert(heard).on_conflict_do_nothing().returning(heard.c.source_id)
_OF_REPOSITORY = heard.c.repository_id == bindparam("of_repository")
SELECT_ANSWERED = select(heard.c.source_id).where(
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
class AnsweredCommand:
    """A command by its origin; `topic` is what it changes, empty if it changes nothing.

    `said_at` is the provider's time, compared only with that of other commands.
    """

    repository_id: int
    org_id: int
    source: str
    source_id: str
    topic: str
    said_at: ProviderTime | None


def record(session: Connection, command: AnsweredCommand, at: datetime) -> bool:
    """Record that the command was answered; return False, without a change, if it is known."""
    recorded = session.execute(
        NOTE,
        {
            "repository_id": command.repository_id,
            "source": command.source,
            "source_id": command.source_id,
            "org_id": command.org_id,
            # Without a time of the provider it comes neither before nor after another.
            "topic": "" if command.said_at is None else command.topic,
            "said_at": at if command.said_at is None else command.said_at.at,
            "heard_at": at,
        },
    )
    return recorded.scalar_one_or_none() is not None


def answered_among(
    session: Connection, repository_id: int, source: str, ids: Sequence[str]
) -> frozenset[str]:
    """Return which of these comments were answered."""
    binds = {"of_repository": repository_id, "of_source": source, "ids": ids}
    return frozenset(session.execute(SELECT_ANSWERED, binds).scalars())


def is_overtaken(session: Connection, command: AnsweredCommand) -> bool:
    """Return whether a later command has already changed the same thing."""
    if not command.topic or command.said_at is None:
        return False
    binds = {
        "of_repository": command.repository_id,
        "of_topic": command.topic,
        "after": command.said_at.at,
    }
    return session.execute(SELECT_LATER, binds).first() is not None
