"""The past of one queue as lists: submissions and test runs by time, outcome and words.

A list holds what the statistics of the same time count: at most the newest 20,000 submissions or
60,000 runs of the queue.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, and_, desc, func, or_, select

from service.database.json_text import member
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL, EntryState, RunStatus
from service.mergequeue.store import listings
from service.mergequeue.store import runs as stored_runs
from service.mergequeue.store.overviews import Scope
from service.mergequeue.store.queues import SELECT_REFS, ref_of
from service.mergequeue.store.rows import entries, queues, runs
from service.mergequeue.store.statistics import ENTRIES_MAX, RUNS_MAX
from service.vocabulary import QueueRef

NUMBER_DIGITS_MAX: Final = 15

_NEWER = entries.alias("newer")

Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class SubmissionFilter:
    """Submissions in these states, by their reason, and by words of their title or author.

    `ended`: those that ended in `[since, until)`. `at`: those that were in the queue at that time.
    """

    states: frozenset[EntryState] = frozenset(EntryState)
    reason: Reason | None = None
    ended: Span | None = None
    at: datetime | None = None
    text: str = ""

    def conditions(self, queue_id: int) -> list[ColumnElement[bool]]:
        """Return what is true of its rows."""
        wanted = [each.value for each in sorted(self.states)]
        found = [*_newest(entries, queue_id, ENTRIES_MAX), entries.c.state.in_(wanted)]
        if self.reason is not None:
            found.append(entries.c.reason == self.reason.value)
        if self.ended is not None:
            found += [
                entries.c.live.is_(False),
                entries.c.state.in_([each.value for each in sorted(FINAL)]),
                entries.c.state_since >= self.ended[0],
                entries.c.state_since < self.ended[1],
            ]
        if self.at is not None:
            is_there = or_(entries.c.live.is_(True), entries.c.state_since > self.at)
            found += [entries.c.submitted_at <= self.at, is_there]
        if self.text:
            found.append(_mentions(self.text))
        return found


@dataclass(frozen=True, slots=True)
class RunSpan:
    """Test runs that finished in `[since, until)`, or were in progress at a time; None: any."""

    finished: Span | None = None
    at: datetime | None = None
    status: RunStatus | None = None

    def conditions(self, queue_id: int) -> list[ColumnElement[bool]]:
        """Return what is true of its rows."""
        found = _newest(runs, queue_id, RUNS_MAX)
        if self.status is not None:
            found.append(runs.c.status == self.status.value)
        if self.finished is not None:
            since, until = self.finished
            found += [runs.c.finished_at >= since, runs.c.finished_at < until]
        if self.at is not None:
            is_there = or_(runs.c.finished_at.is_(None), runs.c.finished_at > self.at)
            found += [runs.c.created_at <= self.at, is_there]
        return found


def _newest(table: Table, queue_id: int, limit: int) -> list[ColumnElement[bool]]:
    """Return the condition of the newest rows of a queue."""
    older = table.alias("older")
    last = (
        select(older.c.no)
        .where(older.c.queue_id == queue_id)
        .order_by(desc(older.c.no))
        .limit(1)
        .offset(limit)
        .scalar_subquery()
    )
    return [table.c.queue_id == queue_id, table.c.no > func.coalesce(last, 0)]


def _mentions(text: str) -> ColumnElement[bool]:
    """Return whether a submission has the text in its title or author, or is of this number."""
    words = [member(entries.c.facts, name) for name in ("title", "author")]
    found = [each.icontains(text, autoescape=True) for each in words]
    number = text.removeprefix("#")
    if number.isdecimal() and len(number) <= NUMBER_DIGITS_MAX:
        found.append(entries.c.pr == int(number))
    return or_(*found)


def mentioned(
    session: Connection, scope: Scope, text: str, limit: int
) -> tuple[tuple[QueueRef, Entry], ...]:
    """Return the newest submissions within a scope whose title or author has a text.

    Each pull request is found once, among the newest 20,000 submissions of all queues.
    """
    last = select(func.max(_NEWER.c.no)).scalar_subquery()
    recent = (
        select(entries.c.no, entries.c.queue_id, entries.c.pr)
        .where(entries.c.no > func.coalesce(last, 0) - ENTRIES_MAX, _mentions(text))
        .order_by(desc(entries.c.no))
        .limit(ENTRIES_MAX)
    )
    if scope.org_id is not None:
        recent = recent.where(entries.c.org_id == scope.org_id)
    if scope.within is not None:
        within = select(queues.c.id).where(queues.c.repository_id.in_(sorted(scope.within)))
        recent = recent.where(entries.c.queue_id.in_(within))
    rows = recent.subquery()
    no = func.max(rows.c.no)
    statement = (
        select(rows.c.queue_id, no.label("no"))
        .group_by(rows.c.queue_id, rows.c.pr)
        .order_by(desc(no))
        .limit(limit)
    )
    found = session.execute(statement).all()
    wanted = SELECT_REFS.where(
        queues.c.id.in_({row.queue_id for row in found}), queues.c.deleted.is_(False)
    )
    refs = {row.id: ref_of(row) for row in session.execute(wanted)}
    shown = [row for row in found if row.queue_id in refs]
    newest = listings.numbered(session, [row.no for row in shown])
    return tuple((refs[row.queue_id], entry) for row, entry in zip(shown, newest, strict=True))


def submissions(
    session: Connection, queue_id: int, wanted: SubmissionFilter, before: int, limit: int
) -> tuple[int, ...]:
    """Return the numbers of submissions, the newest first, before a number."""
    where = and_(*wanted.conditions(queue_id), entries.c.no < before)
    statement = select(entries.c.no).where(where).order_by(desc(entries.c.no)).limit(limit)
    return tuple(session.execute(statement).scalars())


def submissions_count(session: Connection, queue_id: int, wanted: SubmissionFilter) -> int:
    """Return how many submissions there are."""
    statement = select(func.count()).select_from(entries).where(*wanted.conditions(queue_id))
    return session.execute(statement).scalar_one()


def runs_before(
    session: Connection, queue_id: int, wanted: RunSpan, before: int, limit: int
) -> tuple[tuple[int, Run], ...]:
    """Return runs with their numbers among all, the newest first, before a number."""
    where = and_(*wanted.conditions(queue_id), runs.c.no < before)
    statement = select(runs.c.no, runs.c.id).where(where).order_by(desc(runs.c.no)).limit(limit)
    numbers = {row.id: row.no for row in session.execute(statement)}
    found = stored_runs.runs_of(session, queue_id, tuple(numbers))
    return tuple((numbers[run.id], run) for run in reversed(found))


def runs_count(session: Connection, queue_id: int, wanted: RunSpan) -> int:
    """Return how many runs there are."""
    statement = select(func.count()).select_from(runs).where(*wanted.conditions(queue_id))
    return session.execute(statement).scalar_one()
