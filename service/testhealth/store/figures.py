"""How often tests fail, counted exactly (FLAKY.md 7.1, 7.2).

A passing test leaves no attempt of its own where it was tried once, but stands in its upload's
set: so whole days come from counts and sets that are not counted yet, and a part of a day from
attempts and sets.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from service.database import bulk
from service.database.caches import Caches
from service.database.direct import Direct
from service.database.types import Utc, instant
from service.testhealth.detector import figures
from service.testhealth.store import tallies
from service.testhealth.store.parts import AHEAD, DAY, WEEK, CutDays
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.today import CountsOfToday
from service.testhealth.store.uploads_rows import daily, uploads


class Rates(NamedTuple):
    """Shares of failed attempts over the last 168 and 24 hours."""

    week: float = 0.0
    day: float = 0.0


_HERE: BindParameter[int] = bindparam("of_repository")

SELECT_EDGES = Direct(
    select(
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
            for part in (WEEK, DAY, AHEAD)
        )
    )
)


class Measures:
    """What is kept between two questions for rates. Used from several threads."""

    def __init__(self, sets: OutcomeSets) -> None:
        self.sets = sets
        self.cut_days = CutDays(sets)
        self.today = CountsOfToday(sets)


def measures_of(caches: Caches) -> Measures:
    """Return the measures that are kept beside this process's outcome sets."""
    return caches.of(Measures, lambda: Measures(caches.of(OutcomeSets)))


def rates(
    session: Connection, measures: Measures, repository_id: int, nos: Sequence[int], now: datetime
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
    as_of, held = measures.cut_days.held(session, repository_id, nos, told)
    today = measures.today.of(session, repository_id, nos, (day.whole_from, as_of))
    found = {}
    for no in nos:
        passed, failed = today[no]
        week_passed, week_failed, day_passed, day_failed = held[no]
        found[no] = Rates(
            figures.rate(week_passed + passed, week_failed + failed),
            figures.rate(day_passed + passed, day_failed + failed),
        )
    return found


def next_change(session: Connection, repository_id: int, now: datetime) -> datetime | None:
    """When an upload enters or leaves a window of the rates, None: no time changes any rate."""
    told = {
        "of_repository": repository_id,
        "week_after": now - figures.WEEK,
        "day_after": now - figures.DAY,
        "ahead_after": now,
    }
    ((in_week, in_day, ahead),) = SELECT_EDGES.rows(session, told)
    edges = ((in_week, figures.WEEK), (in_day, figures.DAY), (ahead, timedelta()))
    return min((instant(at) + span for at, span in edges if at is not None), default=None)


SELECT_RESULTS = Direct(
    select(daily.c.no, func.sum(daily.c.results))
    .where(daily.c.repository_id == _HERE, bulk.among(daily.c.no, "of_numbers"))
    .group_by(daily.c.no)
)


def results(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int]
) -> Counter[int]:
    """Number → results of 400 days; tests without any are left out."""
    if not nos:
        return Counter()
    told = {"of_repository": repository_id, "of_numbers": nos}
    found = tallies.passed(session, sets, repository_id, nos)
    found.update({no: int(many) for no, many in SELECT_RESULTS.rows(session, told)})
    return found
