"""The engine's values and their tables, which have the values' fields as columns.

A row becomes the engine's value at once. An instance of the table class between them would add
24 ms of CPU per 1,000 entries to 35 (PostgreSQL) or 49 ms (SQLite).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Select, select

from service.database import outbox
from service.database.tables_base import codec_of
from service.mergequeue.engine.model import Entry, Green, Member, MergeQueue, Run
from service.mergequeue.engine.outputs import Action
from service.mergequeue.store import target_sets
from service.mergequeue.store.tables_queues import (
    EntryRow,
    GreenTreeRow,
    MergeQueueRow,
    RunCheckRow,
    RunEntryRow,
    RunRow,
)
from service.vocabulary import Check

queues = MergeQueueRow.__table__
entries = EntryRow.__table__
runs = RunRow.__table__
members = RunEntryRow.__table__
checks = RunCheckRow.__table__
greens = GreenTreeRow.__table__

outbox.EFFECT.add(Action)

QUEUE = codec_of(MergeQueueRow, MergeQueue)
ENTRY = codec_of(EntryRow, Entry)
RUN = codec_of(RunRow, Run)
MEMBER = codec_of(RunEntryRow, Member)
CHECK = codec_of(RunCheckRow, Check)
GREEN = codec_of(GreenTreeRow, Green)

Question = Select[*tuple[object, ...]]
"""A statement whose columns begin with those of a codec."""

TESTED = "tested"
BASE = "base"

ENTRIES = select(*ENTRY.columns).order_by(entries.c.no)
RUNS = select(*RUN.columns).order_by(runs.c.no)
MEMBERS = (
    select(*MEMBER.columns, members.c.run_id, members.c.role)
    .join(runs, runs.c.id == members.c.run_id)
    .order_by(members.c.run_id, members.c.position)
)
CHECKS = (
    select(*CHECK.columns, checks.c.run_id)
    .join(runs, runs.c.id == checks.c.run_id)
    .order_by(checks.c.run_id, checks.c.position)
)


class RunQuestion(NamedTuple):
    """The three statements that together read runs: rows, members, checks."""

    rows: Question
    members: Question
    checks: Question


def entries_of(
    session: Connection, statement: Question, binds: Mapping[str, object]
) -> tuple[Entry, ...]:
    """Return the entries that a statement over `ENTRY.columns` finds, in its order."""
    found = session.execute(statement, binds).all()
    held = target_sets.at_hand(session, (word for row in found for word in (row.targets, row.wide)))
    restored = tuple(ENTRY.value(row) for row in found)
    del held
    return restored


def runs_found(
    session: Connection, question: RunQuestion, binds: Mapping[str, object]
) -> tuple[Run, ...]:
    """Return the runs that a question finds, with members and checks, in creation order."""
    found = session.execute(question.rows, binds).all()
    if not found:
        return ()
    groups: dict[tuple[str, str], list[Member]] = defaultdict(list)
    for row in session.execute(question.members, binds):
        groups[row.run_id, row.role].append(MEMBER.value(row))
    reports: dict[str, list[Check]] = defaultdict(list)
    for row in session.execute(question.checks, binds):
        reports[row.run_id].append(CHECK.value(row))
    return tuple(
        RUN.value(
            row,
            {
                "entries": tuple(groups.get((row.id, TESTED), ())),
                "base": tuple(groups.get((row.id, BASE), ())),
                "checks": tuple(reports.get(row.id, ())),
            },
        )
        for row in found
    )


def member_rows(run: Run) -> list[dict[str, object]]:
    """Return the members of a run as rows without their organization."""
    return _numbered(run.id, TESTED, run.entries) + _numbered(run.id, BASE, run.base)


def _numbered(run_id: str, role: str, group: Sequence[Member]) -> list[dict[str, object]]:
    return [
        {"run_id": run_id, "role": role, "position": position, **MEMBER.row(member)}
        for position, member in enumerate(group)
    ]


def check_rows(run: Run) -> list[dict[str, object]]:
    """Return the reports of a run as rows without their organization."""
    return [
        {"run_id": run.id, "position": position, **CHECK.row(check)}
        for position, check in enumerate(run.checks)
    ]
