"""Figures of tests, exact at every moment: rates of failure, results, and when tests last ran.

Counted days come from `daily`. For open days and the cut days at both ends, failed and retried
attempts come from their rows, and tests that passed at once from the sets of uploads.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, desc, func, select

from service.database import bulk
from service.database.types import Utc
from service.testhealth.detector import figures
from service.testhealth.reports.results import Outcome
from service.testhealth.store import days
from service.testhealth.store.attempts import attempts
from service.testhealth.store.days import EVER, Span
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tables_evidence import DailyRow
from service.testhealth.store.uploads import uploads

INSTANT = timedelta(microseconds=1)
"""The smallest difference of two times."""


class Rates(NamedTuple):
    """Shares of failed attempts over the last 168 and 24 hours."""

    week: float = 0.0
    day: float = 0.0


daily = DailyRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_ATTEMPTS = (
    attempts.c.repository_id == _HERE,
    bulk.among(attempts.c.no, "of_numbers"),
    attempts.c.is_eligible.is_(True),
    attempts.c.ran_at >= bindparam("since", type_=Utc),
    attempts.c.ran_at < bindparam("until", type_=Utc),
)
_UPLOADS = (
    uploads.c.repository_id == _HERE,
    uploads.c.is_eligible.is_(True),
    uploads.c.ran_at >= bindparam("since", type_=Utc),
    uploads.c.ran_at < bindparam("until", type_=Utc),
)
_DAILY = (
    daily.c.repository_id == _HERE,
    bulk.among(daily.c.day, "of_days"),
    bulk.among(daily.c.no, "of_numbers"),
)

SELECT_DAILY = (
    select(
        daily.c.no,
        func.sum(daily.c.passed),
        func.sum(daily.c.failed),
        func.sum(daily.c.results),
    )
    .where(*_DAILY)
    .group_by(daily.c.no)
)
SELECT_LAST_DAILY = (
    select(daily.c.no, func.max(daily.c.last_at, type_=Utc)).where(*_DAILY).group_by(daily.c.no)
)
SELECT_ATTEMPTS = (
    select(attempts.c.no, attempts.c.outcome, func.count())
    .where(*_ATTEMPTS)
    .group_by(attempts.c.no, attempts.c.outcome)
)
SELECT_RESULTS = (
    select(attempts.c.no, func.count(attempts.c.upload.distinct()))
    .where(*_ATTEMPTS, attempts.c.outcome != Outcome.SKIPPED.value)
    .group_by(attempts.c.no)
)
SELECT_LAST_ATTEMPTS = (
    select(attempts.c.no, func.max(attempts.c.ran_at, type_=Utc))
    .where(*_ATTEMPTS)
    .group_by(attempts.c.no)
)
SELECT_PASSED = (
    select(uploads.c.passed, func.count())
    .where(*_UPLOADS, uploads.c.passed.is_not(None))
    .group_by(uploads.c.passed)
)
SELECT_NEWEST = (
    select(uploads.c.passed, uploads.c.skipped, func.max(uploads.c.ran_at, type_=Utc).label("at"))
    .where(*_UPLOADS)
    .group_by(uploads.c.passed, uploads.c.skipped)
    .order_by(desc("at"))
)


class Attempts(NamedTuple):
    """The numbers of passed and failed attempts of each test, by the test's number."""

    passed: Counter[int]
    failed: Counter[int]

    def rate(self, no: int) -> float:
        """Return the share of a test's attempts that failed."""
        return figures.rate(self.passed[no], self.failed[no])


def rates(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int], now: datetime
) -> dict[int, Rates]:
    """Return the number of each test → its rates at `now`."""
    # The present day is in both windows and is read once: its uploads are not counted yet.
    today = figures.beginning_of(figures.day_of(now))
    week, day, present = (
        _attempts_within(session, sets, repository_id, nos, span)
        for span in (
            Span(now - figures.WEEK + INSTANT, today),
            Span(now - figures.DAY + INSTANT, today),
            Span(today, now + INSTANT),
        )
    )
    for window in (week, day):
        window.passed.update(present.passed)
        window.failed.update(present.failed)
    return {no: Rates(week.rate(no), day.rate(no)) for no in nos}


def _attempts_within(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int], span: Span
) -> Attempts:
    """Count the attempts of tests over a span."""
    attempts = Attempts(Counter(), Counter())
    if not nos:
        return attempts
    cover = days.cover(session, repository_id, span)
    asked = {"of_repository": repository_id, "of_numbers": nos}
    if cover.days:
        for no, passed, failed, _ in session.execute(SELECT_DAILY, asked | {"of_days": cover.days}):
            attempts.passed[no] += int(passed)
            attempts.failed[no] += int(failed)
    of_outcome = {Outcome.PASSED.value: attempts.passed, Outcome.FAILED.value: attempts.failed}
    for gap in cover.gaps:
        for no, outcome, count in session.execute(SELECT_ATTEMPTS, asked | _during(gap)):
            if outcome in of_outcome:
                of_outcome[outcome][no] += count
    attempts.passed.update(_passed(session, sets, repository_id, nos, cover.gaps))
    return attempts


def results(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int]
) -> Counter[int]:
    """Return the number of each test → its results of 400 days; tests without any are left out."""
    counts: Counter[int] = Counter()
    if not nos:
        return counts
    cover = days.cover(session, repository_id, EVER)
    asked = {"of_repository": repository_id, "of_numbers": nos}
    for no, _, _, count in session.execute(SELECT_DAILY, asked | {"of_days": cover.days}):
        counts[no] += int(count)
    for gap in cover.gaps:
        counts.update(dict(session.execute(SELECT_RESULTS, asked | _during(gap)).all()))
    counts.update(_passed(session, sets, repository_id, nos, cover.gaps))
    return counts


def last_runs(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int]
) -> dict[int, datetime]:
    """Return the number of each test that ran within 400 days → when it last ran."""
    cover = days.cover(session, repository_id, EVER)
    asked = {"of_repository": repository_id, "of_numbers": nos}
    runs = dict(session.execute(SELECT_LAST_DAILY, asked | {"of_days": cover.days}).all())
    for gap in cover.gaps:
        rows = session.execute(SELECT_LAST_ATTEMPTS, asked | _during(gap))
        for more in (rows, _last_in_sets(session, sets, repository_id, nos, gap).items()):
            for no, at in more:
                runs[no] = max(at, runs.get(no, at))
    return runs


def run_after(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int], at: datetime
) -> set[int]:
    """Return those of the tests that ran after an instant, by stored uploads."""
    later = Span(at + INSTANT, EVER.until)
    asked = {"of_repository": repository_id, "of_numbers": nos}
    numbers = {no for no, _ in session.execute(SELECT_LAST_ATTEMPTS, asked | _during(later))}
    return numbers.union(_last_in_sets(session, sets, repository_id, nos, later))


def _passed(
    session: Connection,
    sets: OutcomeSets,
    repository_id: int,
    nos: Sequence[int],
    gaps: Iterable[Span],
) -> Counter[int]:
    """Count the uploads of these gaps in which each test passed at once."""
    uses: Counter[str] = Counter()
    for gap in gaps:
        asked = {"of_repository": repository_id} | _during(gap)
        uses.update(dict(session.execute(SELECT_PASSED, asked).all()))
    passes: Counter[int] = Counter()
    for key, members in sets.members(session, repository_id, uses, nos).items():
        for no in members:
            passes[no] += uses[key]
    return passes


def _last_in_sets(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int], span: Span
) -> Mapping[int, datetime]:
    """Return when tests last passed or were skipped at once in a span."""
    runs: dict[int, datetime] = {}
    missing = set(nos)
    for row in session.execute(SELECT_NEWEST, {"of_repository": repository_id} | _during(span)):
        if not missing:
            break
        keys = [key for key in (row.passed, row.skipped) if key is not None]
        for members in sets.members(session, repository_id, keys, sorted(missing)).values():
            runs.update(dict.fromkeys(members, row.at))
            missing.difference_update(members)
    return runs


def _during(span: Span) -> dict[str, object]:
    return {"since": span.since, "until": span.until}
