"""Entries and runs as rows, also those that have left their queue's value.

Also the draft pull request that carries a run, which the engine does not know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, Connection, bindparam, desc, select, update

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.states import RunKind, RunStatus
from service.mergequeue.store.rows import (
    CHECKS,
    ENTRIES,
    MEMBERS,
    RUNS,
    RunQuestion,
    entries,
    entries_of,
    runs,
    runs_found,
)
from service.vocabulary import Sha

DURATIONS_MAX = 50
"""Estimates use this many finished runs."""

TIP_TESTS_MAX = 20
"""Tests of tips after a landing among which one is looked for."""

RECORDED_MAX = 10_000
"""Branches considered; older ones have been swept already."""

_QUEUE: BindParameter[int] = bindparam("of_queue")
_THESE_RUNS = (runs.c.queue_id == _QUEUE) & runs.c.id.in_(bindparam("of_ids", expanding=True))

SELECT_NEWEST_ENTRY = (
    ENTRIES.where(entries.c.queue_id == _QUEUE, entries.c.pr == bindparam("of_pr"))
    .order_by(None)
    .order_by(desc(entries.c.no))
    .limit(1)
)
SELECT_NEWEST_ENDED = SELECT_NEWEST_ENTRY.where(entries.c.live.is_(False))
SELECT_ENTRY = ENTRIES.where(entries.c.queue_id == _QUEUE, entries.c.id == bindparam("of_id"))
SELECT_RUNS = RunQuestion(
    RUNS.where(_THESE_RUNS), MEMBERS.where(_THESE_RUNS), CHECKS.where(_THESE_RUNS)
)
SELECT_TIP_TESTS = (
    select(runs.c.id)
    .where(
        runs.c.queue_id == _QUEUE,
        runs.c.status.in_([status.value for status in RunStatus]),
        runs.c.no > select(runs.c.no).where(runs.c.id == bindparam("of_run")).scalar_subquery(),
        runs.c.kind == RunKind.TIP.value,
    )
    .order_by(desc(runs.c.no))
    .limit(TIP_TESTS_MAX)
)
SELECT_FIRST_SINCE = (
    select(runs.c.id)
    .where(runs.c.queue_id == _QUEUE, runs.c.created_at >= bindparam("since"))
    .order_by(runs.c.created_at)
    .limit(1)
)
SELECT_DURATIONS = (
    select(runs.c.created_at, runs.c.finished_at)
    .where(
        runs.c.queue_id == _QUEUE,
        runs.c.status == RunStatus.SUCCEEDED.value,
        runs.c.finished_at.is_not(None),
        runs.c.repeats.is_(None),
    )
    .order_by(desc(runs.c.no))
    .limit(bindparam("at_most"))
)


@dataclass(frozen=True, slots=True)
class RecordedBranch:
    """A test branch that a run of ours had or has."""

    queue_id: int
    run_id: str
    live: bool


def newest_entry(session: Connection, queue_id: int, pr: int) -> Entry | None:
    """Return the newest submission of a pull request, live or ended."""
    found = entries_of(session, SELECT_NEWEST_ENTRY, {"of_queue": queue_id, "of_pr": pr})
    return found[0] if found else None


def newest_ended(session: Connection, queue_id: int, pr: int) -> Entry | None:
    """Return the newest submission of a pull request that has ended."""
    found = entries_of(session, SELECT_NEWEST_ENDED, {"of_queue": queue_id, "of_pr": pr})
    return found[0] if found else None


def entry(session: Connection, queue_id: int, entry_id: str) -> Entry | None:
    """Return one submission, live or ended."""
    found = entries_of(session, SELECT_ENTRY, {"of_queue": queue_id, "of_id": entry_id})
    return found[0] if found else None


def run(session: Connection, queue_id: int, run_id: str) -> Run | None:
    """Return one run, live or ended."""
    found = runs_of(session, queue_id, (run_id,))
    return found[0] if found else None


def tip_test(session: Connection, queue_id: int, after: str, sha: Sha) -> Run | None:
    """Return the newest test of this tip of the target that began after another run."""
    binds = {"of_queue": queue_id, "of_run": after}
    ids = session.execute(SELECT_TIP_TESTS, binds).scalars().all()
    found = runs_of(session, queue_id, ids)
    return next((one for one in reversed(found) if one.base_tip.sha == sha), None)


def first_base_since(session: Connection, queue_id: int, since: datetime) -> Sha | None:
    """Return the tip of the target on which the first run since then began; None without one."""
    found = session.execute(SELECT_FIRST_SINCE, {"of_queue": queue_id, "since": since}).scalar()
    first = None if found is None else run(session, queue_id, found)
    return None if first is None else first.base_tip.sha


def queue_of(session: Connection, repository_id: int, run_id: str) -> int | None:
    """Return the queue of a run of this repository."""
    found = select(runs.c.queue_id).where(
        runs.c.id == run_id, runs.c.repository_id == repository_id
    )
    queue_id: int | None = session.execute(found).scalar()
    return queue_id


def runs_of(session: Connection, queue_id: int, run_ids: Sequence[str]) -> tuple[Run, ...]:
    """Return these runs of the queue, in the order they were made; unknown ids are left out."""
    if not run_ids:
        return ()
    return runs_found(session, SELECT_RUNS, {"of_queue": queue_id, "of_ids": list(run_ids)})


def succeeded_durations_s(
    session: Connection, queue_id: int, limit: int = DURATIONS_MAX
) -> tuple[float, ...]:
    """Return seconds from the making of a run to its success, newest first.

    Without those that repeated failed checks alone.
    """
    found = session.execute(SELECT_DURATIONS, {"of_queue": queue_id, "at_most": limit})
    return tuple((row.finished_at - row.created_at).total_seconds() for row in found)


def set_draft_pull_request(
    session: Connection, queue_id: int, run_id: str, number: int | None, url: str | None
) -> None:
    """Store the draft pull request that carries a run; None: it has none."""
    session.execute(
        update(runs)
        .where(runs.c.queue_id == queue_id, runs.c.id == run_id)
        .values(vehicle_number=number, vehicle_url=url)
    )


def draft_pull_request_of(session: Connection, run_id: str) -> tuple[int, str] | None:
    """Return number and address of that pull request, if there is one.

    A run that repeats another one has that of the other.
    """
    row = session.execute(
        select(runs.c.vehicle_number, runs.c.vehicle_url, runs.c.repeats).where(runs.c.id == run_id)
    ).first()
    if row is not None and row.repeats is not None:
        return draft_pull_request_of(session, row.repeats)
    if row is None or row.vehicle_number is None:
        return None
    return row.vehicle_number, row.vehicle_url or ""


def note_restored(session: Connection, queue_id: int, run_id: str) -> bool:
    """Return a lost test branch is put back once: True the first time, False afterwards."""
    noted = session.execute(
        update(runs)
        .where(runs.c.queue_id == queue_id, runs.c.id == run_id, runs.c.restored.is_(False))
        .values(restored=True)
    )
    return noted.rowcount == 1


def recorded_branches(session: Connection, repository_id: int) -> dict[str, RecordedBranch]:
    """Return test branches by name, of the newest runs.

    Of several runs with one name the newest live one wins, or the newest.
    """
    found = session.execute(
        select(runs.c.branch, runs.c.queue_id, runs.c.id, runs.c.live, runs.c.no)
        .where(runs.c.repository_id == repository_id, runs.c.branch.is_not(None))
        .order_by(desc(runs.c.no))
        .limit(RECORDED_MAX)
    ).all()
    ordered = sorted(found, key=lambda row: (row.live, row.no))
    return {row.branch: RecordedBranch(row.queue_id, row.id, row.live) for row in ordered}


def left_by_ended(
    session: Connection, repository_id: int, made_for: Mapping[str, str]
) -> frozenset[str]:
    """Return those of the branches whose run has ended and has reported another branch, or none.

    `made_for`: branch → id of its run. One that its run has reported may have a run that repeats
    it, so `recorded_branches` says whether it is needed.
    """
    ended = select(runs.c.id, runs.c.branch).where(
        runs.c.repository_id == repository_id,
        runs.c.id.in_(sorted(set(made_for.values()))),
        runs.c.live.is_(False),
    )
    reported = {row.id: row.branch for row in session.execute(ended)}
    return frozenset(
        branch for branch, run in made_for.items() if run in reported and reported[run] != branch
    )
