"""The difference that one turn makes to a queue's rows, and its storage.

Values are shared between versions, so most are compared by identity alone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar

from sqlalchemy import (
    Connection,
    Table,
    Update,
    UpdateBase,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import RowCodec
from service.errors import InvariantBroken
from service.mergequeue.engine.model import Entry, Green, MergeQueue, Run
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.submitters import submitter_of
from service.mergequeue.engine.targets import Targets
from service.mergequeue.store import target_sets
from service.mergequeue.store.rows import (
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


class Identified(Protocol):
    """An entry or a run."""

    @property
    def id(self) -> str:
        """Its own id, the same in every version of the value."""
        ...


K = TypeVar("K")
T = TypeVar("T", bound=Identified)

Rows = list[dict[str, object]]

_ORG = select(queues.c.org_id).where(queues.c.id == bindparam("of_queue")).scalar_subquery()
_REPOSITORY = (
    select(queues.c.repository_id).where(queues.c.id == bindparam("of_queue")).scalar_subquery()
)


def _given(*names: str) -> dict[str, object]:
    return {name: bindparam(name) for name in names}


INSERT_ENTRY = insert(entries).values(
    org_id=_ORG, queue_id=bindparam("of_queue"), **_given("live", "submitter", *ENTRY.names)
)
INSERT_RUN = insert(runs).values(
    org_id=_ORG,
    repository_id=_REPOSITORY,
    queue_id=bindparam("of_queue"),
    restored=False,
    **_given("live", *RUN.names),
)
DELETE_MEMBERS = delete(members).where(members.c.run_id == bindparam("of_id"))
INSERT_MEMBER = insert(members).values(
    org_id=_ORG, **_given("run_id", "role", "position", *MEMBER.names)
)
DELETE_CHECKS = delete(checks).where(checks.c.run_id == bindparam("of_id"))
INSERT_CHECK = insert(checks).values(org_id=_ORG, **_given("run_id", "position", *CHECK.names))
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
    """Values to write: `left` are out of the queue's value, `known` are those before by id."""

    left: tuple[T, ...]
    changed: tuple[T, ...]
    added: tuple[T, ...]
    known: Mapping[str, T]
    gone: frozenset[str]


@dataclass(frozen=True, slots=True)
class Changes:
    """All of one turn."""

    entries: Difference[Entry]
    runs: Difference[Run]
    greens: tuple[tuple[str, Green], ...]
    forgotten: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Return whether there is something to write."""
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
    """Return the difference. Raises InvariantBroken(E0) if an entry or run just vanished."""
    after = step.queue
    old, new = before.greens, after.greens
    return Changes(
        entries=_difference(before.entries, after.entries, step.finished_entries),
        runs=_difference(before.runs, after.runs, step.finished_runs),
        greens=tuple((key, green) for key, green in new.items() if old.get(key) != green)
        if old is not new
        else (),
        forgotten=tuple(key for key in old if key not in new) if old is not new else (),
    )


def _difference(before: Mapping[K, T], after: Mapping[K, T], left: Sequence[T]) -> Difference[T]:
    if before is after and not left:
        return Difference((), (), (), {}, frozenset())
    known = {each.id: each for each in before.values()}
    gone = frozenset(each.id for each in left)
    changed: list[T] = []
    added: list[T] = []
    kept = 0
    for each in after.values():
        old = known.get(each.id)
        if old is None:
            added.append(each)
            continue
        kept += 1
        if old is not each and old != each:
            changed.append(each)
    if kept + len(gone & known.keys()) != len(known):
        raise InvariantBroken("E0", f"left the queue unfinished: {_vanished(known, after, gone)}")
    return Difference(tuple(left), tuple(changed), tuple(added), known, gone)


def _vanished(known: Mapping[str, T], after: Mapping[K, T], gone: frozenset[str]) -> list[str]:
    return sorted(known.keys() - gone - {each.id for each in after.values()})


def write(session: Connection, queue_id: int, changes: Changes) -> None:
    """Write it, removals first: a pull request has one live entry at a time."""
    _write_entries(session, queue_id, changes.entries)
    _write_runs(session, queue_id, changes.runs)
    forgotten: Rows = [{"of_queue": queue_id, "of_key": key} for key in changes.forgotten]
    passed: Rows = [
        {"of_queue": queue_id, "key": key, **GREEN.row(green)} for key, green in changes.greens
    ]
    _many(session, DELETE_GREEN, forgotten)
    _many(session, PUT_GREEN, passed)


def targets_of_queue(before: MergeQueue, after: MergeQueue) -> list[Targets | None]:
    """Return target sets that the queue refers to now and may not have referred to before."""
    found: list[Targets | None] = []
    if after.landed is not before.landed:
        known = {id(step) for step in before.landed}
        found += [step.targets for step in after.landed if id(step) not in known]
    if after.kept_move is not None and after.kept_move is not before.kept_move:
        found.append(after.kept_move.targets)
    return found


def _targets_of_entries(found: Difference[Entry]) -> list[Targets | None]:
    """Return target sets that its entries newly refer to."""
    referred: list[Targets | None] = []
    for entry in (*found.left, *found.changed, *found.added):
        old = found.known.get(entry.id)
        if old is None or entry.targets is not old.targets:
            referred.append(entry.targets)
        if old is None or entry.wide is not old.wide:
            referred.append(entry.wide)
    return referred


def _write_entries(session: Connection, queue_id: int, found: Difference[Entry]) -> None:
    target_sets.keep(session, _targets_of_entries(found))
    _update(session, found, ENTRY, entries)
    submitters = {entry.id: submitter_of(entry) for entry in (*found.left, *found.added)}
    rows = _new_rows(found, queue_id, ENTRY)
    _many(session, INSERT_ENTRY, [row | {"submitter": submitters[str(row["id"])]} for row in rows])


def _write_runs(session: Connection, queue_id: int, found: Difference[Run]) -> None:
    _update(session, found, RUN, runs)
    _many(session, INSERT_RUN, _new_rows(found, queue_id, RUN))
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


def _update(session: Connection, found: Difference[T], codec: RowCodec[T], table: Table) -> None:
    """Write the changed columns of removed and present rows."""
    updates: dict[tuple[str, ...], Rows] = defaultdict(list)
    for each in (*found.left, *found.changed):
        old = found.known.get(each.id)
        if old is not None:
            row = codec.changes(old, each)
            if each.id in found.gone:
                row["live"] = False
            if row:
                updates[tuple(row)].append(row | {"of_id": each.id})
    for names, rows in updates.items():
        session.execute(_update_of(table, *names), rows)


@cache
def _update_of(table: Table, *names: str) -> Update:
    """Return the statement that changes these columns by id; few sets of them occur."""
    return update(table).where(table.c.id == bindparam("of_id")).values(_given(*names))


def _new_rows(found: Difference[T], queue_id: int, codec: RowCodec[T]) -> Rows:
    """Insert rows that are missing; removed entries before present ones."""
    return [
        codec.row(each) | {"live": live, "of_queue": queue_id}
        for live, group in ((False, found.left), (True, found.added))
        for each in group
        if each.id not in found.known
    ]


def _many(session: Connection, statement: UpdateBase, rows: Rows) -> None:
    if rows:
        session.execute(statement, rows)
