"""Read how the newest runs of a queue ended, for its rates."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, and_, bindparam, desc, exists, func, or_, select

from service.mergequeue.engine.culprits.breaker import CI_TROUBLE
from service.mergequeue.engine.explaining import rates
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.store.rows import (
    CHECKS,
    MEMBERS,
    RUNS,
    RunQuestion,
    entries,
    members,
    runs,
    runs_found,
)

RUNS_MAX = 500
"""The flake rate is measured over this many newest runs that ended."""

TIMED_MAX = 50
"""Newest passed runs whose checks are timed."""

OUTSIDE = CI_TROUBLE | {Cause.BASE_RED, Cause.REPEATED_FAILURE}
"""Failures that say nothing about tests of a good tree."""

_QUEUE: BindParameter[int] = bindparam("of_queue")
_IS_TEST = and_(
    runs.c.queue_id == _QUEUE,
    # A try is made while everything fails.
    runs.c.kind.not_in([RunKind.DIRECT.value, RunKind.TRY.value]),
    runs.c.contained.is_(False),
    runs.c.reused_from.is_(None),
    # Failed checks that ran again are no whole test.
    runs.c.repeats.is_(None),
)
_NEWEST = (
    select(runs.c.id, runs.c.status, runs.c.cause, runs.c.is_flaky)
    .where(_IS_TEST, runs.c.status.in_([RunStatus.SUCCEEDED.value, RunStatus.FAILED.value]))
    .order_by(desc(runs.c.no))
    .limit(RUNS_MAX)
    .subquery()
)
_HAS_MERGED = exists().where(
    entries.c.queue_id == _QUEUE,
    entries.c.pr == members.c.pr,
    entries.c.head == members.c.head,
    entries.c.state == EntryState.MERGED.value,
)
_HAS_OTHERS = exists().where(members.c.run_id == _NEWEST.c.id, ~_HAS_MERGED)
_PASSED = _NEWEST.c.status == RunStatus.SUCCEEDED.value
_FLAKED = or_(
    _NEWEST.c.cause == Cause.KNOWN_FLAKY.value,
    and_(
        ~_PASSED,
        or_(_NEWEST.c.cause.is_(None), _NEWEST.c.cause.not_in([each.value for each in OUTSIDE])),
        ~_HAS_OTHERS,
    ),
    # It failed and passed on the same commit.
    and_(_PASSED, _NEWEST.c.is_flaky),
)
SELECT_COUNTS = select(
    func.count().filter(_PASSED).label("passed"), func.count().filter(_FLAKED).label("flaked")
).select_from(_NEWEST)
_TIMED = (
    select(runs.c.id)
    .where(_IS_TEST, runs.c.status == RunStatus.SUCCEEDED.value, runs.c.attempt == 1)
    .order_by(desc(runs.c.no))
    .limit(TIMED_MAX)
)
SELECT_TIMED = RunQuestion(
    RUNS.where(runs.c.id.in_(_TIMED)),
    MEMBERS.where(runs.c.id == ""),
    CHECKS.where(runs.c.id.in_(_TIMED)),
)


class RunOutcomes(NamedTuple):
    """The newest runs of a queue, as `rates.Outcomes` has them."""

    passed: int
    flaked: int
    minutes: Mapping[str, Sequence[float]]


def of_runs(session: Connection, queue_id: int) -> RunOutcomes:
    """Count the newest 500 runs that passed or failed, and time the newest 50 that passed.

    A run flaked if every head in it, those of its base included, merged although it failed; if
    known flaky tests failed it; or if it passed after known flaky tests had failed it.
    """
    binds = {"of_queue": queue_id}
    counts = session.execute(SELECT_COUNTS, binds).one()
    timed = runs_found(session, SELECT_TIMED, binds)
    return RunOutcomes(counts.passed, counts.flaked, rates.minutes_of(timed))
