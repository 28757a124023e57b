"""How often tests fail, and how, counted exactly (FLAKY.md 7.1, 7.2).

A passing test leaves no attempt of its own where it was tried once, but stands in its upload's
set: so whole days come from counts, and a part of a day from attempts and sets.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    BindParameter,
    Connection,
    bindparam,
    case,
    func,
    select,
)

from service.flaky import figures
from service.flaky.figures import Counts
from service.flaky.results import Outcome
from service.store.test_evidence import attempts, cases, daily, groups, uploads
from service.store.test_listings import Span
from service.store.test_parts import AHEAD, DAY, WEEK, CutDays
from service.store.types import Utc

GROUPS_MAX = 5
"""Failure groups that are shown of a test (API.md 8.2)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of failed attempts over the last 168 and 24 hours."""

    week: float = 0.0
    day: float = 0.0


@dataclass(frozen=True, slots=True)
class CommonFailure:
    """One way to fail: its headline, how many attempts failed so, and when the last one did."""

    headline: str
    count: int
    last_at: datetime


_HERE: BindParameter[int] = bindparam("of_repository")
_NUMBERS: BindParameter[int] = bindparam("of_numbers", expanding=True)

_IN_DAY = daily.c.day >= bindparam("day_from")
SELECT_DAYS = (
    select(
        daily.c.no,
        func.sum(daily.c.passed).label("week_passed"),
        func.sum(daily.c.failed).label("week_failed"),
        func.sum(case((_IN_DAY, daily.c.passed), else_=0)).label("day_passed"),
        func.sum(case((_IN_DAY, daily.c.failed), else_=0)).label("day_failed"),
    )
    .where(
        daily.c.repository_id == _HERE,
        daily.c.no.in_(_NUMBERS),
        daily.c.day >= bindparam("week_from"),
    )
    .group_by(daily.c.no)
)

SELECT_EDGES = select(
    *(
        select(uploads.c.ran_at)
        .where(
            uploads.c.repository_id == _HERE,
            uploads.c.is_eligible.is_(True),
            uploads.c.ran_at > bindparam(f"{part}_after", type_=Utc),
        )
        .order_by(uploads.c.ran_at)
        .limit(1)
        .scalar_subquery()
        .label(part)
        for part in (WEEK, DAY, AHEAD)
    )
)
SELECT_GROUPS = (
    select(
        attempts.c.no,
        attempts.c.failure,
        func.count().label("many"),
        func.max(attempts.c.ran_at, type_=Utc).label("last_at"),
    )
    .where(
        attempts.c.repository_id == _HERE,
        attempts.c.no.in_(_NUMBERS),
        attempts.c.is_eligible.is_(True),
        attempts.c.outcome == Outcome.FAILED.value,
        attempts.c.failure.is_not(None),
        attempts.c.ran_at >= bindparam("since", type_=Utc),
        attempts.c.ran_at < bindparam("until", type_=Utc),
    )
    .group_by(attempts.c.no, attempts.c.failure)
)
SELECT_HEADLINES = select(groups.c.key, groups.c.headline).where(
    groups.c.repository_id == _HERE, groups.c.key.in_(bindparam("of_keys", expanding=True))
)


def rates(
    session: Connection, cut_days: CutDays, repository_id: int, nos: Sequence[int], now: datetime
) -> dict[int, Rates]:
    """Number of each test → its rates at `now`."""
    if not nos:
        return {}
    week, day = figures.window(now, figures.WEEK), figures.window(now, figures.DAY)
    told = {
        "of_repository": repository_id,
        "week_from": week.whole_from,
        "day_from": day.whole_from,
        "week_after": week.start,
        "week_before": week.part_end,
        "day_after": day.start,
        "day_before": day.part_end,
        "ahead_after": now,
    }
    held = cut_days.held(session, repository_id, nos, told)
    found = {}
    days = {row.no: row for row in session.execute(SELECT_DAYS, told | {"of_numbers": nos})}
    for no in nos:
        in_week, in_day = held[no]
        if (row := days.get(no)) is not None:
            in_week += Counts(row.week_passed, row.week_failed)
            in_day += Counts(row.day_passed, row.day_failed)
        found[no] = Rates(figures.rate(in_week), figures.rate(in_day))
    return found


def next_change(session: Connection, repository_id: int, now: datetime) -> datetime | None:
    """When an upload enters or leaves a window of the rates, None: no time changes any rate."""
    told = {
        "of_repository": repository_id,
        "week_after": now - figures.WEEK,
        "day_after": now - figures.DAY,
        "ahead_after": now,
    }
    row = session.execute(SELECT_EDGES, told).one()
    edges = ((row.week, figures.WEEK), (row.day, figures.DAY), (row.ahead, timedelta()))
    return min((at + span for at, span in edges if at is not None), default=None)


def common_failures(
    session: Connection, repository_id: int, nos: Sequence[int], span: Span
) -> dict[int, tuple[CommonFailure, ...]]:
    """Number of each test → its groups in the span, the most common first, then the newest."""
    if not nos:
        return {}
    told = {
        "of_repository": repository_id,
        "of_numbers": nos,
        "since": span.since,
        "until": span.until,
    }
    by_test: dict[int, list[tuple[int, datetime, str]]] = defaultdict(list)
    for row in session.execute(SELECT_GROUPS, told):
        by_test[row.no].append((row.many, row.last_at, row.failure))
    shown = {no: sorted(found, reverse=True)[:GROUPS_MAX] for no, found in by_test.items()}
    keys = sorted({key for found in shown.values() for _, _, key in found})
    headlines = _headlines(session, repository_id, keys)
    return {
        no: tuple(CommonFailure(headlines.get(key, ""), many, at) for many, at, key in found)
        for no, found in shown.items()
    }


def _headlines(session: Connection, repository_id: int, keys: list[str]) -> dict[str, str]:
    if not keys:
        return {}
    told = {"of_repository": repository_id, "of_keys": keys}
    return {row.key: row.headline for row in session.execute(SELECT_HEADLINES, told)}


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of a test without judging it; `results` are those of 400 days."""

    no: int
    results: int
    first_run_at: datetime
    has_failed: bool


SELECT_PASTS = select(cases.c.no, cases.c.first_run_at, cases.c.last_failed_at).where(
    cases.c.repository_id == _HERE, cases.c.no.in_(_NUMBERS)
)
SELECT_RESULTS = (
    select(daily.c.no, func.sum(daily.c.results).label("results"))
    .where(daily.c.repository_id == _HERE, daily.c.no.in_(_NUMBERS))
    .group_by(daily.c.no)
)


def pasts(session: Connection, repository_id: int, nos: Sequence[int]) -> tuple[Past, ...]:
    """What is known of these tests, in no order."""
    if not nos:
        return ()
    told = {"of_repository": repository_id, "of_numbers": nos}
    results = {row.no: row.results for row in session.execute(SELECT_RESULTS, told)}
    return tuple(
        Past(row.no, results.get(row.no, 0), row.first_run_at, row.last_failed_at is not None)
        for row in session.execute(SELECT_PASTS, told)
    )
