"""The past of heads and submitters in a queue: submissions, confirmed failures, CI minutes."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import (
    BindParameter,
    Connection,
    Integer,
    and_,
    bindparam,
    case,
    cast,
    desc,
    extract,
    func,
    select,
    tuple_,
)

from service.database.types import Utc
from service.mergequeue.engine.model import Entry, Run, Tip
from service.mergequeue.engine.past import Blamed, Spent, are_same
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import RunKind
from service.mergequeue.store import runs as stored_runs
from service.mergequeue.store.rows import ENTRIES, TESTED, entries, entries_of, members, runs
from service.mergequeue.store.tables_queues import IS_FAILED
from service.vocabulary import Sha

BLAMED_MAX = 6
"""Failures of one head that are looked at, the newest."""

_HEADS: BindParameter[tuple[int, str]] = bindparam("of_heads", expanding=True)
_OF_HEADS = (entries.c.queue_id == bindparam("of_queue")) & tuple_(
    entries.c.pr, entries.c.head
).in_(_HEADS)
SELECT_SUBMITTED = select(entries.c.pr, entries.c.head).where(_OF_HEADS)
SELECT_ENDED = SELECT_SUBMITTED.where(entries.c.live.is_(False))

SELECT_FAILED = (
    ENTRIES.where(
        entries.c.queue_id == bindparam("of_queue"),
        entries.c.head == bindparam("of_head"),
        IS_FAILED,
    )
    .order_by(None)
    .order_by(desc(entries.c.no))
    .limit(BLAMED_MAX)
)

_others = members.alias()
_NOW: BindParameter[datetime] = bindparam("now", type_=Utc)
_SINCE: BindParameter[datetime] = bindparam("since", type_=Utc)
_SIZE = (
    select(func.count())
    .select_from(_others)
    .where(_others.c.run_id == runs.c.id, _others.c.role == TESTED)
    .scalar_subquery()
)
_END = func.coalesce(runs.c.finished_at, _NOW, type_=Utc)
_SECONDS = cast(extract("epoch", _END), Integer) - cast(extract("epoch", runs.c.built_at), Integer)
# A confirmation tests its last entry, which is the suspect, on top of proven ones.
_SHARE = case(
    (runs.c.kind != RunKind.CONFIRMATION.value, _SECONDS * 1.0 / _SIZE),
    (members.c.position == _SIZE - 1, _SECONDS * 1.0),
    else_=0.0,
)
_IS_HERE = entries.c.queue_id == bindparam("of_queue")
_OF_SUBMITTER = entries.c.submitter == bindparam("of_submitter")
_OPEN_ELSEWHERE = (
    select(func.count())
    .select_from(entries)
    .where(_OF_SUBMITTER, entries.c.live.is_(True), ~_IS_HERE)
    .scalar_subquery()
)
SELECT_SPENT = (
    select(
        _OPEN_ELSEWHERE.label("open_elsewhere"),
        func.sum(case((_IS_HERE, _SHARE), else_=0.0)).label("here"),
        func.sum(_SHARE).label("in_all"),
    )
    .select_from(entries)
    .join(members, and_(members.c.entry == entries.c.id, members.c.role == TESTED))
    .join(runs, runs.c.id == members.c.run_id)
    .where(
        _OF_SUBMITTER,
        # A submission whose state has not changed today had no run that began today.
        entries.c.state_since >= _SINCE,
        runs.c.built_at >= _SINCE,
        runs.c.reused_from.is_(None),
    )
)


def submitted(
    session: Connection, queue_id: int, heads: Iterable[tuple[int, Sha]]
) -> frozenset[tuple[int, Sha]]:
    """Return those of these heads, each with its pull request, that are or were in the queue."""
    binds = {"of_queue": queue_id, "of_heads": list(heads)}
    rows = session.execute(SELECT_SUBMITTED, binds)
    return frozenset((row.pr, Sha(row.head)) for row in rows)


def has_ended(session: Connection, queue_id: int, number: int, head: Sha) -> bool:
    """Return whether an earlier submission of this head has left the queue."""
    binds = {"of_queue": queue_id, "of_heads": [(number, head)]}
    return session.execute(SELECT_ENDED, binds).first() is not None


def blamed_run(session: Connection, queue_id: int, head: Sha) -> tuple[Blamed, Run] | None:
    """Return the newest failure for which this head was blamed with confirmation, and its run.

    It counts whatever pull request had the head. Of submissions that one run alone ended two are
    needed, with a check that failed in both. None if there is none, or its run is forgotten.
    """
    binds = {"of_queue": queue_id, "of_head": head}
    every = entries_of(session, SELECT_FAILED, binds)
    failed = [one for one in every if one.detail.is_confirmed or _agrees(one, every)]
    if not failed:
        return None
    numbers = [entry.detail.run for entry in failed if entry.detail.run is not None]
    known = {run.id: run for run in stored_runs.runs_of(session, queue_id, numbers)}
    newest = known.get(failed[0].detail.run or "")
    if newest is None:
        return None
    runs_of_head = (known.get(entry.detail.run or "") for entry in failed)
    times = sum(run is not None and are_same(run.required, newest.required) for run in runs_of_head)
    is_late = failed[0].reason is Reason.RUN_TIMED_OUT
    blamed = Blamed(
        newest.id,
        newest.number,
        newest.sha,
        _base_of(newest, failed[0]),
        newest.required,
        newest.created_at,
        failed[0].detail.checks,
        times,
        timeout_min=newest.config.testing_timeout_minutes if is_late else None,
    )
    return blamed, newest


def spent(
    session: Connection, queue_id: int, submitter: str, since: datetime, now: datetime
) -> Spent:
    """Return what a submitter uses: open entries of other queues, CI minutes of runs since then.

    A run counts by its own time, shared evenly among the entries that it tests; a confirmation for
    its suspect alone. What is under way counts until now.
    """
    binds = {"of_queue": queue_id, "of_submitter": submitter, "since": since, "now": now}
    row = session.execute(SELECT_SPENT, binds).one()
    return Spent(row.open_elsewhere, float(row.here or 0) / 60.0, float(row.in_all or 0) / 60.0)


def _agrees(entry: Entry, every: Iterable[Entry]) -> bool:
    """Return whether a check failed in this submission and in another one of the head."""
    others = (check.name for other in every if other is not entry for check in other.detail.checks)
    return not {check.name for check in entry.detail.checks}.isdisjoint(others)


def _base_of(run: Run, entry: Entry) -> Tip:
    """Return what the run tested the entry on top of."""
    below = run.base_tip
    for step in run.steps:
        if step.pr == entry.pr:
            break
        below = Tip(step.commit, step.tree)
    return below
