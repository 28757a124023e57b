"""What one turn changed of a queue's entries, runs and passed trees, and its writing.

Values are shared between versions, so most are told apart by identity alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import Connection, UpdateBase, bindparam, delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.errors import InvariantBroken
from service.mergequeue.model import Entry, Green, MergeQueue, Run
from service.mergequeue.outputs import Step
from service.store.codec import RowCodec
from service.store.rows import (
    CHECK,
    ENTRY,
    GREEN,
    MEMBER,
    RUN,
    check_rows,
    checks,
    entries,
    greens,
    member_rows,
    members,
    queues,
    runs,
)

T = TypeVar("T", Entry, Run)

Rows = list[dict[str, object]]

_ORG = select(queues.c.org_id).where(queues.c.id == bindparam("of_queue")).scalar_subquery()
_REPOSITORY = (
    select(queues.c.repository_id).where(queues.c.id == bindparam("of_queue")).scalar_subquery()
)


def _given(*names: str) -> dict[str, object]:
    return {name: bindparam(name) for name in names}


INSERT_ENTRY = insert(entries).values(
    org_id=_ORG, queue_id=bindparam("of_queue"), **_given("live", *ENTRY.names)
)
UPDATE_ENTRY = (
    update(entries)
    .where(entries.c.id == bindparam("of_id"))
    .values(_given("live", *(name for name in ENTRY.names if name != "id")))
)
INSERT_RUN = insert(runs).values(
    org_id=_ORG,
    repository_id=_REPOSITORY,
    queue_id=bindparam("of_queue"),
    **_given("live", *RUN.names),
)
UPDATE_RUN = (
    update(runs)
    .where(runs.c.id == bindparam("of_id"))
    .values(_given("live", *(name for name in RUN.names if name != "id")))
)
DELETE_MEMBERS = delete(members).where(members.c.run_id == bindparam("of_id"))
INSERT_MEMBER = insert(members).values(
    org_id=_ORG, **_given("run_id", "role", "position", *MEMBER.names)
)
DELETE_CHECKS = delete(checks).where(checks.c.run_id == bindparam("of_id"))
INSERT_CHECK = insert(checks).values(
    org_id=_ORG, **_given("run_id", "position", *CHECK.names)
)
# The two dialects' upserts compile to the same text; PostgreSQL's serves both.
_GREEN = upsert(greens).values(
    org_id=_ORG, queue_id=bindparam("of_queue"), **_given("key", *GREEN.names)
)
PUT_GREEN = _GREEN.on_conflict_do_update(
    index_elements=["queue_id", "key"],
    set_={name: _GREEN.excluded[name] for name in GREEN.names},
)
DELETE_GREEN = delete(greens).where(
    greens.c.queue_id == bindparam("of_queue"), greens.c.key == bindparam("of_key")
)


@dataclass(frozen=True, slots=True)
class Difference(Generic[T]):
    """Values to write: `left` are out of the queue's value, `known` have a row already."""

    left: tuple[T, ...]
    changed: tuple[T, ...]
    added: tuple[T, ...]
    known: Mapping[str, T]


@dataclass(frozen=True, slots=True)
class Changes:
    """All of one turn."""

    entries: Difference[Entry]
    runs: Difference[Run]
    greens: tuple[tuple[str, Green], ...]
    forgotten: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there is something to write."""
        return bool(
            self.entries.left
            or self.entries.changed
            or self.entries.added
            or self.runs.left
            or self.runs.changed
            or self.runs.added
            or self.greens
            or self.forgotten
        )


def between(before: MergeQueue, step: Step) -> Changes:
    """What differs. Raises InvariantBroken(E0) for an entry or run that just vanished."""
    after = step.queue
    old, new = before.greens, after.greens
    return Changes(
        entries=_difference(
            before.entries.values(), after.entries.values(), step.finished_entries
        ),
        runs=_difference(before.runs.values(), after.runs.values(), step.finished_runs),
        greens=tuple(
            (key, green) for key, green in new.items() if old.get(key) != green
        )
        if old is not new
        else (),
        forgotten=tuple(key for key in old if key not in new) if old is not new else (),
    )


def _difference(before: Iterable[T], after: Iterable[T], left: Sequence[T]) -> Difference[T]:
    known = {each.id: each for each in before}
    gone = {each.id for each in left}
    changed: list[T] = []
    added: list[T] = []
    kept = 0
    for each in after:
        old = known.get(each.id)
        if old is None:
            added.append(each)
            continue
        kept += 1
        if old is not each and old != each:
            changed.append(each)
    if kept + len(gone & known.keys()) != len(known):
        raise InvariantBroken("E0", f"left the queue unfinished: {_vanished(known, after, gone)}")
    return Difference(tuple(left), tuple(changed), tuple(added), known)


def _vanished(known: Mapping[str, T], after: Iterable[T], gone: set[str]) -> list[str]:
    return sorted(known.keys() - gone - {each.id for each in after})


def write(session: Connection, queue_id: int, changes: Changes) -> None:
    """Write it. What leaves goes first: a pull request has one live entry at a time."""
    _write_entries(session, queue_id, changes.entries)
    _write_runs(session, queue_id, changes.runs)
    forgotten: Rows = [{"of_queue": queue_id, "of_key": key} for key in changes.forgotten]
    passed: Rows = [
        {"of_queue": queue_id, "key": key, **GREEN.row(green)} for key, green in changes.greens
    ]
    _many(session, DELETE_GREEN, forgotten)
    _many(session, PUT_GREEN, passed)


def _write_entries(session: Connection, queue_id: int, found: Difference[Entry]) -> None:
    updates, inserts = _rows(found, queue_id, ENTRY)
    _many(session, UPDATE_ENTRY, updates)
    _many(session, INSERT_ENTRY, inserts)


def _write_runs(session: Connection, queue_id: int, found: Difference[Run]) -> None:
    updates, inserts = _rows(found, queue_id, RUN)
    _many(session, UPDATE_RUN, updates)
    _many(session, INSERT_RUN, inserts)
    gone: Rows = []
    group: Rows = []
    gone_checks: Rows = []
    reports: Rows = []
    for run in (*found.left, *found.changed, *found.added):
        old = found.known.get(run.id)
        if old is None or old.entries != run.entries or old.base != run.base:
            gone += [{"of_id": run.id}] if old is not None else []
            group += [row | {"of_queue": queue_id} for row in member_rows(run)]
        if old is None or old.checks != run.checks:
            gone_checks += [{"of_id": run.id}] if old is not None and old.checks else []
            reports += [row | {"of_queue": queue_id} for row in check_rows(run)]
    _many(session, DELETE_MEMBERS, gone)
    _many(session, INSERT_MEMBER, group)
    _many(session, DELETE_CHECKS, gone_checks)
    _many(session, INSERT_CHECK, reports)


def _rows(found: Difference[T], queue_id: int, codec: RowCodec[T]) -> tuple[Rows, Rows]:
    """Rows to update and rows to insert; what has left the value before what is in it."""
    updates: Rows = []
    inserts: Rows = []
    for live, group in ((False, found.left), (True, (*found.changed, *found.added))):
        for each in group:
            row = codec.row(each)
            row["live"] = live
            if each.id in found.known:
                row["of_id"] = row.pop("id")
                updates.append(row)
            else:
                row["of_queue"] = queue_id
                inserts.append(row)
    return updates, inserts


def _many(session: Connection, statement: UpdateBase, rows: Rows) -> None:
    if rows:
        session.execute(statement, rows)
