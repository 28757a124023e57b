"""The CI time that each test lost in a week, copied to where lists sort by it."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, func, literal, select

from service.database.types import Utc
from service.testhealth.detector import figures
from service.testhealth.store import cases as test_cases
from service.testhealth.store.attempts import attempts, cases

EXPIRED_AT_ONCE = 1000


def renew(session: Connection, repository_id: int, nos: Iterable[int], now: datetime) -> None:
    """Add up what these tests cost in the 168 hours before `now`."""
    counted = (
        attempts.c.repository_id == cases.c.repository_id,
        attempts.c.no == cases.c.no,
        attempts.c.is_eligible.is_(True),
        attempts.c.ran_at > literal(now - figures.WEEK, Utc()),
        attempts.c.cost_ms > 0,
    )
    total = func.coalesce(func.sum(attempts.c.cost_ms), 0)
    test_cases.change(
        session,
        repository_id,
        nos,
        cost_rank=select(-total).where(*counted).scalar_subquery(),
        costs_since=select(func.min(attempts.c.ran_at)).where(*counted).scalar_subquery(),
    )


def expire(session: Connection, now: datetime) -> int:
    """Stop counting what is 168 hours old, of at most 1,000 tests; return how many they were."""
    oldest = (
        select(cases.c.repository_id, cases.c.no)
        .where(cases.c.costs_since.is_not(None), cases.c.costs_since <= now - figures.WEEK)
        .order_by(cases.c.costs_since)
        .limit(EXPIRED_AT_ONCE)
    )
    expired = session.execute(oldest).all()
    # In one order, so that two transactions never wait for each other.
    for repository_id, group in groupby(sorted(expired), itemgetter(0)):
        renew(session, repository_id, [no for _, no in group], now)
        test_cases.note_change(session, repository_id)
    return len(expired)
