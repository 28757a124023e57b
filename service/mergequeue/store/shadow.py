"""Rows of a queue in shadow: its submissions, and what others merged of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, desc, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.store.rows import entries, runs
from service.mergequeue.store.tables_queues import ShadowMergeRow
from service.vocabulary import QueueRef, Sha

merges = ShadowMergeRow.__table__

_QUEUE = runs.c.queue_id == bindparam("of_queue")
_NO_TESTS = "[]"
SELECT_SUBMISSIONS = (
    select(
        entries.c.id, entries.c.pr, entries.c.head, entries.c.state, entries.c.reason,
        entries.c.submitted_at, entries.c.state_since, entries.c.would_land_at, entries.c.live,
        merges.c.entry.is_not(None), merges.c.merged_at, merges.c.sha, merges.c.is_red,
    )
    .outerjoin_from(entries, merges, merges.c.entry == entries.c.id)
    .where(entries.c.queue_id == bindparam("of_queue"))
    .order_by(desc(entries.c.no))
    .limit(bindparam("at_most"))
)  # fmt: skip
_RUNS = select(func.count()).where(
    _QUEUE, runs.c.live.is_(False), runs.c.finished_at >= bindparam("since")
)
SELECT_RUNS = _RUNS.where(runs.c.finished_at <= bindparam("until"))
SELECT_FLAKY_RUNS = SELECT_RUNS.where(or_(runs.c.is_flaky.is_(True), runs.c.excused != _NO_TESTS))
SELECT_UNREAD = (
    select(merges.c.entry, merges.c.sha)
    .where(
        merges.c.queue_id == bindparam("of_queue"),
        merges.c.is_red.is_(None),
        merges.c.sha.is_not(None),
        merges.c.merged_at >= bindparam("since"),
    )
    .order_by(merges.c.merged_at)
    .limit(bindparam("at_most"))
)
# A merge that is noted already happened once.
INSERT = upsert(merges).on_conflict_do_nothing()
NOTE_RED = (
    update(merges).where(merges.c.entry == bindparam("of_entry")).values(is_red=bindparam("red"))
)


class Submission(NamedTuple):
    """A submission to a queue in shadow, and its merge by others if that was seen."""

    entry: str
    pr: int
    head: Sha
    state: EntryState
    reason: Reason
    submitted_at: datetime
    state_since: datetime
    would_land_at: datetime | None
    is_live: bool
    is_merge_seen: bool
    merged_at: datetime | None
    sha: Sha | None
    is_red: bool | None

    @property
    def has_verdict(self) -> bool:
        """Return whether it passed or failed here."""
        return self.would_land_at is not None or self.state is EntryState.FAILED


@dataclass(frozen=True, slots=True)
class SeenMerge:
    """A merge by others of the head that a submission had."""

    entry: str
    merged_at: datetime | None
    sha: Sha | None


class RunCounts(NamedTuple):
    """The finished test runs of a time, and those in which known flaky failures were found."""

    runs: int
    flaky: int


def submissions(session: Connection, queue_id: int, at_most: int) -> list[Submission]:
    """Return the newest submissions of a queue, newest first."""
    rows = session.execute(SELECT_SUBMISSIONS, {"of_queue": queue_id, "at_most": at_most})
    return [
        Submission(row[0], row[1], row[2], EntryState(row[3]), Reason(row[4]), *row[5:])
        for row in rows
    ]


def counted(known: Iterable[Submission], since: datetime, until: datetime) -> list[Submission]:
    """Return one of each head in a time: the newest with a verdict, else the newest.

    `known`: the newest first, as is the answer.
    """
    heads: dict[tuple[int, Sha], Submission] = {}
    for one in known:
        if since <= one.submitted_at <= until:
            other = heads.setdefault((one.pr, one.head), one)
            if one.has_verdict and not other.has_verdict:
                heads[one.pr, one.head] = one
    return list(heads.values())


def run_counts(session: Connection, queue_id: int, since: datetime, until: datetime) -> RunCounts:
    """Return how many test runs finished in a time."""
    binds = {"of_queue": queue_id, "since": since, "until": until}
    counts = (session.execute(each, binds).scalar_one() for each in _COUNTS)
    return RunCounts(*counts)


_COUNTS = (SELECT_RUNS, SELECT_FLAKY_RUNS)


def unread(
    session: Connection, queue_id: int, since: datetime, at_most: int
) -> list[tuple[str, Sha]]:
    """Return merges whose checks on the target are not all known, as entry and commit."""
    binds = {"of_queue": queue_id, "since": since, "at_most": at_most}
    return [(entry, Sha(sha)) for entry, sha in session.execute(SELECT_UNREAD, binds)]


def note_merges(session: Connection, queue: QueueRef, seen: Sequence[SeenMerge]) -> None:
    """Store merges by others; those that are stored stay."""
    for one in seen:
        session.execute(
            INSERT,
            {
                "entry": one.entry,
                "org_id": queue.org_id,
                "queue_id": queue.id,
                "merged_at": one.merged_at,
                "sha": one.sha,
                "is_red": None,
            },
        )


def note_red(session: Connection, entry: str, *, is_red: bool) -> None:
    """Store whether a required check failed on the commit of a merge."""
    session.execute(NOTE_RED, {"of_entry": entry, "red": is_red})
