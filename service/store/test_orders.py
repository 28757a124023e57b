"""The order of failing tests over a span: counted once, then moved with time and with uploads.

A span holds as many failed attempts as failed in a week, and whoever watches it asks again after
every upload. So an order is moved from one span and revision to another by what lies between
them: attempts that the span's ends passed over, and those of uploads that came meanwhile.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import itemgetter
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
from service.store.test_listings import HERE, Key, Span
from service.store.types import Id, Utc

MOVED_APART = 16
"""Where one in so many rows has moved, all are sorted again."""


_PLACE = itemgetter(slice(2))


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


class Sorted(NamedTuple):
    """Rows in order, and by number."""

    ranks: Sequence[Rank]
    by_no: Mapping[int, Rank]


@dataclass(frozen=True, slots=True)
class Order:
    """The tests that failed in a span as of a revision, in order.

    Those in `moved` stand where that says, None: nowhere, and all others where they did: to touch
    each of many rows takes longer than all else after an upload. `come` are those that stand
    somewhere by `moved`, in order, and `length` counts all.
    """

    span: Span
    revision: int
    base: Sorted
    moved: Mapping[int, Rank | None]
    come: Sequence[Rank]
    length: int

    def __len__(self) -> int:
        """How many tests failed."""
        return self.length

    def rank_of(self, no: int) -> Rank | None:
        """Where a test stands, None for one that did not fail."""
        return self.moved[no] if no in self.moved else self.base.by_no.get(no)

    def after(self, key: Key | None, limit: int) -> list[Rank]:
        """Those behind the key, or the first ones."""
        first, first_come = (
            0 if key is None else bisect_right(ranks, key, key=_PLACE)
            for ranks in (self.base.ranks, self.come)
        )
        stayed = self._stayed(range(first, len(self.base.ranks)))
        return list(islice(merge(stayed, self.come[first_come:]), limit))

    def before(self, key: Key | None, limit: int) -> list[Rank]:
        """Those before the key, or the last ones, in the list's order."""
        end, end_come = (
            len(ranks) if key is None else bisect_left(ranks, key, key=_PLACE)
            for ranks in (self.base.ranks, self.come)
        )
        stayed = self._stayed(range(end - 1, -1, -1))
        come = self.come[:end_come][::-1]
        return list(islice(merge(stayed, come, reverse=True), limit))[::-1]

    def _stayed(self, places: Iterable[int]) -> Iterator[Rank]:
        ranks = (self.base.ranks[place] for place in places)
        return (rank for rank in ranks if rank.no not in self.moved)


def sorted_order(span: Span, revision: int, ranks: Iterable[Rank]) -> Order:
    """An order in which nothing has moved."""
    base = sorted(ranks)
    return Order(span, revision, Sorted(base, {rank.no: rank for rank in base}), {}, (), len(base))


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
    return sorted_order(span, now.revision, map(Rank._make, found))


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
    new = [no for no in changed if order.rank_of(no) is None]
    ids = _ids(session, repository_id, new) if new else {}
    places = {no: _place(order.rank_of(no), no, gain, ids) for no, gain in changed.items()}
    return _with(replace(order, span=span, revision=now.revision), places)


def _place(before: Rank | None, no: int, gain: int, ids: Mapping[int, str]) -> Rank | None:
    """Where a test stands with what it gained or lost; one that is left with nothing: nowhere."""
    if before is not None:
        after = Rank(before.minus - gain, before.id, no)
    elif no in ids:
        after = Rank(-gain, ids[no], no)
    else:
        return None
    return after if after.minus < 0 else None


def _with(order: Order, places: Mapping[int, Rank | None]) -> Order:
    if not places:
        return order
    moved = {**order.moved, **places}
    placed = sorted(rank for rank in places.values() if rank is not None)
    # Of what is sorted in two parts already, sorting does no more than to merge them.
    come = sorted([rank for rank in order.come if rank.no not in places] + placed)
    if len(moved) * MOVED_APART <= len(order.base.ranks):
        stood = sum(order.rank_of(no) is not None for no in places)
        length = order.length - stood + len(placed)
        return replace(order, moved=moved, come=come, length=length)
    stayed = [rank for rank in order.base.ranks if rank.no not in moved]
    return sorted_order(order.span, order.revision, stayed + come)


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
