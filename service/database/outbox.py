"""Effects on the outside world, stored before they happen.

`ready → sent → done | failed | unknown`; `sent` is committed before the request leaves, and
only a read-back settles `unknown`. Control effects keep their order within a run, and landings
within a queue; a notice replaces older notices with the same supersede key.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import BindParameter, Connection, bindparam, case, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError

from service.database.codec import UnionCodec
from service.database.tables_deliveries import OutboxRow
from service.database.tables_tenants import RepositoryRow
from service.database.types import Utc
from service.database.wakeups import Wakeups
from service.errors import InvariantBroken
from service.provider.labels import LabelRemoval
from service.provider.values import Reaction, Reply


class OutboxState(StrEnum):
    """The states of an effect (docs/design/transactions.md 5)."""

    READY = "ready"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SUPERSEDED = "superseded"


class Lane(StrEnum):
    """Lanes of effects, each with places of its own (docs/design/transactions.md 5).

    Landings and other control effects of a run are performed in order, notices are best effort.
    Evidence is questions about failed runs. Reports are those of CI for which a queue waits:
    reading an archive may take long, and must not delay a question. Collect is all others of CI.
    """

    LANDING = "landing"
    CONTROL = "control"
    EVIDENCE = "evidence"
    REPORTS = "reports"
    NOTICE = "notice"
    COLLECT = "collect"


IN_ORDER = (Lane.LANDING, Lane.CONTROL)
REPLACED = (Lane.EVIDENCE, Lane.NOTICE)
"""Lanes in which a newer effect replaces an older one with the same supersede key."""
TELLING = (Lane.NOTICE, Lane.COLLECT)
"""Lanes whose effects write texts: one that is carried out late would double or replace another."""
UNDER_WAY_MAX = timedelta(seconds=63)
"""So long after its connection was cut a provider may carry out a call."""
ACTING = (*IN_ORDER, *REPLACED, Lane.REPORTS)
"""Lanes for which queues and people wait, in the order of their claims."""

TOPICS: Mapping[Lane, str] = {
    Lane.LANDING: "outbox/landing",
    Lane.CONTROL: "outbox/control",
    Lane.EVIDENCE: "outbox/evidence",
    Lane.REPORTS: "outbox/reports",
    Lane.NOTICE: "outbox/notice",
    Lane.COLLECT: "outbox/collect",
}
"""Topics that wake the flow of each lane when effects were stored."""

ENDS: Mapping[Lane, str] = {
    lane: "outbox/in-order/ends" if lane in IN_ORDER else f"{topic}/ends"
    for lane, topic in TOPICS.items()
}
"""Topics of the ends of effects; lanes whose effects wait for each other share one."""

LAND = "land"
"""The kind of effect of which a queue performs one at a time."""

NOTE_LENGTH_MAX = 500
ASKED_AT_ONCE = 1000

EFFECT: UnionCodec[object] = UnionCodec(Reply | Reaction | LabelRemoval)
"""All effects; the store of each capability adds its own when its modules are imported."""


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """An effect to perform. `key` names it for ever; `kind` is the name of its performer.

    It replaces an open notice with the same `supersede_key`; one that `yields` is not stored
    while such a notice waits, because that one will contain everything new.
    """

    lane: Lane
    key: str
    kind: str
    effect: object
    next_at: datetime
    run: str | None = None
    supersede_key: str | None = None
    yields: bool = False


@dataclass(frozen=True, slots=True)
class ClaimedEffect:
    """A stored effect; `attempts` counts how often it was sent before this claim."""

    id: int
    repository_id: int
    queue_id: int | None
    lane: Lane
    key: str
    run: str | None
    kind: str
    effect: object
    state: OutboxState
    attempts: int


outbox = OutboxRow.__table__
repositories = RepositoryRow.__table__
earlier = outbox.alias("earlier")

_ID = outbox.c.id == bindparam("of_id")
_IS_OPEN = outbox.c.is_open.is_(True)
_EARLIER_OPEN = earlier.c.is_open.is_(True) & (earlier.c.id < outbox.c.id)
# An open effect that is not being sent is ready, or unknown and must be read back.
_WAITS = _IS_OPEN & (outbox.c.state != OutboxState.SENT.value)
_IS_DUE = _WAITS & (outbox.c.next_at <= bindparam("now"))
_IS_CONTROL = outbox.c.lane.in_(IN_ORDER) & earlier.c.lane.in_(IN_ORDER)
_IS_REPLACED = outbox.c.lane.in_(REPLACED)

# What goes first: any effect of the same run, a landing of the same queue, an effect with the
# same supersede key that is being sent.
_RUN_IS_BUSY = select(earlier.c.id).where(earlier.c.run == outbox.c.run, _IS_CONTROL, _EARLIER_OPEN)
_QUEUE_IS_LANDING = select(earlier.c.id).where(
    outbox.c.kind == LAND,
    earlier.c.kind == LAND,
    earlier.c.queue_id == outbox.c.queue_id,
    _IS_CONTROL,
    _EARLIER_OPEN,
)
_SPOT_IS_BUSY = select(earlier.c.id).where(
    earlier.c.supersede_key == outbox.c.supersede_key, _IS_REPLACED, _EARLIER_OPEN
)
_MAY_GO = ~_RUN_IS_BUSY.exists() & ~_QUEUE_IS_LANDING.exists() & ~_SPOT_IS_BUSY.exists()

_NEW = dict[str, object](
    org_id=select(repositories.c.org_id)
    .where(repositories.c.id == bindparam("of_repository"))
    .scalar_subquery(),
    repository_id=bindparam("of_repository"),
    state=OutboxState.READY.value,
    is_open=True,
    attempts=0,
    **{
        name: bindparam(name)
        for name in (
            "queue_id",
            "epoch",
            "lane",
            "idem_key",
            "supersede_key",
            "run",
            "kind",
            "effect_type",
            "effect",
            "next_at",
        )
    },
)
INSERT = insert(outbox).values(_NEW)
INSERT_ONCE = upsert(outbox).values(_NEW).on_conflict_do_nothing(index_elements=["idem_key"])
SUPERSEDE = (
    update(outbox)
    .where(
        outbox.c.supersede_key == bindparam("of_key"),
        _IS_OPEN,
        # An unknown one may have been written: it is read back before the newer one is sent.
        outbox.c.state == OutboxState.READY.value,
    )
    .values(state=OutboxState.SUPERSEDED.value, is_open=False)
)
_SPOTS: BindParameter[str] = bindparam("of_spots", expanding=True)
SELECT_WAITING = select(outbox.c.supersede_key).where(
    outbox.c.supersede_key.in_(_SPOTS), _IS_OPEN, outbox.c.state == OutboxState.READY.value
)
SELECT_DUE = (
    select(
        outbox.c.id,
        outbox.c.repository_id,
        outbox.c.queue_id,
        outbox.c.lane,
        outbox.c.idem_key,
        outbox.c.run,
        outbox.c.kind,
        outbox.c.effect_type,
        outbox.c.effect,
        outbox.c.state,
        outbox.c.attempts,
    )
    .where(outbox.c.lane == bindparam("of_lane"), _IS_DUE, _MAY_GO)
    .limit(bindparam("at_most"))
)
SELECT_CONTROL = SELECT_DUE.order_by(outbox.c.id)
SELECT_OTHERS = SELECT_DUE.order_by(outbox.c.next_at, outbox.c.id)
_LANES: BindParameter[str] = bindparam("of_lanes", expanding=True)
SELECT_NEXT_DUE = select(func.min(outbox.c.next_at, type_=Utc)).where(
    outbox.c.lane.in_(_LANES), _WAITS, _MAY_GO
)
SELECT_BEHIND = select(
    select(outbox.c.id).where(outbox.c.lane.in_(_LANES), _WAITS, ~_MAY_GO).exists()
)
_KEYS: BindParameter[str] = bindparam("of_keys", expanding=True)
SELECT_KNOWN = select(outbox.c.idem_key).where(outbox.c.idem_key.in_(_KEYS))
_IDS: BindParameter[int] = bindparam("ids", expanding=True)
MARK_SENT = (
    update(outbox)
    .where(outbox.c.id.in_(_IDS), _WAITS)
    .values(
        state=OutboxState.SENT.value,
        attempts=outbox.c.attempts + 1,
        sent_at=bindparam("now"),
        claimed_by=bindparam("by"),
    )
    .returning(outbox.c.id)
)
CLOSE = (
    update(outbox)
    .where(outbox.c.id.in_(_IDS), _IS_OPEN)
    .values(state=bindparam("to"), is_open=False, note=bindparam("why"))
)
# A settlement is repeated if its response was lost: by then another claim may have sent it.
_IS_MINE = (outbox.c.state == OutboxState.SENT.value) & (
    outbox.c.attempts == bindparam("of_attempt")
)
REOPEN = (
    update(outbox)
    .where(_ID, _IS_OPEN, _IS_MINE)
    .values(
        state=bindparam("to"),
        next_at=bindparam("due"),
        note=bindparam("why"),
    )
)

_LIVING: BindParameter[str] = bindparam("living", expanding=True)
REOPEN_SENT = (
    update(outbox)
    .where(
        _IS_OPEN,
        outbox.c.state == OutboxState.SENT.value,
        (outbox.c.claimed_by.is_(None)) | (outbox.c.claimed_by.not_in(_LIVING)),
    )
    .values(
        state=OutboxState.UNKNOWN.value,
        next_at=case(
            (outbox.c.lane.in_(TELLING), bindparam("later", type_=Utc)), else_=outbox.c.next_at
        ),
    )
)

_OWNED: BindParameter[int] = bindparam("owned", expanding=True)
REOPEN_UNOWNED = (
    update(outbox)
    .where(
        _IS_OPEN,
        outbox.c.state == OutboxState.SENT.value,
        outbox.c.lane.in_(_LANES),
        outbox.c.claimed_by == bindparam("by"),
        outbox.c.id.not_in(_OWNED),
    )
    .values(state=OutboxState.UNKNOWN.value, next_at=bindparam("due"))
)


def append(
    session: Connection,
    repository_id: int,
    queue_id: int | None,
    epoch: int,
    items: Sequence[OutboxItem],
) -> None:
    """Store effects, in order, in the transaction that decides them.

    Skips an effect outside the control lane if its key exists, because the request that it answers
    may be processed twice. Raises InvariantBroken(I32) when a control key was used before, because
    a control effect happens once.
    """
    items = _without_yielding(session, items)
    replaced = {each.supersede_key for each in items if each.supersede_key is not None}
    if replaced:
        session.execute(SUPERSEDE, [{"of_key": key} for key in sorted(replaced)])
    newest = {each.supersede_key: each for each in items}
    control: list[dict[str, object]] = []
    others: list[dict[str, object]] = []
    for each in items:
        if each.supersede_key is not None and newest[each.supersede_key] is not each:
            continue
        row = _row(each) | {
            "of_repository": repository_id,
            "queue_id": queue_id,
            "epoch": epoch,
        }
        (control if each.lane in IN_ORDER else others).append(row)
    if others:
        session.execute(INSERT_ONCE, others)
    if not control:
        return
    try:
        session.execute(INSERT, control)
    except IntegrityError as twice:
        keys = ", ".join(str(row["idem_key"]) for row in control)
        raise InvariantBroken("I32", f"an effect was requested twice among {keys}") from twice


def _without_yielding(session: Connection, items: Sequence[OutboxItem]) -> list[OutboxItem]:
    """Return the items without those that yield to a waiting notice or to one of the others."""
    yielding = {each.supersede_key for each in items if each.yields and each.supersede_key}
    if not yielding:
        return list(items)
    busy = {each.supersede_key for each in items if not each.yields}
    keys = sorted(yielding - busy)
    for first in range(0, len(keys), ASKED_AT_ONCE):
        spots = {"of_spots": keys[first : first + ASKED_AT_ONCE]}
        busy.update(session.execute(SELECT_WAITING, spots).scalars())
    return [each for each in items if not (each.yields and each.supersede_key in busy)]


def _row(item: OutboxItem) -> dict[str, object]:
    effect_type, effect = EFFECT.encode(item.effect)
    return {
        "lane": item.lane.value,
        "idem_key": item.key,
        "supersede_key": item.supersede_key,
        "run": item.run,
        "kind": item.kind,
        "effect_type": effect_type,
        "effect": effect,
        "next_at": item.next_at,
    }


def wake(wakeups: Wakeups, lanes: Iterable[Lane] = ACTING) -> None:
    """Wake the flows of these lanes, after effects for them were stored."""
    for topic in sorted({TOPICS[lane] for lane in lanes}):
        wakeups.wake(topic)


def claim(
    session: Connection, now: datetime, limit: int, lanes: Sequence[Lane] = ACTING
) -> tuple[ClaimedEffect, ...]:
    """Return due effects of the lanes: control effects in order, others longest due first.

    At most `limit`, and only the oldest open control effect of a run, the oldest landing of a
    queue, and the oldest notice of a supersede key. An `unknown` effect must be read back first.
    The caller marks each one as sent in the same transaction, so that no other process gets it.
    """
    found: list[ClaimedEffect] = []
    for lane in lanes:
        due = {"now": now, "of_lane": lane.value, "at_most": limit - len(found)}
        question = SELECT_CONTROL if lane in IN_ORDER else SELECT_OTHERS
        found += [
            ClaimedEffect(
                id=row.id,
                repository_id=row.repository_id,
                queue_id=row.queue_id,
                lane=lane,
                key=row.idem_key,
                run=row.run,
                kind=row.kind,
                effect=EFFECT.decode(row.effect_type, row.effect),
                state=OutboxState(row.state),
                attempts=row.attempts,
            )
            for row in session.execute(question, due)
        ]
    return tuple(found)


def stored_keys(session: Connection, keys: Iterable[str]) -> frozenset[str]:
    """Return those of the keys that stored effects have."""
    sought = sorted(set(keys))
    stored: set[str] = set()
    for first in range(0, len(sought), ASKED_AT_ONCE):
        batch = {"of_keys": sought[first : first + ASKED_AT_ONCE]}
        stored.update(session.execute(SELECT_KNOWN, batch).scalars())
    return frozenset(stored)


def next_due(session: Connection, lanes: Sequence[Lane] = ACTING) -> datetime | None:
    """Return when the next effect of the lanes that may go is due; None if none waits."""
    names = {"of_lanes": [lane.value for lane in lanes]}
    due: datetime | None = session.execute(SELECT_NEXT_DUE, names).scalar_one()
    return due


def is_behind(session: Connection, lanes: Sequence[Lane]) -> bool:
    """Return whether an effect of the lanes waits for the end of another effect."""
    found: bool = session.execute(
        SELECT_BEHIND, {"of_lanes": [lane.value for lane in lanes]}
    ).scalar_one()
    return found


def mark_sent(
    session: Connection, by: str, row_ids: Sequence[int], now: datetime
) -> frozenset[int]:
    """Mark effects as sent before `by` sends them; return those that were ready or unknown."""
    if not row_ids:
        return frozenset()
    marked = session.execute(MARK_SENT, {"ids": list(row_ids), "by": by, "now": now})
    return frozenset(marked.scalars())


def settle(
    session: Connection, row_ids: Collection[int], state: OutboxState, note: str = ""
) -> None:
    """End effects as DONE, FAILED or SUPERSEDED; an ended one stays as it is."""
    ended = {"ids": list(row_ids), "to": state.value, "why": note[:NOTE_LENGTH_MAX]}
    session.execute(CLOSE, ended)


def retry(session: Connection, row: ClaimedEffect, next_at: datetime, error: str) -> None:
    """Make a claimed effect, which certainly did not happen, ready again at `next_at`.

    Skips a row that was settled since, or sent by a later claim.
    """
    _reopen(session, row, OutboxState.READY, next_at, error)


def mark_unknown(session: Connection, row: ClaimedEffect, next_at: datetime, error: str) -> None:
    """Have a claimed effect, which may have happened, read back from `next_at` on.

    Skips a row that was settled since, or sent by a later claim.
    """
    _reopen(session, row, OutboxState.UNKNOWN, next_at, error)


def _reopen(
    session: Connection, row: ClaimedEffect, state: OutboxState, next_at: datetime, error: str
) -> None:
    values = {"to": state.value, "due": next_at, "why": error[:NOTE_LENGTH_MAX]}
    session.execute(REOPEN, {"of_id": row.id, "of_attempt": row.attempts + 1, **values})


def reopen_unowned(
    session: Connection, by: str, lanes: Sequence[Lane], owned: Collection[int], due: datetime
) -> int:
    """Mark what `by` sent and none of its tasks owns as unknown; return how many.

    `owned` are the ids of rows that its tasks own. Nothing may be claimed for the lanes by the
    same process meanwhile.
    """
    told = {"by": by, "of_lanes": [lane.value for lane in lanes], "owned": list(owned), "due": due}
    return session.execute(REOPEN_UNOWNED, told).rowcount


def reopen_sent(session: Connection, living: Sequence[str], now: datetime) -> int:
    """Make unknown what somebody sent who is not among the living, and return how many.

    Only a read-back settles it then (docs/design/transactions.md 6).
    """
    told = {"living": living, "later": now + UNDER_WAY_MAX}
    return session.execute(REOPEN_SENT, told).rowcount
