"""A queue's past, read from its rows for simulations and estimates.

Reads finished entries and runs, and from the journal when each entry was ready first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    and_,
    bindparam,
    desc,
    exists,
    func,
    select,
)

from service.database.codec import JsonCodec
from service.mergequeue.engine.explaining.estimates import OwnCi, Signs
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.outputs import EntryMoved
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.targets import Targets
from service.mergequeue.simulation.past import Head, Past
from service.mergequeue.store import pull_requests
from service.mergequeue.store.journal import journal
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
from service.vocabulary import QueueRef

ENTRIES_MAX = 20_000
"""Newest submissions that a simulation looks at: a year of a busy team."""

RUNS_MAX = 60_000

JUDGED_MAX = 1000
"""The chance of failing is estimated from this many newest submissions."""

PAIRS_MAX = 500
"""Heads per statement."""

FACTS: JsonCodec[Facts] = JsonCodec(Facts)

pulls = pull_requests.pull_requests

_QUEUE: BindParameter[int] = bindparam("of_queue")
_ENDED = (entries.c.queue_id == _QUEUE) & entries.c.live.is_(False)
_SINCE: BindParameter[datetime] = bindparam("since")

SELECT_ENTRIES = (
    ENTRIES.where(_ENDED, entries.c.submitted_at >= _SINCE)
    .order_by(None)
    .order_by(desc(entries.c.no))
    .limit(ENTRIES_MAX)
)
_NEWEST_RUNS = (
    select(runs.c.id)
    .where(runs.c.queue_id == _QUEUE, runs.c.live.is_(False), runs.c.created_at >= _SINCE)
    .order_by(desc(runs.c.no))
    .limit(RUNS_MAX)
)
_THESE_RUNS = runs.c.id.in_(_NEWEST_RUNS)
# What a run's checks said is in its status: those of no run are read.
SELECT_RUNS = RunQuestion(
    RUNS.where(_THESE_RUNS), MEMBERS.where(_THESE_RUNS), CHECKS.where(runs.c.id == "")
)
SELECT_READY = (
    select(journal.c.entry, func.min(journal.c.at).label("at"))
    .where(
        journal.c.queue_id == _QUEUE,
        journal.c.at >= _SINCE,
        journal.c.event == EntryMoved.__name__,
        journal.c.reason == Reason.NOW_READY.value,
    )
    .group_by(journal.c.entry)
)
_READY_AT_ONCE = exists().where(
    journal.c.queue_id == _QUEUE,
    journal.c.number == entries.c.pr,
    journal.c.entry == entries.c.id,
    journal.c.reason == Reason.NOW_READY.value,
    journal.c.at == entries.c.submitted_at,
)
_IS_ITS_HEAD = and_(
    pulls.c.repository_id == bindparam("of_repository"),
    pulls.c.number == entries.c.pr,
    pulls.c.head == entries.c.head,
)
SELECT_JUDGED = (
    select(
        _READY_AT_ONCE.label("ready_at_once"),
        entries.c.pr,
        entries.c.state,
        entries.c.reason,
        entries.c.facts,
        entries.c.submitted_at,
        pulls.c.seen_at,
    )
    .outerjoin(pulls, _IS_ITS_HEAD)
    .where(_ENDED)
    .order_by(desc(entries.c.no))
    .limit(JUDGED_MAX)
)
SELECT_FIRST_SEEN = (
    select(entries.c.pr, pulls.c.seen_at)
    .join(pulls, _IS_ITS_HEAD)
    .where(entries.c.queue_id == _QUEUE, entries.c.live.is_(True))
)


def past(session: Connection, queue: QueueRef, since: datetime) -> Past:
    """Return submissions that ended since then, and the runs of that time, oldest first.

    At most the newest 20,000 submissions and 60,000 runs.
    """
    binds = {"of_queue": queue.id, "since": since}
    found = tuple(reversed(entries_of(session, SELECT_ENTRIES, binds)))
    return Past(
        entries=found,
        runs=runs_found(session, SELECT_RUNS, binds),
        ready_at={row.entry: row.at for row in session.execute(SELECT_READY, binds)},
        targets=dict(_targets_of(session, queue.repository_id, found)),
    )


def _targets_of(
    session: Connection, repository_id: int, found: Sequence[Entry]
) -> Iterator[tuple[Head, Targets]]:
    for start in range(0, len(found), PAIRS_MAX):
        pairs = [(one.pr, one.head) for one in found[start : start + PAIRS_MAX]]
        yield from pull_requests.targets_of(session, repository_id, pairs).items()


@dataclass(frozen=True, slots=True)
class Judged:
    """Submissions that ended by a verdict.

    `samples` are what was known of each and whether it failed, oldest first; `failures` count
    failed submissions by pull request, `interactions` those that failed only together with others.
    """

    samples: tuple[tuple[Signs, bool], ...]
    failures: Mapping[int, int]
    interactions: int


def judged(session: Connection, queue: QueueRef) -> Judged:
    """Return of the newest 1,000 submissions that ended, those that landed or failed by a verdict.

    A head's age is known while it is the pull request's newest, its own checks when it was
    ready at once.
    """
    binds = {"of_queue": queue.id, "of_repository": queue.repository_id}
    failures: Counter[int] = Counter()
    samples = []
    interactions = 0
    for row in reversed(session.execute(SELECT_JUDGED, binds).all()):
        reason = Reason(row.reason)
        failed = row.state == EntryState.FAILED and reason.record.blames
        if failed or reason in (Reason.LANDED, Reason.LANDED_DIRECTLY):
            samples.append((_signs_of(row, failures[row.pr]), failed))
        failures[row.pr] += failed
        interactions += reason is Reason.INTERACTION
    counts = {pr: count for pr, count in failures.items() if count}
    return Judged(tuple(samples), counts, interactions)


def _signs_of(row: Row[*tuple[object, ...]], failed_before: int) -> Signs:
    seen_at = row.seen_at
    return Signs(
        author=FACTS.decode(row.facts).author,
        failed_before=failed_before,
        own_ci=OwnCi.PASSED if row.ready_at_once else None,
        age_s=None if seen_at is None else (row.submitted_at - seen_at).total_seconds(),
    )


def first_seen(session: Connection, queue: QueueRef) -> dict[int, datetime]:
    """Return when the head of each live entry was first seen, by pull request."""
    binds = {"of_queue": queue.id, "of_repository": queue.repository_id}
    return {row.pr: row.seen_at for row in session.execute(SELECT_FIRST_SEEN, binds)}
