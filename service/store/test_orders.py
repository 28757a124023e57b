"""The order of failing tests over a span: counted once, then moved with time and with uploads.

A span holds as many failed attempts as failed in a week, and whoever watches it asks again after
every upload. So an order is moved from one span and revision to another by what lies between
them: attempts that the span's ends passed over, and those of uploads that came meanwhile.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    desc,
    func,
    literal,
    select,
    union_all,
)

from service.flaky.results import Outcome
from service.store import bulk
from service.store.direct import Direct
from service.store.tables.tests import TestedRepositoryRow
from service.store.test_evidence import attempts, cases, uploads
from service.store.test_listings import HERE, Span
from service.store.types import Id, Utc

PLACED_ONE_BY_ONE = 16
"""Where one in so many rows moves, all are sorted again: that is quicker from there on."""


class Rank(NamedTuple):
    """A failing test's place: minus its failing attempts, its id; and its number."""

    minus: int
    id: str
    no: int


class AsOf(NamedTuple):
    """As of when a repository's tests are read: their revision, and that of the last removal.

    `first_at` and `last_at` are when the first and the last failed attempt of the span ran, as the
    driver says it, None without any. While nothing of it differs, two spans hold the same attempts.
    """

    revision: int
    removal: int
    first_at: object
    last_at: object


@dataclass(frozen=True, slots=True)
class Order:
    """The tests that failed in a span as of a revision, in order, and by number."""

    span: Span
    revision: int
    ranks: Sequence[Rank]
    by_no: Mapping[int, Rank]


shared = TestedRepositoryRow.__table__


def _failed(since: str, until: str) -> ColumnElement[bool]:
    return and_(
        attempts.c.repository_id == HERE,
        attempts.c.is_eligible.is_(True),
        attempts.c.outcome == Outcome.FAILED.value,
        attempts.c.ran_at >= bindparam(since, type_=Utc),
        attempts.c.ran_at < bindparam(until, type_=Utc),
    )


_IN_SPAN = _failed("since", "until")
_end = select(attempts.c.ran_at).where(_IN_SPAN).limit(1)
SELECT_AS_OF = Direct(
    select(
        shared.c.revision,
        shared.c.removal,
        _end.order_by(attempts.c.ran_at).scalar_subquery(),
        _end.order_by(desc(attempts.c.ran_at)).scalar_subquery(),
    ).where(shared.c.repository_id == HERE)
)

_counts = (
    select(attempts.c.no, func.count().label("many"))
    .where(_IN_SPAN)
    .group_by(attempts.c.no)
    .subquery()
)
SELECT_RANKS = Direct(
    select(-_counts.c.many, cases.c.id, _counts.c.no).join(
        cases, and_(cases.c.repository_id == HERE, cases.c.no == _counts.c.no)
    )
)

_MARK: BindParameter[int] = bindparam("of_revision", type_=Id)


def _passed_over(end: str) -> Select[int, int, int]:
    """Attempts between two places of an end of the span; `<end>_sign` says who gains them."""
    sign: BindParameter[int] = bindparam(f"{end}_sign", type_=Id)
    return select(sign, attempts.c.no, func.count()).where(_failed(f"{end}_from", f"{end}_to"))


# An upload's attempts ran when it did. That both say so, and both whether they count, is not asked
# of attempts: SQLite would go through all that failed in the span instead of an upload's.
_COME = (
    select(literal(1), attempts.c.no, func.count())
    .select_from(uploads)
    .join(attempts, attempts.c.upload == uploads.c.id)
    .where(
        uploads.c.repository_id == HERE,
        uploads.c.is_eligible.is_(True),
        uploads.c.revision > _MARK,
        uploads.c.ran_at >= bindparam("since", type_=Utc),
        uploads.c.ran_at < bindparam("until", type_=Utc),
        attempts.c.outcome == Outcome.FAILED.value,
    )
    .group_by(attempts.c.no)
)
SELECT_MOVES = Direct(
    union_all(
        _passed_over("start").group_by(attempts.c.no),
        _passed_over("end").group_by(attempts.c.no),
        _COME,
    )
)
SELECT_IDS = Direct(
    select(cases.c.no, cases.c.id).where(
        cases.c.repository_id == HERE, bulk.among(cases.c.no, "of_numbers")
    )
)


def as_of(session: Connection, repository_id: int, span: Span) -> AsOf:
    """As of when the repository's tests are read in this transaction."""
    for row in SELECT_AS_OF.rows(session, _told(repository_id, span)):
        return AsOf(*row)
    return AsOf(0, 0, None, None)


def counted(session: Connection, repository_id: int, span: Span, now: AsOf) -> Order:
    """The order of a span, from all its failed attempts."""
    found = SELECT_RANKS.rows(session, _told(repository_id, span))
    ranks = sorted(map(Rank._make, found))
    return Order(span, now.revision, ranks, {rank.no: rank for rank in ranks})


def moved(session: Connection, repository_id: int, order: Order, span: Span, now: AsOf) -> Order:
    """The order of another span or a later revision.

    No upload may have been removed since `order.revision`, and no attempt of either span be
    forgotten: what is no longer there cannot be taken off.
    """
    told = {
        **_told(repository_id, order.span),
        **_end_told("start", span.since, order.span.since),
        **_end_told("end", order.span.until, span.until),
        "of_revision": order.revision,
    }
    gains: Counter[int] = Counter()
    for sign, no, many in SELECT_MOVES.rows(session, told):
        gains[no] += sign * many
    changed = {no: gain for no, gain in gains.items() if gain}
    new = [no for no in changed if no not in order.by_no]
    ids = _ids(session, repository_id, new) if new else {}
    ranks, by_no = _placed(order, changed, ids) if changed else (order.ranks, order.by_no)
    return Order(span, now.revision, ranks, by_no)


def _placed(
    order: Order, gains: Mapping[int, int], ids: Mapping[int, str]
) -> tuple[Sequence[Rank], Mapping[int, Rank]]:
    """The rows with what they gained or lost; those that are left with nothing go."""
    by_no, come, gone = dict(order.by_no), [], []
    for no, gain in gains.items():
        before = by_no.pop(no, None)
        if before is not None:
            gone.append(before)
            after = Rank(before.minus - gain, before.id, no)
        elif no in ids:
            after = Rank(-gain, ids[no], no)
        else:
            continue
        if after.minus < 0:
            by_no[no] = after
            come.append(after)
    if len(gains) * PLACED_ONE_BY_ONE > len(by_no):
        return sorted(by_no.values()), by_no
    ranks = list(order.ranks)
    for rank in gone:
        del ranks[bisect_left(ranks, rank)]
    for rank in come:
        insort(ranks, rank)
    return ranks, by_no


def _ids(session: Connection, repository_id: int, nos: Sequence[int]) -> dict[int, str]:
    told = {"of_repository": repository_id, "of_numbers": nos}
    return dict(SELECT_IDS.rows(session, told))


def _told(repository_id: int, span: Span) -> dict[str, object]:
    return {"of_repository": repository_id, "since": span.since, "until": span.until}


def _end_told(end: str, inner: datetime, outer: datetime) -> dict[str, object]:
    """From one place of an end to the other: gained when it goes outwards, else lost.

    Of the start the new place comes first, of the end the old one, so that both grow the span
    when the first lies before the second.
    """
    first, second = min(inner, outer), max(inner, outer)
    sign = 1 if inner <= outer else -1
    return {f"{end}_from": first, f"{end}_to": second, f"{end}_sign": sign}
