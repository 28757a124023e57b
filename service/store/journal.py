"""What happened to a queue, one row an event; never read back into state."""

from collections.abc import Sequence

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, union_all

from service.mergequeue.outputs import Event, Recorded
from service.store.codec import JsonCodec, UnionCodec
from service.store.rows import TESTED, members, queues
from service.store.tables.deliveries import JournalRow
from service.vocabulary import Actor

EVENT: UnionCodec[Event] = UnionCodec(Event)
ACTOR: JsonCodec[Actor] = JsonCodec(Actor)

journal = JournalRow.__table__

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
# An event of a run is told of every pull request that the run tests.
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


def append(session: Connection, queue_id: int, events: Sequence[Recorded]) -> None:
    """Write events down, in order."""
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
    """All that happened to one submission and to the runs that tested it, oldest first.

    The targets that an event tells of are not read: no face shows them.
    """
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    return tuple(
        Recorded(row.at, ACTOR.decode(row.actor), EVENT.decode(row.event, row.data))
        for row in session.execute(SELECT_TIMELINE, binds)
    )
