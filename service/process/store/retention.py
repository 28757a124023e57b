"""Decide what is forgotten, and when; live and open rows and landings never are."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    Column,
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
from service.database.types import Utc
from service.mergequeue import early_rules
from service.mergequeue.engine.states import EntryState
from service.mergequeue.store import answered_commands, target_sets
from service.mergequeue.store.notices import notices
from service.mergequeue.store.pull_requests import pull_requests as heads
from service.mergequeue.store.rows import checks, entries, members, queues, runs
from service.mergequeue.store.tables_early import FailedPartRow
from service.mergequeue.store.tables_queues import ImpactedTargetsRow, RecentFactRow
from service.notifications.store.tables_notifications import AttemptRow, NotificationRow
from service.testhealth.store import retention

BATCH = 1000
"""Rows one transaction deletes at most (docs/design/transactions.md 11)."""
ROWS_OF_ENTRY = 10
"""A submission has no more rows that go with it: itself, its notices and its head."""

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
failed_parts = FailedPartRow.__table__
tokens = ApiTokenRow.__table__


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """The times to keep things (docs/design/transactions.md 11)."""

    inbox_bodies: timedelta = timedelta(days=7)
    inbox: timedelta = timedelta(days=30)
    outbox: timedelta = timedelta(days=30)
    journal: timedelta = timedelta(days=400)
    history: timedelta = timedelta(days=400)
    recent_facts: timedelta = timedelta(hours=1)
    evidence: timedelta = timedelta(days=45)
    impact: timedelta = timedelta(days=8)


Forget = Callable[[Connection, datetime], int]
"""Deletes at most 1,000 rows that are older than an instant, and returns how many."""


def prune(session: Connection, now: datetime, limits: RetentionLimits) -> int:
    """Delete at most 1,000 rows of the first table that has old ones; return how many.

    Call it again, each time in a transaction of its own, until it returns 0.
    """
    for forget, age in (
        (_FORGET_BODIES, limits.inbox_bodies),
        (_FORGET_DELIVERIES, limits.inbox),
        (_FORGET_EFFECTS, limits.outbox),
        (_FORGET_ATTEMPTS, limits.outbox),
        (_FORGET_MESSAGES, limits.outbox),
        (_FORGET_EVENTS, limits.journal),
        (_forget_runs, limits.history),
        (_forget_entries, limits.history),
        (FORGET_UPLOADS, limits.history),
        (lambda session, _: target_sets.forget_unused(session, BATCH), timedelta()),
        (_FORGET_TOKENS, limits.history),
        (FORGET_REPEATS, repeats.KEPT),
        (_FORGET_COMMANDS, answered_commands.KEPT),
        (_FORGET_RECENT_FACTS, limits.recent_facts),
        (_FORGET_FAILED_PARTS, early_rules.KEPT),
        *((forget, limits.evidence) for forget in retention.EVIDENCE),
        (retention.forget_impacts, limits.impact),
        *((forget, limits.history) for forget in retention.HISTORY),
    ):
        count = forget(session, now - age)
        if count:
            return count
    return 0


def _single(key: Column[object], *is_old: ColumnElement[bool]) -> Forget:
    """Delete rows by one column."""
    return _selected(key, select(key).where(*is_old))


def _selected(key: Column[object], old: Select[*tuple[object, ...]]) -> Forget:
    def forget(session: Connection, before: datetime) -> int:
        ids = session.execute(old.limit(BATCH), {"before": before}).scalars().all()
        if not ids:
            return 0
        return session.execute(delete(key.table).where(key.in_(ids))).rowcount

    return forget


def _keyed(table: Table, at: Column[datetime]) -> Forget:
    """Delete rows of a table whose key has several columns."""

    def forget(session: Connection, before: datetime) -> int:
        key = table.primary_key.columns
        found = session.execute(select(*key).where(at < before).limit(BATCH)).all()
        if found:
            # One by one: SQLite reads the whole table to find a list of keys of several columns.
            is_it = and_(*(column == bindparam(f"of_{column.name}") for column in key))
            names = [f"of_{column.name}" for column in key]
            rows = [dict(zip(names, row, strict=True)) for row in found]
            session.execute(delete(table).where(is_it), rows)
        return len(found)

    return forget


FORGET_UPLOADS = _keyed(uploads, uploads.c.at)
FORGET_REPEATS = _keyed(answers, answers.c.at)

_BEFORE = bindparam("before", type_=Utc)

_FORGET_BODIES = _selected(
    bodies.c.inbox_id,
    select(bodies.c.inbox_id)
    .join(inbox, inbox.c.id == bodies.c.inbox_id)
    .where(inbox.c.received_at < _BEFORE, inbox.c.is_open.is_(False)),
)
_FORGET_DELIVERIES = _selected(
    inbox.c.id,
    select(inbox.c.id)
    .outerjoin(bodies, bodies.c.inbox_id == inbox.c.id)
    .where(inbox.c.received_at < _BEFORE, inbox.c.is_open.is_(False), bodies.c.inbox_id.is_(None)),
)
_FORGET_EFFECTS = _single(outbox.c.id, outbox.c.next_at < _BEFORE, outbox.c.is_open.is_(False))
_FORGET_ATTEMPTS = _single(
    attempts.c.id, attempts.c.made_at < _BEFORE, attempts.c.is_open.is_(False)
)
_FORGET_MESSAGES = _single(
    messages.c.id,
    messages.c.at < _BEFORE,
    ~select(attempts.c.id).where(attempts.c.message == messages.c.id).exists(),
)
_FORGET_COMMANDS = _single(commands.c.heard_at, commands.c.heard_at < _BEFORE)
_FORGET_EVENTS = _single(journal.c.id, journal.c.at < _BEFORE)
# What they did stays in the audit log under their ids.
_FORGET_TOKENS = _single(
    tokens.c.id, or_(tokens.c.revoked_at < _BEFORE, tokens.c.expires_at < _BEFORE)
)

# Of the next three only the oldest rows are read, so that a call costs the same in a large table.
_entries = (
    select(
        entries.c.no,
        entries.c.id,
        entries.c.queue_id,
        entries.c.pr,
        entries.c.state,
        entries.c.live,
        entries.c.state_since,
    )
    .order_by(entries.c.no)
    .limit(2 * BATCH)
    .subquery()
)
_OLD_ENTRIES = (
    select(_entries.c.no, _entries.c.id, _entries.c.queue_id, _entries.c.pr, _entries.c.state)
    .where(_entries.c.live.is_(False), _entries.c.state_since < _BEFORE)
    .limit(BATCH // ROWS_OF_ENTRY)
)
_IS_PULL = notices.c.pr == bindparam("of_pr")
_DELETE_NOTICES = delete(notices).where(
    notices.c.queue_id == bindparam("of_queue"), _IS_PULL, notices.c.entry == bindparam("of_entry")
)
_repository = select(queues.c.repository_id).where(queues.c.id == bindparam("of_queue"))
# A merged pull request never comes back: no queue of its repository writes to it again.
_DELETE_NOTICES_OF_MERGED = delete(notices).where(
    notices.c.queue_id.in_(
        select(queues.c.id).where(queues.c.repository_id == _repository.scalar_subquery())
    ),
    _IS_PULL,
    notices.c.entry == "",
)
_later = heads.alias("later")
_DELETE_HEAD_OF_MERGED = delete(heads).where(
    heads.c.repository_id == _repository.scalar_subquery(),
    heads.c.number == bindparam("of_pr"),
    # The newest one says how new the database is (docs/design/transactions.md 14).
    or_(
        heads.c.shown_at.is_(None),
        select(_later.c.number)
        .where(
            _later.c.repository_id == heads.c.repository_id,
            or_(
                _later.c.shown_at > heads.c.shown_at,
                (_later.c.shown_at == heads.c.shown_at) & (_later.c.number > heads.c.number),
            ),
        )
        .exists(),
    ),
)


def _forget_entries(session: Connection, before: datetime) -> int:
    """Delete old submissions with what hangs on them; see `forget_texts`."""
    rows = session.execute(_OLD_ENTRIES, {"before": before}).all()
    for row in rows:
        is_merged = row.state == EntryState.MERGED.value
        forget_texts(session, (row.queue_id, row.pr, row.id), is_merged=is_merged)
    if rows:
        session.execute(delete(entries).where(entries.c.no.in_([row.no for row in rows])))
    return len(rows)


def forget_texts(session: Connection, place: tuple[int, int, str], *, is_merged: bool) -> None:
    """Delete the notices of a submission; of a merged pull request all of them, and its head.

    `place`: queue, pull request and submission. The notices of a pull request that may be submitted
    again stay, or a second comment would be written, and so does its head, to which commands are
    bound.
    """
    found = dict(zip(("of_queue", "of_pr", "of_entry"), place, strict=True))
    session.execute(_DELETE_NOTICES, found)
    if is_merged:
        session.execute(_DELETE_NOTICES_OF_MERGED, found)
        session.execute(_DELETE_HEAD_OF_MERGED, found)


_facts = select(recent.c.id, recent.c.at).order_by(recent.c.id).limit(2 * BATCH).subquery()
_FORGET_RECENT_FACTS = _selected(recent.c.id, select(_facts.c.id).where(_facts.c.at < _BEFORE))
_FORGET_FAILED_PARTS = _single(failed_parts.c.no, failed_parts.c.at < _BEFORE)
_runs = select(runs.c.id, runs.c.live, runs.c.created_at).order_by(runs.c.no).limit(2 * BATCH)


def _forget_runs(session: Connection, before: datetime) -> int:
    oldest = _runs.subquery()
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
