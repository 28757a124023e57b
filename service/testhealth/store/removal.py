"""Facts about tests that an upload alone may have told, corrected when it is removed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    Integer,
    Update,
    bindparam,
    delete,
    func,
    select,
    update,
)

from service.database import bulk
from service.database.codec import JsonCodec
from service.database.types import Utc
from service.testhealth.detector import figures
from service.testhealth.reports.results import Outcome
from service.testhealth.store import uploads_rows
from service.testhealth.store.cases import Place
from service.testhealth.store.tables_tests import CaseRow
from service.testhealth.store.uploads_rows import attempts, impacts, uploads

cases = CaseRow.__table__
PRS: JsonCodec[tuple[int, ...]] = JsonCodec(tuple[int, ...])

SELECT_FAILED = (
    select(attempts.c.ran_at, uploads.c.prs)
    .join(uploads, uploads.c.id == attempts.c.upload)
    .where(
        attempts.c.repository_id == bindparam("of_repository"),
        attempts.c.no == bindparam("of_number"),
        attempts.c.outcome == Outcome.FAILED.value,
    )
)
DELETE_IMPACT = delete(impacts).where(
    impacts.c.repository_id == bindparam("of_repository"),
    impacts.c.no == bindparam("of_number"),
    impacts.c.pr == bindparam("of_pr"),
)
_AT: BindParameter[datetime] = bindparam("at", type_=Utc)
_IS_YOUNG = cases.c.first_run_at >= bindparam("since", type_=Utc)
SELECT_DOUBTFUL = select(
    cases.c.no,
    (_IS_YOUNG & (cases.c.first_run_at == _AT)).label("is_first"),
    (cases.c.last_failed_at == _AT).label("is_last_failed"),
    (_IS_YOUNG & cases.c.ever_passed).label("is_passed"),
).where(cases.c.repository_id == bindparam("of_repository"), bulk.among(cases.c.no, "of_numbers"))
SELECT_ATTEMPTS = (
    select(
        attempts.c.no,
        attempts.c.outcome,
        func.min(attempts.c.ran_at, type_=Utc),
        func.max(attempts.c.ran_at, type_=Utc),
    )
    .where(
        attempts.c.repository_id == bindparam("of_repository"),
        bulk.among(attempts.c.no, "of_numbers"),
        attempts.c.is_eligible.is_(True),
        attempts.c.ran_at >= bindparam("since", type_=Utc),
    )
    .group_by(attempts.c.no, attempts.c.outcome)
)


def _noting(**changed: object) -> Update:
    of_tests = cases.c.no.in_(bulk.firsts(Integer))
    here = cases.c.repository_id == bindparam("of_repository")
    return update(cases).where(here, of_tests).values(**changed)


UNKNOW = _noting(is_known=False)
NOTE_FIRST = _noting(first_run_at=bindparam("at", type_=Utc))
NOTE_FAILED = _noting(last_failed_at=bindparam("at", type_=Utc))
NOTE_NO_PASS = _noting(ever_passed=False)


class Doubtful(NamedTuple):
    """Tests of which an upload may be the first run or the last failing run that is noted.

    `passed` are those whose only pass it may be.
    """

    first: set[int]
    failed: set[int]
    passed: set[int]

    @property
    def nos(self) -> set[int]:
        """All of them."""
        return self.first | self.failed | self.passed


class Attempted(NamedTuple):
    """When the first and the last attempt of one outcome ran that are stored of a test."""

    no: int
    outcome: Outcome
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Corrections:
    """What is to be noted anew: tests without any run, times of runs, tests without a pass."""

    unknown: Iterable[int]
    first: Mapping[int, datetime]
    failed: Mapping[int, datetime | None]
    unpassed: Iterable[int]


def renew_impacts(
    session: Connection, place: Place, hit: Iterable[tuple[int, int]], now: datetime
) -> None:
    """Say anew when these tests last failed for these pull requests."""
    for no, pr in sorted(hit):
        told = {"of_repository": place.repository_id, "of_number": no}
        found = session.execute(SELECT_FAILED, told).all()
        session.execute(DELETE_IMPACT, told | {"of_pr": pr})
        times = [ran_at for ran_at, prs in found if pr in PRS.decode(prs)]
        # Without any other failure the figure of the list is to follow all the same.
        at = max(times, default=now - 2 * figures.WEEK)
        uploads_rows.note_impact(session, place, [(no, pr)], at, now)
        if not times:
            session.execute(DELETE_IMPACT, told | {"of_pr": pr})


def doubtful(
    session: Connection, repository_id: int, nos: Iterable[int], edges: tuple[datetime, datetime]
) -> Doubtful:
    """Those of the tests of which an upload that ran `at` an instant may have been noted.

    `edges` are that instant, and since when first runs are told by uploads that are stored.
    """
    at, since = edges
    asked = {"of_repository": repository_id, "at": at, "since": since}
    found = Doubtful(set(), set(), set())
    for some in bulk.parts(sorted(nos)):
        for no, *doubts in session.execute(SELECT_DOUBTFUL, asked | {"of_numbers": some}):
            for doubt, known in zip(doubts, found, strict=True):
                if doubt:
                    known.add(no)
    return found


def attempted(
    session: Connection, repository_id: int, nos: Iterable[int], since: datetime
) -> Iterator[Attempted]:
    """The stored attempts of these tests."""
    told = {"of_repository": repository_id, "since": since}
    for some in bulk.parts(sorted(nos)):
        for no, word, first, last in session.execute(SELECT_ATTEMPTS, told | {"of_numbers": some}):
            yield Attempted(no, Outcome(word), first, last)


def correct(session: Connection, repository_id: int, given: Corrections) -> None:
    """Note it anew."""
    _note(session, repository_id, UNKNOW, given.unknown)
    _note(session, repository_id, NOTE_NO_PASS, given.unpassed)
    times = ((NOTE_FIRST, given.first), (NOTE_FAILED, given.failed))
    for statement, of_test in times:
        nos_at: defaultdict[datetime | None, list[int]] = defaultdict(list)
        for no, at in of_test.items():
            nos_at[at].append(no)
        for at, nos in nos_at.items():
            _note(session, repository_id, statement, nos, at)


def _note(
    session: Connection,
    repository_id: int,
    statement: Update,
    nos: Iterable[int],
    at: datetime | None = None,
) -> None:
    for some in bulk.parts(sorted(nos)):
        told = bulk.told((no,) for no in some)
        session.execute(statement, told | {"of_repository": repository_id, "at": at})
