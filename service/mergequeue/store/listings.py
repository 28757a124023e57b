"""Pages of long lists: each query begins behind a row, or at a number of rows.

Every query has an index in its order, so a page costs what it shows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import cast

from sqlalchemy import BindParameter, Connection, bindparam, desc, func, select, tuple_

from service.database.codec import JsonCodec
from service.database.types import Id, Utc
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.outputs import BisectionOpened
from service.mergequeue.engine.states import (
    FINAL,
    PROBE_SLOTS,
    EntryState,
    QueueState,
    RunKind,
    RunStatus,
)
from service.mergequeue.store.journal import journal
from service.mergequeue.store.queues import SELECT_REFS_AFTER, repositories
from service.mergequeue.store.rows import (
    ENTRIES,
    TESTED,
    Question,
    entries,
    entries_of,
    members,
    queues,
    runs,
)
from service.vocabulary import RepoRef, Sha

CONFIG: JsonCodec[QueueConfig] = JsonCodec(QueueConfig)


_QUEUE: BindParameter[int] = bindparam("of_queue")
_LIMIT: BindParameter[int] = bindparam("at_most")

SELECT_QUEUES = SELECT_REFS_AFTER.add_columns(
    queues.c.state, queues.c.config, queues.c.revision
).where(repositories.c.org_id == bindparam("of_org"))
SELECT_QUEUES_WITHIN = SELECT_QUEUES.where(
    repositories.c.id.in_(bindparam("within", expanding=True))
)
SELECT_COUNTS = (
    select(entries.c.queue_id, entries.c.state, func.count().label("many"))
    .where(entries.c.queue_id.in_(bindparam("of_queues", expanding=True)), entries.c.live.is_(True))
    .group_by(entries.c.queue_id, entries.c.state)
)

SELECT_ENDED = (
    select(entries.c.no, entries.c.state_since)
    .where(
        entries.c.queue_id == _QUEUE,
        entries.c.live.is_(False),
        entries.c.state == bindparam("of_state"),
        entries.c.state_since >= bindparam("since"),
        tuple_(entries.c.state_since, entries.c.no)
        < tuple_(bindparam("before", type_=Utc), bindparam("before_no", type_=Id)),
    )
    .order_by(desc(entries.c.state_since), desc(entries.c.no))
    .limit(_LIMIT)
)
SELECT_ENTRIES = (
    select(entries.c.no, entries.c.id)
    .where(
        entries.c.queue_id == _QUEUE,
        entries.c.no < bindparam("before_no", type_=Id),
        entries.c.state.in_(bindparam("of_states", expanding=True)),
    )
    .order_by(desc(entries.c.no))
    .limit(_LIMIT)
)
SELECT_ENTRIES_ENDED = SELECT_ENTRIES.where(
    entries.c.live.is_(False),
    entries.c.state_since >= bindparam("since", type_=Utc),
    entries.c.state_since < bindparam("until", type_=Utc),
)
SELECT_NUMBERED = ENTRIES.where(entries.c.no.in_(bindparam("of_numbers", expanding=True)))
SELECT_NEWEST_ENDED = (
    select(func.max(entries.c.no))
    .where(
        entries.c.queue_id == _QUEUE,
        entries.c.pr.in_(bindparam("of_prs", expanding=True)),
        entries.c.live.is_(False),
    )
    .group_by(entries.c.pr)
)

# A test of the target alone tests no pull request, so no list of theirs has it.
_TESTS_ANY = runs.c.kind != RunKind.TIP.value
_BUILT = (runs.c.queue_id == _QUEUE) & runs.c.sha.is_not(None) & _TESTS_ANY
_STATUS = runs.c.status == bindparam("of_status")
# By way of its submissions: numbers of pull requests have no index among the tested.
_TESTS_PR = runs.c.id.in_(
    select(members.c.run_id)
    .join(entries, entries.c.id == members.c.entry)
    .where(
        entries.c.queue_id == _QUEUE,
        entries.c.pr == bindparam("of_pr"),
        members.c.role == TESTED,
    )
)
_FILTERS = {
    (False, False): (_BUILT,),
    (False, True): (_BUILT, _STATUS),
    (True, False): (_BUILT, _TESTS_PR),
    (True, True): (_BUILT, _TESTS_PR, _STATUS),
}
_RUN = (
    runs.c.no,
    runs.c.id,
    runs.c.kind,
    runs.c.status,
    runs.c.number,
    runs.c.cause,
    runs.c.created_at,
    runs.c.finished_at,
    runs.c.sha,
)
SELECT_RUNS = {
    filtered: select(*_RUN)
    .where(*where, runs.c.no < bindparam("before_no", type_=Id))
    .order_by(desc(runs.c.no))
    .limit(_LIMIT)
    .offset(bindparam("skipped"))
    for filtered, where in _FILTERS.items()
}
COUNT_RUNS = {
    filtered: select(func.count()).select_from(runs).where(*where)
    for filtered, where in _FILTERS.items()
}
SELECT_TESTED = (
    select(members.c.run_id, members.c.pr, entries.c.state)
    .outerjoin(entries, entries.c.id == members.c.entry)
    .where(members.c.run_id.in_(bindparam("of_runs", expanding=True)), members.c.role == TESTED)
    .order_by(members.c.run_id, members.c.position)
)
SELECT_SEARCHED = select(journal.c.run).where(
    journal.c.run.in_(bindparam("of_runs", expanding=True)),
    journal.c.queue_id == _QUEUE,
    journal.c.event == BisectionOpened.__name__,
)


@dataclass(frozen=True, slots=True)
class ListedQueue:
    """One queue. `depth`: entries past NOT_READY, `testing`: those in TESTING."""

    repository_id: int
    repo: RepoRef
    branch: str
    state: QueueState
    mode: Mode
    revision: int
    depth: int
    not_ready: int
    testing: int


@dataclass(frozen=True, slots=True)
class EndedSpan:
    """Ended submissions of these states, ended since a time and before a row.

    The row is named by its end and its number; number 0 comes before all of that time.
    """

    states: frozenset[EntryState]
    since: datetime
    before: tuple[datetime, int]


NEWEST = 2**63 - 1
"""Above the number of every row: before it is the newest one."""


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Submissions in these states; with `ended` those that ended in `[since, until)`."""

    states: frozenset[EntryState]
    ended: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs of a pull request and in a status; None: any.

    Those with an id in `failing` are under way and count as failed.
    """

    pr: int | None = None
    status: RunStatus | None = None
    failing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run that has a test branch; `no` is its number among all.

    `conclusion`: how the first submission that it tested ended, None while that is open.
    `is_of_search`: it searched for the culprit of a failure; `began_search`: it is that failure.
    """

    no: int
    id: str
    number: int
    prs: tuple[int, ...]
    status: RunStatus
    conclusion: EntryState | None
    is_of_search: bool
    kind: RunKind
    began_search: bool
    cause: str | None
    created_at: datetime
    finished_at: datetime | None
    sha: Sha


def queues_after(
    session: Connection,
    org_id: int,
    within: frozenset[int] | None,
    after: tuple[int, str],
    limit: int,
) -> tuple[ListedQueue, ...]:
    """Return queues of an organization, not deleted, by repository and branch, behind `after`.

    `within` are the repositories to include, None: all. `(0, "")` is the beginning.
    """
    binds = {
        "of_org": org_id,
        "after_repository": after[0],
        "after_branch": after[1],
        "at_most": limit,
    }
    if within is None:
        found = session.execute(SELECT_QUEUES, binds).all()
    else:
        found = session.execute(SELECT_QUEUES_WITHIN, {**binds, "within": sorted(within)}).all()
    counts = counts_of(session, [row.id for row in found])
    return tuple(
        ListedQueue(
            repository_id=row.repository_id,
            repo=RepoRef(row.host, row.owner, row.name),
            branch=row.branch,
            state=QueueState(row.state),
            mode=CONFIG.decode(row.config).mode,
            revision=row.revision,
            depth=sum(counts[row.id].values()) - counts[row.id][EntryState.NOT_READY],
            not_ready=counts[row.id][EntryState.NOT_READY],
            testing=counts[row.id][EntryState.TESTING],
        )
        for row in found
    )


def counts_of(session: Connection, queue_ids: Sequence[int]) -> dict[int, Counter[EntryState]]:
    """Return the number of live entries of each queue by state."""
    counts: dict[int, Counter[EntryState]] = {each: Counter() for each in queue_ids}
    if queue_ids:
        for row in session.execute(SELECT_COUNTS, {"of_queues": queue_ids}):
            counts[row.queue_id][EntryState(row.state)] = row.many
    return counts


def ended(session: Connection, queue_id: int, span: EndedSpan, limit: int) -> tuple[Entry, ...]:
    """Return ended submissions of a queue, the last ended first."""
    binds = {
        "of_queue": queue_id,
        "since": span.since,
        "before": span.before[0],
        "before_no": span.before[1],
        "at_most": limit,
    }
    # A query for each state, so that a rare state is not searched for among all others.
    by_state = [
        [
            (row.state_since, row.no)
            for row in session.execute(SELECT_ENDED, {**binds, "of_state": state.value})
        ]
        for state in sorted(span.states)
    ]
    newest = islice(merge(*by_state, reverse=True), limit)
    return numbered(session, [no for _, no in newest])


def entries_before(
    session: Connection, queue_id: int, entry_filter: EntryFilter, before: int, limit: int
) -> dict[int, str]:
    """Return the ids of submissions by their number, the newest first, before a number."""
    binds: dict[str, object] = {
        "of_queue": queue_id,
        "of_states": sorted(each.value for each in entry_filter.states),
        "before_no": before,
        "at_most": limit,
    }
    question = SELECT_ENTRIES
    if entry_filter.ended is not None:
        question = SELECT_ENTRIES_ENDED
        binds["since"], binds["until"] = entry_filter.ended
    return {row.no: row.id for row in session.execute(question, binds)}


def newest_ended(session: Connection, queue_id: int, numbers: Sequence[int]) -> tuple[Entry, ...]:
    """Return the last ended submission of each pull request, in no order."""
    binds = {"of_queue": queue_id, "of_prs": numbers}
    return numbered(session, session.execute(SELECT_NEWEST_ENDED, binds).scalars().all())


def numbered(session: Connection, numbers: Sequence[int]) -> tuple[Entry, ...]:
    """Return these submissions, in the order of the numbers."""
    if not numbers:
        return ()
    by_age = entries_of(session, SELECT_NUMBERED, {"of_numbers": numbers})
    by_number = dict(zip(sorted(numbers), by_age, strict=True))
    return tuple(by_number[no] for no in numbers)


def built_runs(
    session: Connection, queue_id: int, run_filter: RunFilter, place: tuple[int, int], limit: int
) -> tuple[ListedRun, ...]:
    """Return runs with a test branch, the newest first.

    `place`: those before this number, after so many of them.
    """
    before, skipped = place
    binds = _run_binds(queue_id, run_filter)
    binds |= {"before_no": before, "skipped": skipped, "at_most": limit}
    found = session.execute(_of_status(SELECT_RUNS, run_filter), binds).all()
    ids = [row.id for row in found]
    if not ids:
        return ()
    tested: dict[str, list[tuple[int, str | None]]] = {each: [] for each in ids}
    for row in session.execute(SELECT_TESTED, {"of_runs": ids}):
        tested[row.run_id].append((row.pr, row.state))
    searched = set(
        session.execute(SELECT_SEARCHED, {"of_queue": queue_id, "of_runs": ids}).scalars()
    )
    return tuple(
        ListedRun(
            no=row.no,
            id=row.id,
            number=row.number,
            prs=tuple(pr for pr, _ in tested[row.id]),
            status=_status(row.id, RunStatus(row.status), run_filter),
            conclusion=_conclusion_of_first(tested[row.id]),
            is_of_search=RunKind(row.kind) in PROBE_SLOTS,
            kind=RunKind(row.kind),
            began_search=row.id in searched,
            cause=row.cause,
            created_at=row.created_at,
            finished_at=row.finished_at,
            sha=Sha(row.sha),
        )
        for row in found
    )


def built_runs_count(session: Connection, queue_id: int, run_filter: RunFilter) -> int:
    """Return the number of these runs."""
    binds = _run_binds(queue_id, run_filter)
    found = session.execute(_of_status(COUNT_RUNS, run_filter), binds)
    return cast("int", found.one()[0])


def _of_status(questions: Mapping[tuple[bool, bool], Question], run_filter: RunFilter) -> Question:
    """Return the question with these filters, in which failing runs count as failed."""
    of_pr, status = run_filter.pr is not None, run_filter.status
    if not run_filter.failing or status not in (RunStatus.IN_PROGRESS, RunStatus.FAILED):
        return questions[of_pr, status is not None]
    is_failing = runs.c.id.in_(sorted(run_filter.failing))
    own = runs.c.status == RunStatus.IN_PROGRESS.value
    if status is RunStatus.IN_PROGRESS:
        return questions[of_pr, False].where(own, ~is_failing)
    return questions[of_pr, False].where(
        (runs.c.status == RunStatus.FAILED.value) | (own & is_failing)
    )


def _status(run: str, status: RunStatus, run_filter: RunFilter) -> RunStatus:
    is_failing = status is RunStatus.IN_PROGRESS and run in run_filter.failing
    return RunStatus.FAILED if is_failing else status


def _run_binds(queue_id: int, run_filter: RunFilter) -> dict[str, object]:
    binds: dict[str, object] = {"of_queue": queue_id}
    if run_filter.pr is not None:
        binds["of_pr"] = run_filter.pr
    if run_filter.status is not None:
        # Not every question asks for it.
        binds["of_status"] = run_filter.status.value
    return binds


def _conclusion_of_first(tested: Sequence[tuple[int, str | None]]) -> EntryState | None:
    state = tested[0][1] if tested else None
    return EntryState(state) if state is not None and EntryState(state) in FINAL else None
