"""Many queues in brief, and the landings of many runs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    desc,
    func,
    literal_column,
    or_,
    select,
)

from service.database.codec import JsonCodec
from service.database.types import Utc
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Entry, Hold, MergeQueue
from service.mergequeue.engine.states import FINAL, EntryState, QueueState, RunStatus
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.mergequeue.store import listings
from service.mergequeue.store.landings import LANDING, landings
from service.mergequeue.store.queues import SELECT_REFS, SELECT_REFS_AFTER, ref_of, repositories
from service.mergequeue.store.rows import entries, queues, runs
from service.vocabulary import Actor, QueueRef, RepoRef

ACTOR: JsonCodec[Actor] = JsonCodec(Actor)
HOLDS: JsonCodec[tuple[Hold, ...]] = JsonCodec(tuple[Hold, ...])

OF_LANDED = (LandingState.LANDED, LandingState.MISMATCH)
"""States of a landing that changed the branch."""


DAYS = 14
"""Days whose ended entries are counted, each of 24 hours, the newest ending now."""
DAY = timedelta(hours=24)
WEEKS = 4
"""Weeks whose same day is counted, before the present day."""
MERGED_MAX = 5000
"""Newest merged entries of a day whose times are read."""

_LATE = entries.c.state_since >= bindparam("since")
_THESE: BindParameter[Sequence[int]] = bindparam("of_queues", expanding=True)


_QUEUES = SELECT_REFS_AFTER.add_columns(
    queues.c.uid,
    queues.c.config,
    queues.c.state,
    queues.c.state_reason,
    queues.c.state_since,
    queues.c.state_by,
    queues.c.target_mode,
    queues.c.holds,
)
_OF_ORG = _QUEUES.where(repositories.c.org_id == bindparam("of_org"))
_IN_THESE = repositories.c.id.in_(bindparam("within", expanding=True))
SELECT_WITH_QUEUES = (
    select(repositories)
    .where(
        repositories.c.id.in_(select(queues.c.repository_id).where(queues.c.deleted.is_(False))),
        repositories.c.host == bindparam("of_host"),
        repositories.c.id > bindparam("after"),
    )
    .order_by(repositories.c.id)
    .limit(bindparam("at_most"))
)
SELECT_RUNNING = (
    select(runs.c.queue_id, func.count().label("many"))
    .where(
        runs.c.queue_id.in_(_THESE),
        runs.c.live.is_(True),
        runs.c.status == RunStatus.IN_PROGRESS.value,
    )
    .group_by(runs.c.queue_id)
)
SELECT_OLDEST = (
    select(
        entries.c.queue_id,
        func.min(entries.c.submitted_at, type_=entries.c.submitted_at.type).label("at"),
    )
    .where(
        entries.c.queue_id.in_(_THESE),
        entries.c.live.is_(True),
        entries.c.state != EntryState.NOT_READY.value,
    )
    .group_by(entries.c.queue_id)
)
_DAY_EDGES = [bindparam(f"day_{nth}", type_=Utc) for nth in range(DAYS)]
SELECT_ENDED = (
    select(
        entries.c.queue_id,
        entries.c.state,
        case(*((entries.c.state_since >= edge, nth) for nth, edge in enumerate(_DAY_EDGES))).label(
            "days_ago"
        ),
        func.count().label("many"),
    )
    .where(
        entries.c.queue_id.in_(_THESE),
        entries.c.live.is_(False),
        entries.c.state.in_([literal_column(f"'{state.value}'") for state in sorted(FINAL)]),
        entries.c.state_since >= _DAY_EDGES[-1],
    )
    .group_by(entries.c.queue_id, entries.c.state, literal_column("days_ago"))
)
_WEEKS_AGO = {
    nth: (bindparam(f"since_{nth}", type_=Utc), bindparam(f"until_{nth}", type_=Utc))
    for nth in range(1, WEEKS + 1)
}
SELECT_WEEKS_AGO = (
    select(
        case(
            *((entries.c.state_since >= since, nth) for nth, (since, _) in _WEEKS_AGO.items())
        ).label("weeks_ago"),
        func.count().label("many"),
    )
    .where(
        entries.c.queue_id.in_(_THESE),
        entries.c.live.is_(False),
        entries.c.state == literal_column("'MERGED'"),
        or_(
            *(
                and_(entries.c.state_since >= since, entries.c.state_since < until)
                for since, until in _WEEKS_AGO.values()
            )
        ),
    )
    .group_by(literal_column("weeks_ago"))
)
SELECT_MERGED = (
    select(
        entries.c.submitted_at,
        entries.c.state_since,
        func.coalesce(landings.c.tested_tree, landings.c.expected_tree).label("tested_tree"),
        landings.c.landed_tree,
        landings.c.state,
    )
    .outerjoin(
        landings,
        and_(
            landings.c.run == entries.c.verified_by,
            landings.c.entry == entries.c.id,
            landings.c.state.in_([each.value for each in OF_LANDED]),
        ),
    )
    .where(
        entries.c.queue_id.in_(_THESE),
        entries.c.live.is_(False),
        entries.c.state == literal_column("'MERGED'"),
        _LATE,
    )
    .order_by(desc(entries.c.state_since))
    .limit(MERGED_MAX)
)
_JUST_MERGED = (
    select(entries.c.no, entries.c.queue_id)
    .where(
        entries.c.queue_id.in_(_THESE),
        entries.c.live.is_(False),
        entries.c.state == literal_column("'MERGED'"),
        _LATE,
    )
    .order_by(desc(entries.c.state_since), desc(entries.c.no))
    .limit(bindparam("at_most"))
)
_JUST_ENDED = (
    select(entries.c.no, entries.c.queue_id)
    .where(
        entries.c.queue_id.in_(_THESE),
        entries.c.live.is_(False),
        entries.c.state.in_([literal_column(f"'{state.value}'") for state in sorted(FINAL)]),
        _LATE,
    )
    .order_by(desc(entries.c.state_since), desc(entries.c.no))
    .limit(bindparam("at_most"))
)
_NUMBERED = (
    SELECT_REFS.add_columns(func.max(entries.c.no).label("no"))
    .join(entries, (entries.c.queue_id == queues.c.id) & (entries.c.pr == bindparam("of_pr")))
    .where(queues.c.deleted.is_(False))
    .group_by(queues.c.id, repositories.c.id)
    .order_by(desc(func.max(entries.c.no)))
    .limit(bindparam("at_most"))
)
# Those of deleted queues too: a sum that only grows is another one after every change.
_CHANGES = select(func.coalesce(func.sum(queues.c.version), 0) + func.count())
SELECT_LANDINGS = (
    select(*LANDING.columns)
    .where(landings.c.run.in_(bindparam("of_runs", expanding=True)))
    .order_by(landings.c.id)
)


@dataclass(frozen=True, slots=True)
class QueueInBrief:
    """One queue; `value` has its state, settings and holds only.

    `counts`: live entries by state. `running`: test runs in progress. `oldest`: when the oldest
    entry past NOT_READY was submitted. `ended`: how many entries reached a final state on each of
    the last `DAYS` days, the oldest first.
    """

    ref: QueueRef
    value: MergeQueue
    counts: Counter[EntryState]
    running: int
    oldest: datetime | None
    ended: Mapping[EntryState, tuple[int, ...]]

    @property
    def depth(self) -> int:
        """The number of entries past NOT_READY."""
        return self.counts.total() - self.counts[EntryState.NOT_READY]


class Merged(NamedTuple):
    """A merged entry; `is_equal`: whether the landed tree is the tested one, None: no landing."""

    submitted_at: datetime
    merged_at: datetime
    is_equal: bool | None
    is_mismatch: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """The queues that somebody may see: of one organization or all, in some repositories or all.

    `queues`: only these of them, by id.
    """

    org_id: int | None = None
    within: frozenset[int] | None = None
    queues: frozenset[int] | None = None


def with_queues(session: Connection, host: str, after: int, limit: int) -> dict[int, RepoRef]:
    """Return repositories of a host that have a queue, by our id, in that order behind `after`."""
    binds = {"of_host": host, "after": after, "at_most": limit}
    found = session.execute(SELECT_WITH_QUEUES, binds)
    return {row.id: RepoRef(row.host, row.owner, row.name) for row in found}


def in_brief(
    session: Connection, scope: Scope, after: tuple[int, str], now: datetime, limit: int
) -> tuple[QueueInBrief, ...]:
    """Return queues by repository and branch, behind `after`; `(0, "")` is the beginning."""
    binds: dict[str, object] = {
        "after_repository": after[0],
        "after_branch": after[1],
        "at_most": limit,
    }
    statement = _QUEUES
    if scope.org_id is not None:
        statement, binds["of_org"] = _OF_ORG, scope.org_id
    if scope.within is not None:
        statement, binds["within"] = statement.where(_IN_THESE), sorted(scope.within)
    if scope.queues is not None:
        statement = statement.where(queues.c.id.in_(sorted(scope.queues)))
    found = session.execute(statement, binds).all()
    ids = [row.id for row in found]
    counts = listings.counts_of(session, ids)
    running = {row.queue_id: row.many for row in session.execute(SELECT_RUNNING, _these(ids))}
    oldest = {row.queue_id: row.at for row in session.execute(SELECT_OLDEST, _these(ids))}
    ended = _ended(session, ids, now)
    return tuple(
        QueueInBrief(
            ref=ref_of(row),
            value=_value(row),
            counts=counts[row.id],
            running=running.get(row.id, 0),
            oldest=oldest.get(row.id),
            ended={
                state: tuple(ended[row.id, state, nth] for nth in reversed(range(DAYS)))
                for state in FINAL
            },
        )
        for row in found
    )


def _ended(
    session: Connection, queue_ids: Sequence[int], now: datetime
) -> Counter[tuple[int, EntryState, int]]:
    """Count ended entries by queue, state, and how many days ago."""
    edges = {f"day_{nth}": now - (nth + 1) * DAY for nth in range(DAYS)}
    found = session.execute(SELECT_ENDED, {**_these(queue_ids), **edges})
    return Counter({(row.queue_id, EntryState(row.state), row.days_ago): row.many for row in found})


def merged_weeks_ago(
    session: Connection, queue_ids: Sequence[int], now: datetime
) -> tuple[int, ...]:
    """Return how many entries merged in the 24 hours that ended 1, 2, 3 and 4 weeks ago."""
    ends = {nth: now - timedelta(weeks=nth) for nth in _WEEKS_AGO}
    edges = {f"until_{nth}": end for nth, end in ends.items()}
    edges |= {f"since_{nth}": end - DAY for nth, end in ends.items()}
    found = session.execute(SELECT_WEEKS_AGO, {**_these(queue_ids), **edges})
    counted = {row.weeks_ago: row.many for row in found}
    return tuple(counted.get(nth, 0) for nth in _WEEKS_AGO)


def merged(session: Connection, queue_ids: Sequence[int], since: datetime) -> list[Merged]:
    """Return the newest entries that merged in these queues since a time."""
    if not queue_ids:
        return []
    found = session.execute(SELECT_MERGED, {**_these(queue_ids), "since": since})
    return [
        Merged(
            row.submitted_at,
            row.state_since,
            None if row.state is None else row.landed_tree == row.tested_tree,
            row.state == LandingState.MISMATCH.value,
        )
        for row in found
    ]


def just_merged(
    session: Connection, queue_ids: Sequence[int], since: datetime, limit: int
) -> tuple[tuple[int, Entry], ...]:
    """Return queues with submissions of theirs that merged since a time, the last ones first."""
    if not queue_ids:
        return ()
    binds = {**_these(queue_ids), "since": since, "at_most": limit}
    found = session.execute(_JUST_MERGED, binds).all()
    newest = listings.numbered(session, [row.no for row in found])
    return tuple((row.queue_id, entry) for row, entry in zip(found, newest, strict=True))


def numbered(
    session: Connection, scope: Scope, number: int, limit: int
) -> tuple[tuple[QueueRef, Entry], ...]:
    """Return the newest submission of a pull request of this number in each queue of a scope."""
    statement = _NUMBERED.where(*_within(scope))
    found = session.execute(statement, {"of_pr": number, "at_most": limit}).all()
    newest = listings.numbered(session, [row.no for row in found])
    return tuple((ref_of(row), entry) for row, entry in zip(found, newest, strict=True))


def changes(session: Connection, scope: Scope) -> int:
    """Return a number that changes with every queue within a scope."""
    return int(session.execute(_CHANGES.where(*_within(scope))).scalar_one())


def refs(session: Connection, scope: Scope, limit: int) -> tuple[QueueRef, ...]:
    """Return queues by repository and branch."""
    binds = {"after_repository": 0, "after_branch": "", "at_most": limit}
    found = session.execute(SELECT_REFS_AFTER.where(*_within(scope)), binds)
    return tuple(map(ref_of, found))


def just_ended(
    session: Connection, queue_ids: Sequence[int], since: datetime, limit: int
) -> tuple[tuple[int, Entry], ...]:
    """Return queues with submissions that left them since a time, the last ones first."""
    if not queue_ids:
        return ()
    binds = {**_these(queue_ids), "since": since, "at_most": limit}
    found = session.execute(_JUST_ENDED, binds).all()
    newest = listings.numbered(session, [row.no for row in found])
    return tuple((row.queue_id, entry) for row, entry in zip(found, newest, strict=True))


def _within(scope: Scope) -> Iterator[ColumnElement[bool]]:
    if scope.org_id is not None:
        yield queues.c.org_id == scope.org_id
    if scope.within is not None:
        yield queues.c.repository_id.in_(sorted(scope.within))
    if scope.queues is not None:
        yield queues.c.id.in_(sorted(scope.queues))


def _value(row: Row[*tuple[object, ...]]) -> MergeQueue:
    return MergeQueue(
        id=row.id,
        uid=row.uid,
        branch=row.branch,
        config=listings.CONFIG.decode(row.config),
        state=QueueState(row.state),
        state_reason=row.state_reason,
        state_since=row.state_since,
        state_by=None if row.state_by is None else ACTOR.decode(row.state_by),
        target_mode=None if row.target_mode is None else Mode(row.target_mode),
        holds=HOLDS.decode(row.holds),
    )


def _these(queue_ids: Sequence[int]) -> dict[str, object]:
    return {"of_queues": queue_ids}


def landings_of(session: Connection, run_ids: Sequence[str]) -> tuple[LandingRecord, ...]:
    """Return all landings of these runs, in the order they were meant."""
    if not run_ids:
        return ()
    return tuple(
        LANDING.value(row) for row in session.execute(SELECT_LANDINGS, {"of_runs": run_ids})
    )
