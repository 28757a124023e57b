"""Effects on the outside world, written down before they happen (RELIABILITY.md 4.2).

`ready → sent → done | failed | unknown`; `sent` is committed before the request leaves, and
only a read-back settles `unknown`. Control effects keep their order within a run, landings
within a queue; of notices with one supersede key only the newest counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from service.errors import InvariantBroken
from service.mergequeue.outputs import Action
from service.provider.port import Reaction, Reply
from service.store.codec import UnionCodec
from service.store.records import Lane, OutboxState
from service.store.tables.access import RepositoryRow
from service.store.tables.deliveries import OutboxRow as Row

Effect = Action | Reply | Reaction
"""What may be asked of the world: the engine's actions, and answers to people."""

LAND = "land"
"""The kind of which a queue performs one at a time."""

CLAIM = timedelta(seconds=60)
"""How long an effect belongs to who took it."""

NOTE_LENGTH_MAX = 500

EFFECT: UnionCodec[Effect] = UnionCodec(Effect)


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """An effect to be performed. `key` names it for ever; `kind` is the performer's word.

    An open notice with the same `supersede_key` is dropped for this one.
    """

    lane: Lane
    key: str
    kind: str
    effect: Effect
    next_at: datetime
    run: str | None = None
    supersede_key: str | None = None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A stored effect; `attempts` counts how often it was sent."""

    id: int
    repository_id: int
    queue_id: int | None
    lane: Lane
    key: str
    run: str | None
    kind: str
    effect: Effect
    state: OutboxState
    attempts: int


outbox = Row.__table__
repositories = RepositoryRow.__table__
earlier = outbox.alias("earlier")

_ID = outbox.c.id == bindparam("of_id")
_IS_OPEN = outbox.c.is_open.is_(True)
_EARLIER_OPEN = earlier.c.is_open.is_(True) & (earlier.c.id < outbox.c.id)
_IS_DUE = (
    _IS_OPEN
    & outbox.c.state.in_([OutboxState.READY.value, OutboxState.UNKNOWN.value])
    & (outbox.c.next_at <= bindparam("now"))
    & or_(outbox.c.claimed_until.is_(None), outbox.c.claimed_until <= bindparam("now"))
)

INSERT = insert(outbox).values(
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
SUPERSEDE = (
    update(outbox)
    .where(
        outbox.c.supersede_key == bindparam("of_key"),
        _IS_OPEN,
        outbox.c.state.in_([OutboxState.READY.value, OutboxState.UNKNOWN.value]),
    )
    .values(state=OutboxState.SUPERSEDED.value, is_open=False, claimed_until=None)
)
SELECT_CONTROL = (
    select(outbox.c.id)
    .where(
        outbox.c.lane == Lane.CONTROL.value,
        _IS_DUE,
        ~select(earlier.c.id)
        .where(
            earlier.c.run == outbox.c.run,
            earlier.c.lane == Lane.CONTROL.value,
            _EARLIER_OPEN,
        )
        .exists(),
        or_(
            outbox.c.kind != LAND,
            ~select(earlier.c.id)
            .where(
                earlier.c.queue_id == outbox.c.queue_id,
                earlier.c.lane == Lane.CONTROL.value,
                earlier.c.kind == LAND,
                _EARLIER_OPEN,
            )
            .exists(),
        ),
    )
    .order_by(outbox.c.id)
    .limit(bindparam("at_most"))
)
SELECT_NOTICES = (
    select(outbox.c.id)
    .where(
        outbox.c.lane == Lane.NOTICE.value,
        _IS_DUE,
        ~select(earlier.c.id)
        .where(earlier.c.supersede_key == outbox.c.supersede_key, _EARLIER_OPEN)
        .exists(),
    )
    .order_by(outbox.c.next_at, outbox.c.id)
    .limit(bindparam("at_most"))
)
CLAIM_DUE = (
    update(outbox)
    .where(outbox.c.id.in_(bindparam("ids", expanding=True)), _IS_DUE)
    .values(claimed_until=bindparam("until"))
    .returning(
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
)
MARK_SENT = (
    update(outbox)
    .where(_ID, outbox.c.state == OutboxState.READY.value)
    .values(
        state=OutboxState.SENT.value,
        attempts=outbox.c.attempts + 1,
        sent_at=bindparam("now"),
    )
)
CLOSE = (
    update(outbox)
    .where(_ID, _IS_OPEN)
    .values(state=bindparam("to"), is_open=False, claimed_until=None, note=bindparam("why"))
)
REOPEN = (
    update(outbox)
    .where(_ID, _IS_OPEN)
    .values(
        state=bindparam("to"),
        next_at=bindparam("due"),
        claimed_until=None,
        note=bindparam("why"),
    )
)


def append(
    session: Connection,
    repository_id: int,
    queue_id: int | None,
    epoch: int,
    items: Sequence[OutboxItem],
) -> None:
    """Write effects down, in order, in the transaction that decides them.

    Raises InvariantBroken(I32) when a key was used before: an effect happens once.
    """
    if not items:
        return
    replaced = {each.supersede_key for each in items if each.supersede_key is not None}
    if replaced:
        session.execute(SUPERSEDE, [{"of_key": key} for key in sorted(replaced)])
    newest = {each.supersede_key: each for each in items}
    wanted = [
        each for each in items if each.supersede_key is None or newest[each.supersede_key] is each
    ]
    rows = []
    for each in wanted:
        effect_type, effect = EFFECT.encode(each.effect)
        rows.append(
            {
                "of_repository": repository_id,
                "queue_id": queue_id,
                "epoch": epoch,
                "lane": each.lane.value,
                "idem_key": each.key,
                "supersede_key": each.supersede_key,
                "run": each.run,
                "kind": each.kind,
                "effect_type": effect_type,
                "effect": effect,
                "next_at": each.next_at,
            }
        )
    try:
        session.execute(INSERT, rows)
    except IntegrityError as twice:
        keys = ", ".join(each.key for each in wanted)
        raise InvariantBroken("I32", f"an effect was asked for twice among {keys}") from twice


def claim(session: Connection, now: datetime, limit: int) -> tuple[OutboxRow, ...]:
    """Take due effects for 60 s, at most `limit`: control ones first, each lane in order.

    Of a run only the oldest open control effect, of a queue only the oldest landing, of a
    supersede key only the oldest notice. One in state `unknown` must be read back first.
    """
    control = session.execute(SELECT_CONTROL, {"now": now, "at_most": limit}).scalars().all()
    rest = {"now": now, "at_most": limit - len(control)}
    notices = session.execute(SELECT_NOTICES, rest).scalars().all() if rest["at_most"] else ()
    ids = [*control, *notices]
    if not ids:
        return ()
    taken = session.execute(CLAIM_DUE, {"ids": ids, "now": now, "until": now + CLAIM}).all()
    place = {row_id: index for index, row_id in enumerate(ids)}
    return tuple(
        OutboxRow(
            id=row.id,
            repository_id=row.repository_id,
            queue_id=row.queue_id,
            lane=Lane(row.lane),
            key=row.idem_key,
            run=row.run,
            kind=row.kind,
            effect=EFFECT.decode(row.effect_type, row.effect),
            state=OutboxState(row.state),
            attempts=row.attempts,
        )
        for row in sorted(taken, key=lambda row: place[row.id])
    )


def mark_sent(session: Connection, row_id: int, now: datetime) -> bool:
    """Ready becomes sent, before the request leaves; False when it was not ready."""
    return session.execute(MARK_SENT, {"of_id": row_id, "now": now}).rowcount == 1


def settle(session: Connection, row_id: int, state: OutboxState, note: str = "") -> None:
    """End it as DONE, FAILED or SUPERSEDED; an ended one stays as it is."""
    session.execute(CLOSE, {"of_id": row_id, "to": state.value, "why": note[:NOTE_LENGTH_MAX]})


def retry(session: Connection, row_id: int, next_at: datetime, error: str) -> None:
    """Ready again at `next_at`: it certainly did not happen."""
    _reopen(session, row_id, OutboxState.READY, next_at, error)


def mark_unknown(session: Connection, row_id: int, next_at: datetime, error: str) -> None:
    """It may have happened: to be read back from `next_at` on."""
    _reopen(session, row_id, OutboxState.UNKNOWN, next_at, error)


def _reopen(
    session: Connection, row_id: int, state: OutboxState, next_at: datetime, error: str
) -> None:
    session.execute(
        REOPEN,
        {"of_id": row_id, "to": state.value, "due": next_at, "why": error[:NOTE_LENGTH_MAX]},
    )


def reopen_sent(session: Connection) -> int:
    """Every sent effect becomes unknown, and the claims of the ended process drop; how many.

    Before anything else at a start (RELIABILITY.md 4.2).
    """
    session.execute(
        update(outbox)
        .where(_IS_OPEN, outbox.c.claimed_until.is_not(None))
        .values(claimed_until=None)
    )
    reopened = session.execute(
        update(outbox)
        .where(_IS_OPEN, outbox.c.state == OutboxState.SENT.value)
        .values(state=OutboxState.UNKNOWN.value)
    )
    return reopened.rowcount
