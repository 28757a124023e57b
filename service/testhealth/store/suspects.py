"""The tests that pull requests have failed, and the tests of some places."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, or_, select

from service.testhealth.store.tables_evidence import ImpactRow
from service.testhealth.store.tables_tests import CaseRow
from service.testhealth.suspects import CasePlace
from service.vocabulary import Health

cases = CaseRow.__table__
impacts = ImpactRow.__table__

PLACES_MAX = 50_000
"""Places of a repository that are compared with a change."""


def failed_for(
    session: Connection, repository_id: int, prs: Iterable[int], at_most: int
) -> list[int]:
    """Return the tests that failed for these pull requests in 168 hours, the newest first."""
    statement = (
        select(impacts.c.no)
        .where(
            impacts.c.repository_id == repository_id,
            impacts.c.pr.in_(list(prs)),
            impacts.c.is_counted.is_(True),
        )
        .order_by(impacts.c.last_at.desc(), impacts.c.no)
        .limit(at_most)
    )
    return list(dict.fromkeys(session.execute(statement).scalars()))


def places_of(session: Connection, repository_id: int) -> list[CasePlace]:
    """Return the places of all known tests."""
    statement = (
        select(cases.c.file, cases.c.classname)
        .where(cases.c.repository_id == repository_id, cases.c.is_known.is_(True))
        .distinct()
        .limit(PLACES_MAX)
    )
    return [CasePlace(*row) for row in session.execute(statement)]


def healthy_at(
    session: Connection, repository_id: int, places: Sequence[CasePlace], at_most: int
) -> list[tuple[CasePlace, int]]:
    """Return healthy tests of these places by number, those that failed last first."""
    if not places:
        return []
    same = (and_(cases.c.file == file, cases.c.classname == name) for file, name in places)
    statement = (
        select(cases.c.file, cases.c.classname, cases.c.no)
        .where(
            cases.c.repository_id == repository_id,
            cases.c.is_known.is_(True),
            cases.c.status == Health.HEALTHY.value,
            or_(*same),
        )
        .order_by(cases.c.last_failed_at.desc().nulls_last(), cases.c.no)
        .limit(at_most)
    )
    rows = session.execute(statement)
    return [(CasePlace(row.file, row.classname), row.no) for row in rows]
