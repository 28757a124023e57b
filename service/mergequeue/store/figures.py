"""Metrics of queues, added up as events happen.

Sums are increments, so that several transactions may add to one; they stay when entries, runs
and events go.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.accounts.store.access import SCOPE
from service.accounts.store.tables_access import ApiTokenRow
from service.database.codec import json_object
from service.database.tables_deliveries import JournalRow
from service.mergequeue.engine.outputs import EntryMoved
from service.mergequeue.engine.states import EntryState
from service.mergequeue.store.queues import SELECT_REFS, ref_of, repositories
from service.mergequeue.store.rows import queues
from service.mergequeue.store.tables_queues import FigureRow, RecentFactRow
from service.metrics.facts import Cells, Labels, MetricFact, Sum
from service.metrics.queue_families import LASTING, ROLLING, Kind
from service.vocabulary import QueueRef

HOUR = timedelta(hours=1)
"""A fact counts as recent for this long."""

QUEUES_MAX = 500
"""Queues per statement."""

BETWEEN = "/"
"""Between the values of a fact's labels, which are words of our own and never hold it."""

UNKNOWN = "unknown"
"""The result of a landing whose answer was lost, which no turn hears of."""

figures = FigureRow.__table__
recent = RecentFactRow.__table__
journal = JournalRow.__table__
tokens = ApiTokenRow.__table__

_ADDED = upsert(figures)
ADD = _ADDED.on_conflict_do_update(
    index_elements=[figures.c.queue_id, figures.c.kind, figures.c.labels, figures.c.cell],
    set_={
        "count": figures.c.count + _ADDED.excluded.count,
        "ms": figures.c.ms + _ADDED.excluded.ms,
    },
)
REMEMBER = insert(recent)

_THESE: BindParameter[Sequence[int]] = bindparam("of_queues", expanding=True)
SELECT_EVER = select(
    figures.c.queue_id,
    figures.c.kind,
    figures.c.labels,
    figures.c.cell,
    figures.c.count.label("times"),
    figures.c.ms,
).where(figures.c.queue_id.in_(_THESE))
SELECT_HOUR = (
    select(
        recent.c.queue_id,
        recent.c.kind,
        recent.c.labels,
        recent.c.cell,
        func.count().label("times"),
        func.sum(recent.c.ms).label("ms"),
        func.min(recent.c.at, type_=recent.c.at.type).label("first_at"),
    )
    .where(recent.c.queue_id.in_(_THESE), recent.c.at > bindparam("since"))
    .group_by(recent.c.queue_id, recent.c.kind, recent.c.labels, recent.c.cell)
)
SELECT_MOVES = (
    select(journal.c.at, journal.c.data)
    .where(
        journal.c.queue_id == bindparam("of_queue"),
        journal.c.number == bindparam("of_pr"),
        journal.c.entry == bindparam("of_entry"),
        journal.c.event == EntryMoved.__name__,
    )
    .order_by(journal.c.id)
)
_UNKNOWN = and_(
    figures.c.queue_id == queues.c.id,
    figures.c.kind == Kind.LANDING.value,
    figures.c.labels == UNKNOWN,
    figures.c.cell == 0,
)
SELECT_SHOWN = (
    SELECT_REFS.add_columns(queues.c.version, figures.c.count.label("unknown"))
    .outerjoin(figures, _UNKNOWN)
    .where(repositories.c.org_id == bindparam("of_org"), queues.c.deleted.is_(False))
)
SELECT_EXPIRING = select(tokens.c.repositories).where(
    tokens.c.org_id == bindparam("of_org"),
    tokens.c.revoked_at.is_(None),
    tokens.c.expires_at > bindparam("now"),
    tokens.c.expires_at <= bindparam("until"),
    # One that was rotated ends soon because it has a successor.
    tokens.c.granted_until == tokens.c.expires_at,
)


@dataclass(frozen=True, slots=True)
class Moved:
    """An entry changed its state."""

    at: datetime
    origin: EntryState
    state: EntryState


@dataclass(frozen=True, slots=True)
class Shown:
    """A queue with the version of its figures, which change only with it."""

    ref: QueueRef
    version: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums of one queue; `until` is when the oldest of the hour's facts is too old, None: never."""

    ever: Cells
    hour: Cells
    until: datetime | None


def add(session: Connection, ref: QueueRef, facts: Sequence[MetricFact], at: datetime) -> None:
    """Count facts of a queue, and keep those with hourly figures for an hour."""
    rows = [_row(ref, fact) for fact in facts]
    lasting = [row | {"count": 1} for row in rows if row["kind"] in LASTING]
    if lasting:
        session.execute(ADD, lasting)
    rolling = [row | {"at": at} for row in rows if row["kind"] in ROLLING]
    if rolling:
        session.execute(REMEMBER, rolling)


def _row(ref: QueueRef, fact: MetricFact) -> dict[str, object]:
    return {
        "queue_id": ref.id,
        "org_id": ref.org_id,
        "kind": fact.kind,
        "labels": BETWEEN.join(fact.labels),
        "cell": fact.cell,
        "ms": fact.ms,
    }


def moves(session: Connection, queue_id: int, pr: int, entry_id: str) -> tuple[Moved, ...]:
    """Return every change of state of one submission so far, those of this transaction included."""
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    found = ((row.at, json_object(row.data)) for row in session.execute(SELECT_MOVES, binds))
    return tuple(
        Moved(at, EntryState(str(data["origin"])), EntryState(str(data["state"])))
        for at, data in found
        if data["origin"] != data["state"]
    )


def metered_queues(session: Connection, org_id: int) -> tuple[Shown, ...]:
    """Return every queue of an organization that is not deleted, by host, name and branch."""
    found = [
        Shown(ref_of(row), row.version, row.unknown or 0)
        for row in session.execute(SELECT_SHOWN, {"of_org": org_id})
    ]
    return tuple(
        sorted(found, key=lambda one: (one.ref.repo.host, one.ref.repo.slug, one.ref.branch))
    )


def of_queues(session: Connection, queue_ids: Sequence[int], now: datetime) -> dict[int, Figures]:
    """Return the sums of each of these queues, of all time and of the hour that ends now."""
    ever: dict[int, dict[tuple[str, Labels, int], Sum]] = defaultdict(dict)
    hour: dict[int, dict[tuple[str, Labels, int], Sum]] = defaultdict(dict)
    first: dict[int, datetime] = {}
    for start in range(0, len(queue_ids), QUEUES_MAX):
        binds: dict[str, object] = {"of_queues": queue_ids[start : start + QUEUES_MAX]}
        for row in session.execute(SELECT_EVER, binds):
            ever[row.queue_id][_key(row.kind, row.labels, row.cell)] = Sum(row.times, row.ms)
        for row in session.execute(SELECT_HOUR, binds | {"since": now - HOUR}):
            hour[row.queue_id][_key(row.kind, row.labels, row.cell)] = Sum(row.times, int(row.ms))
            known = first.get(row.queue_id)
            first[row.queue_id] = row.first_at if known is None else min(known, row.first_at)
    return {
        queue_id: Figures(
            ever[queue_id],
            hour[queue_id],
            first[queue_id] + HOUR if queue_id in first else None,
        )
        for queue_id in queue_ids
    }


def _key(kind: str, labels: str, cell: int) -> tuple[str, Labels, int]:
    return kind, tuple(labels.split(BETWEEN)) if labels else (), cell


def expiring(
    session: Connection, org_id: int, now: datetime, until: datetime
) -> tuple[frozenset[int] | None, ...]:
    """Return the repositories of each valid token that ends by then, as granted; None: all."""
    binds = {"of_org": org_id, "now": now, "until": until}
    found = session.execute(SELECT_EXPIRING, binds).scalars()
    return tuple(None if scope is None else SCOPE.decode(scope) for scope in found)
