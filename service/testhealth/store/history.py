"""Read how the attempts of one test ended, day by day.

Counted days come from `daily`. Attempts of the other days come from their rows, and single passes
from the sets of uploads, as in `figures.py`.
"""

from collections import Counter, defaultdict
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from service.database import bulk
from service.testhealth.detector.figures import beginning_of, day_of
from service.testhealth.reports.results import Outcome
from service.testhealth.store import days
from service.testhealth.store.attempts import attempts
from service.testhealth.store.days import Span
from service.testhealth.store.figures import INSTANT, daily
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.uploads import uploads

DAYS = 30
"""Days of a history, today included."""


class CaseDay(NamedTuple):
    """A UTC day of a test: attempts that passed, that failed, and whose failure was excused."""

    day: date
    passed: int
    failed: int
    excused: int


def days_of(
    session: Connection, sets: OutcomeSets, repository_id: int, no: int, now: datetime
) -> tuple[CaseDay, ...]:
    """Return the last 30 days of a test, oldest first; days without a run have zeros."""
    last = day_of(now)
    first = last - DAYS + 1
    cover = days.cover(session, repository_id, Span(beginning_of(first), now + INSTANT))
    passed, failed, excused = Counter[int](), Counter[int](), Counter[int]()
    of_days = select(daily.c.day, daily.c.passed, daily.c.failed, daily.c.quarantined).where(
        daily.c.repository_id == repository_id,
        daily.c.no == no,
        bulk.among(daily.c.day, "of_days"),
    )
    if cover.days:
        for row in session.execute(of_days, {"of_days": cover.days}):
            passed[row.day] += row.passed
            failed[row.day] += row.failed - row.quarantined
            excused[row.day] += row.quarantined
    for gap in cover.gaps:
        _add_attempts(session, (repository_id, no), gap, (passed, failed, excused))
        _add_passes(session, sets, (repository_id, no), gap, passed)
    return tuple(
        CaseDay(beginning_of(day).date(), passed[day], failed[day], excused[day])
        for day in range(first, last + 1)
    )


def _add_attempts(
    session: Connection,
    test: tuple[int, int],
    gap: Span,
    counters: tuple[Counter[int], Counter[int], Counter[int]],
) -> None:
    passed, failed, excused = counters
    statement = select(attempts.c.ran_at, attempts.c.outcome, attempts.c.is_quarantined).where(
        attempts.c.repository_id == test[0],
        attempts.c.no == test[1],
        attempts.c.is_eligible.is_(True),
        attempts.c.ran_at >= gap.since,
        attempts.c.ran_at < gap.until,
    )
    for ran_at, outcome, is_quarantined in session.execute(statement):
        if outcome == Outcome.PASSED.value:
            passed[day_of(ran_at)] += 1
        elif outcome == Outcome.FAILED.value:
            (excused if is_quarantined else failed)[day_of(ran_at)] += 1


def _add_passes(
    session: Connection,
    sets: OutcomeSets,
    test: tuple[int, int],
    gap: Span,
    passed: Counter[int],
) -> None:
    statement = select(uploads.c.passed, uploads.c.ran_at).where(
        uploads.c.repository_id == test[0],
        uploads.c.is_eligible.is_(True),
        uploads.c.ran_at >= gap.since,
        uploads.c.ran_at < gap.until,
        uploads.c.passed.is_not(None),
    )
    uses: defaultdict[str, list[int]] = defaultdict(list)
    for key, ran_at in session.execute(statement):
        uses[key].append(day_of(ran_at))
    for key, members in sets.members(session, test[0], uses, [test[1]]).items():
        if members:
            passed.update(uses[key])
