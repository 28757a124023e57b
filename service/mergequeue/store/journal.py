"""The events of a queue, one row each; never read back into state."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    bindparam,
    func,
    insert,
    select,
    union_all,
)

from service.database.codec import JsonCodec, UnionCodec
from service.database.tables_deliveries import JournalRow
from service.mergequeue.engine.outputs import (
    BisectionOpened,
    EntryMoved,
    EntrySubmitted,
    Event,
    QueueStateChanged,
    Recorded,
)
from service.mergequeue.store.rows import TESTED, members, queues
from service.vocabulary import Actor

EVENT: UnionCodec[Event] = UnionCodec(Event)
ACTOR: JsonCodec[Actor] = JsonCodec(Actor)

journal = JournalRow.__table__

STATES_MAX = 1000
"""Changes of a queue's state that are considered for one submission."""

_QUEUE: BindParameter[int] = bindparam("of_queue")
_WANTED = (journal.c.id, journal.c.at, journal.c.actor, journal.c.event, journal.c.data)

INSERT = insert(journal).values(
    org_id=select(queues.c.org_id).where(queues.c.id == _QUEUE).scalar_subquery(),
    queue_id=_QUEUE,
    **{
        name: bindparam(name)
        for name in ("at", "actor", "event", "number", "entry", "run", "reason", "data")
    },
)
_OF_ENTRY = select(*_WANTED).where(
    journal.c.queue_id == _QUEUE,
    journal.c.number == bindparam("of_pr"),
    journal.c.entry == bindparam("of_entry"),
)
# An event of a run belongs to every pull request that the run tests.
_OF_ITS_RUNS = select(*_WANTED).where(
    journal.c.queue_id == _QUEUE,
    journal.c.entry.is_(None),
    journal.c.run.in_(
        select(members.c.run_id).where(
            members.c.entry == bindparam("of_entry"), members.c.role == TESTED
        )
    ),
)
SELECT_TIMELINE = union_all(_OF_ENTRY, _OF_ITS_RUNS).order_by("id")
_LATER = journal.c.id > bindparam("after")
SELECT_PART = (
    union_all(_OF_ENTRY.where(_LATER), _OF_ITS_RUNS.where(_LATER))
    .order_by("id")
    .limit(bindparam("at_most"))
)
SELECT_SEARCHES = _OF_ITS_RUNS.where(journal.c.event == BisectionOpened.__name__).order_by("id")

_FIRST_OF_ENTRY = (
    select(func.min(journal.c.id))
    .where(
        journal.c.queue_id == _QUEUE,
        journal.c.number == bindparam("of_pr"),
        journal.c.entry == bindparam("of_entry"),
    )
    .scalar_subquery()
)
SELECT_STATES = (
    select(*_WANTED)
    .where(
        journal.c.queue_id == _QUEUE,
        journal.c.event == QueueStateChanged.__name__,
        journal.c.id > _FIRST_OF_ENTRY,
    )
    .order_by(journal.c.id)
    .limit(STATES_MAX)
)

SELECT_FEED = (
    select(*_WANTED)
    .where(journal.c.queue_id == _QUEUE, _LATER)
    .order_by(journal.c.id)
    .limit(bindparam("at_most"))
)
SELECT_END = select(func.max(journal.c.id)).where(journal.c.queue_id == _QUEUE)

SELECT_MOVES = select(journal.c.event, journal.c.data).where(
    journal.c.queue_id == _QUEUE,
    journal.c.number == bindparam("of_pr"),
    journal.c.entry == bindparam("of_entry"),
    journal.c.event.in_((EntrySubmitted.__name__, EntryMoved.__name__)),
)


def append(session: Connection, queue_id: int, events: Sequence[Recorded]) -> None:
    """Store events, in order."""
    if events:
        session.execute(INSERT, [_row(queue_id, each) for each in events])


def _row(queue_id: int, recorded: Recorded) -> dict[str, object]:
    event = recorded.event
    name, data = EVENT.encode(event)
    reason = getattr(event, "reason", None)
    return {
        "of_queue": queue_id,
        "at": recorded.at,
        "actor": ACTOR.encode(recorded.actor),
        "event": name,
        "number": getattr(event, "pr", None),
        "entry": getattr(event, "entry", None),
        "run": getattr(event, "run", None),
        "reason": None if reason is None else str(reason),
        "data": data,
    }


def timeline(session: Connection, queue_id: int, pr: int, entry_id: str) -> tuple[Recorded, ...]:
    """Return the events of one submission and of the runs that tested it, oldest first.

    The targets of an event are not read, because they are not shown.
    """
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    return tuple(_recorded(row) for row in session.execute(SELECT_TIMELINE, binds))


@dataclass(frozen=True, slots=True)
class Numbered:
    """An event and its place in the journal."""

    id: int
    recorded: Recorded


def timeline_after(
    session: Connection, queue_id: int, submission: tuple[int, str], after: int, limit: int
) -> tuple[Numbered, ...]:
    """Return at most `limit` events of `timeline` behind that place; 0 is the beginning.

    `submission` is the pull request's number and the entry's id.
    """
    pr, entry_id = submission
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    found = session.execute(SELECT_PART, {**binds, "after": after, "at_most": limit})
    return tuple(Numbered(row.id, _recorded(row)) for row in found)


def feed(session: Connection, queue_id: int, after: int, limit: int) -> tuple[Numbered, ...]:
    """Return at most `limit` events of a queue behind that place, oldest first."""
    binds = {"of_queue": queue_id, "after": after, "at_most": limit}
    return tuple(Numbered(row.id, _recorded(row)) for row in session.execute(SELECT_FEED, binds))


def end_before(session: Connection, queue_id: int, before: datetime | None) -> int:
    """Return the place of the newest event of a queue before that time; 0 without any."""
    wanted = SELECT_END if before is None else SELECT_END.where(journal.c.at < before)
    return session.execute(wanted, {"of_queue": queue_id}).scalar_one() or 0


def searches_of(session: Connection, queue_id: int, entry_id: str) -> tuple[Recorded, ...]:
    """Return the starts of bisections in runs that tested this submission, oldest first."""
    binds = {"of_queue": queue_id, "of_entry": entry_id}
    return tuple(_recorded(row) for row in session.execute(SELECT_SEARCHES, binds))


def state_changes_since(
    session: Connection, queue_id: int, pr: int, entry_id: str
) -> tuple[Recorded, ...]:
    """Return the changes of the queue's state since a submission began, oldest first."""
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    return tuple(_recorded(row) for row in session.execute(SELECT_STATES, binds))


def _recorded(row: Row[*tuple[object, ...]]) -> Recorded:
    return Recorded(row.at, ACTOR.decode(row.actor), EVENT.decode(row.event, row.data))


def states_entered(session: Connection, queue_id: int, pr: int, entry_id: str) -> int:
    """Return how many states a submission has entered so far, its first state included.

    This is the `sequence` of its notifications.
    """
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    rows = session.execute(SELECT_MOVES, binds)
    return sum(1 for row in rows if enters_a_state(EVENT.decode(row.event, row.data)))


def enters_a_state(event: Event) -> bool:
    """Return whether a submission begins or changes its state; a new reason is no new state."""
    if isinstance(event, EntryMoved):
        return event.origin is not event.state
    return isinstance(event, EntrySubmitted)
