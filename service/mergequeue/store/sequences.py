"""How often a submission entered a state: the `sequence` of notifications, from the journal."""

from sqlalchemy import Connection, bindparam, select

from service.mergequeue.engine.outputs import EntryMoved, EntrySubmitted, Event
from service.mergequeue.store.journal import EVENT, journal

COUNTED = (EntrySubmitted.__name__, EntryMoved.__name__)

SELECT_STEPS = select(journal.c.event, journal.c.data).where(
    journal.c.queue_id == bindparam("of_queue"),
    journal.c.number == bindparam("of_pr"),
    journal.c.entry == bindparam("of_entry"),
    journal.c.event.in_(COUNTED),
)


def entered(session: Connection, queue_id: int, pr: int, entry_id: str) -> int:
    """States that a submission has entered, its beginning included, as written down by now."""
    binds = {"of_queue": queue_id, "of_pr": pr, "of_entry": entry_id}
    found = session.execute(SELECT_STEPS, binds)
    return sum(1 for row in found if enters_a_state(EVENT.decode(row.event, row.data)))


def enters_a_state(event: Event) -> bool:
    """Whether a submission begins or changes its state by this; a new reason is no new state."""
    if isinstance(event, EntryMoved):
        return event.origin is not event.state
    return isinstance(event, EntrySubmitted)
