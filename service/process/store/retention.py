"""What is forgotten, and when; live and open rows and landings never are."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    or_,
    select,
)

from service.accounts.store import repeats
from service.accounts.store.tables_access import ApiTokenRow
from service.accounts.store.tables_repeats import IdempotencyRow
from service.database.tables_deliveries import (
    HeardCommandRow,
    InboxBodyRow,
    InboxRow,
    JournalRow,
    OutboxRow,
)
from service.mergequeue.store import answered_commands, target_sets
from service.mergequeue.store.rows import checks, entries, members, runs
from service.mergequeue.store.tables_queues import ImpactedTargetsRow, RecentFactRow
from service.notifications.store.tables_notifications import AttemptRow, NotificationRow
from service.testhealth.store import retention

BATCH = 1000
"""Rows one transaction deletes at most (RELIABILITY.md 4.1)."""

inbox = InboxRow.__table__
bodies = InboxBodyRow.__table__
outbox = OutboxRow.__table__
journal = JournalRow.__table__
commands = HeardCommandRow.__table__
attempts = AttemptRow.__table__
messages = NotificationRow.__table__
uploads = ImpactedTargetsRow.__table__
answers = IdempotencyRow.__table__
recent = RecentFactRow.__table__
tokens = ApiTokenRow.__table__


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """How long things are kept (ARCHITECTURE.md 6): `HEADGATE_RETAIN_…_DAYS`."""

    inbox_bodies: timedelta = timedelta(days=7)
    inbox: timedelta = timedelta(days=30)
    outbox: timedelta = timedelta(days=30)
    journal: timedelta = timedelta(days=400)
    history: timedelta = timedelta(days=400)
    recent_facts: timedelta = timedelta(hours=1)
    evidence: timedelta = timedelta(days=45)
    impact: timedelta = timedelta(days=8)


def prune(session: Connection, now: datetime, limits: RetentionLimits) -> int:
    """Delete at most 1,000 rows of the first table that has some to delete; how many.

    To be called again, each time in a transaction of its own, until nothing is left.
    """
    for forget, age in (
        (_forget_bodies, limits.inbox_bodies),
        (_forget_deliveries, limits.inbox),
        (_forget_effects, limits.outbox),
        (_forget_attempts, limits.outbox),
        (_forget_messages, limits.outbox),
        (_forget_events, limits.journal),
        (_forget_runs, limits.history),
        (_forget_entries, limits.history),
        (_forget_uploads, limits.history),
        (_forget_target_sets, timedelta()),
        (_forget_tokens, limits.history),
        (_forget_repeats, repeats.KEPT),
        (_forget_commands, answered_commands.KEPT),
        (_forget_recent_facts, limits.recent_facts),
        *((forget, limits.evidence) for forget in retention.EVIDENCE),
        (retention.forget_impacts, limits.impact),
        *((forget, limits.history) for forget in retention.HISTORY),
    ):
        count = forget(session, now - age)
        if count:
            return count
    return 0


def _forget_bodies(session: Connection, before: datetime) -> int:
    old = (
        select(bodies.c.inbox_id)
        .join(inbox, inbox.c.id == bodies.c.inbox_id)
        .where(inbox.c.received_at < before, inbox.c.is_open.is_(False))
    )
    return _forget(session, bodies, "inbox_id", old)


def _forget_deliveries(session: Connection, before: datetime) -> int:
    old = (
        select(inbox.c.id)
        .outerjoin(bodies, bodies.c.inbox_id == inbox.c.id)
        .where(
            inbox.c.received_at < before,
            inbox.c.is_open.is_(False),
            bodies.c.inbox_id.is_(None),
        )
    )
    return _forget(session, inbox, "id", old)


def _forget_effects(session: Connection, before: datetime) -> int:
    old = select(outbox.c.id).where(outbox.c.next_at < before, outbox.c.is_open.is_(False))
    return _forget(session, outbox, "id", old)


def _forget_attempts(session: Connection, before: datetime) -> int:
    old = select(attempts.c.id).where(attempts.c.made_at < before, attempts.c.is_open.is_(False))
    return _forget(session, attempts, "id", old)


def _forget_messages(session: Connection, before: datetime) -> int:
    is_left = select(attempts.c.id).where(attempts.c.message == messages.c.id).exists()
    return _forget(
        session, messages, "id", select(messages.c.id).where(messages.c.at < before, ~is_left)
    )


def _forget_commands(session: Connection, before: datetime) -> int:
    old = select(commands.c.heard_at).where(commands.c.heard_at < before)
    return _forget(session, commands, "heard_at", old)


def _forget_events(session: Connection, before: datetime) -> int:
    return _forget(session, journal, "id", select(journal.c.id).where(journal.c.at < before))


def _forget_runs(session: Connection, before: datetime) -> int:
    # Only the oldest rows are looked at, so that a call costs the same in a large table.
    oldest = (
        select(runs.c.id, runs.c.live, runs.c.created_at).order_by(runs.c.no).limit(2 * BATCH)
    ).subquery()
    old = (
        select(oldest.c.id)
        .where(oldest.c.live.is_(False), oldest.c.created_at < before)
        .limit(BATCH // 100)
    )
    ids = session.execute(old).scalars().all()
    if ids:
        session.execute(delete(checks).where(checks.c.run_id.in_(ids)))
        session.execute(delete(members).where(members.c.run_id.in_(ids)))
        session.execute(delete(runs).where(runs.c.id.in_(ids)))
    return len(ids)


def _forget_entries(session: Connection, before: datetime) -> int:
    oldest = (
        select(entries.c.no, entries.c.live, entries.c.state_since)
        .order_by(entries.c.no)
        .limit(2 * BATCH)
    ).subquery()
    old = select(oldest.c.no).where(oldest.c.live.is_(False), oldest.c.state_since < before)
    return _forget(session, entries, "no", old)


def _forget_uploads(session: Connection, before: datetime) -> int:
    return _forget_keyed(session, uploads, uploads.c.at < before)


def _forget_target_sets(session: Connection, _: datetime) -> int:
    return target_sets.forget_unused(session, BATCH)


def _forget_tokens(session: Connection, before: datetime) -> int:
    """Those that ended so long ago; what they did stays in the audit log under their ids."""
    is_over = or_(tokens.c.revoked_at < before, tokens.c.expires_at < before)
    return _forget(session, tokens, "id", select(tokens.c.id).where(is_over))


def _forget_repeats(session: Connection, before: datetime) -> int:
    return _forget_keyed(session, answers, answers.c.at < before)


def _forget_keyed(session: Connection, table: Table, is_old: ColumnElement[bool]) -> int:
    """Of a table whose key has several columns."""
    key = table.primary_key.columns
    found = session.execute(select(*key).where(is_old).limit(BATCH)).all()
    if found:
        # One by one: SQLite reads the whole table to find a list of keys of several columns.
        is_it = and_(*(column == bindparam(f"of_{column.name}") for column in key))
        named = [f"of_{column.name}" for column in key]
        told = [dict(zip(named, row, strict=True)) for row in found]
        session.execute(delete(table).where(is_it), told)
    return len(found)


def _forget_recent_facts(session: Connection, before: datetime) -> int:
    # As with runs: what was written first is old first, near enough.
    oldest = select(recent.c.id, recent.c.at).order_by(recent.c.id).limit(2 * BATCH).subquery()
    return _forget(session, recent, "id", select(oldest.c.id).where(oldest.c.at < before))


def _forget(session: Connection, table: Table, key: str, old: Select[*tuple[object, ...]]) -> int:
    ids = session.execute(old.limit(BATCH)).scalars().all()
    if not ids:
        return 0
    return session.execute(delete(table).where(table.c[key].in_(ids))).rowcount
