"""The order of failing tests over a span: counted once, then moved with time and with uploads.

A span holds as many failed attempts as failed in a week, and whoever watches it asks again after
every upload. So an order is moved from one span and revision to another by what lies between
them: attempts that the span's ends passed over, and those of uploads that came meanwhile. Of many
tests it is then known how often they failed; they are put in order by the page that shows them,
for most pages show the few that failed most often.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from itertools import chain, groupby, islice
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

from service.database import bulk
from service.database.direct import Direct
from service.database.types import Id, Utc, instant
from service.testhealth.reports.results import Outcome
from service.testhealth.store import ways as test_ways
from service.testhealth.store.listings import HERE, Key, Span
from service.testhealth.store.tables_tests import TestedRepositoryRow
from service.testhealth.store.uploads_rows import attempts, cases, uploads
from service.testhealth.store.ways import CommonFailure, Move, Ways

MOVED_APART = 8
"""Where one in so many tests has moved, all are written down again."""

RUNS_MAX = 16
"""Runs of a group, before they are merged."""

STALE_MAX = 2
"""Places of a group for each test that stands in it, before the others are taken out."""

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


class Counts(NamedTuple):
    """Number of each test → its failing attempts: those in `moved` have these, 0: none.

    To touch each of many takes longer than all else after an upload.
    """

    base: Mapping[int, int]
    moved: Mapping[int, int]

    def of(self, no: int) -> int:
        """How often a test failed."""
        return self.moved[no] if no in self.moved else self.base.get(no, 0)


class Group(NamedTuple):
    """Tests that failed equally often: some in order, in several runs, and numbers of newcomers.

    Any of them may have gone elsewhere: a test stands where its count says.
    """

    runs: tuple[Sequence[Rank], ...] = ()
    come: tuple[Collection[int], ...] = ()

    @property
    def places(self) -> int:
        """How many are named, some of which may stand elsewhere."""
        return sum(map(len, chain(self.runs, self.come)))


@dataclass(frozen=True, slots=True)
class Order:
    """The tests that failed in a span as of a revision, in order; `length` says how many.

    `groups` are by minus the failing attempts. One is put in order where that is asked for, which
    several threads may do at once: they put the same in its place. So it is with the `ids` of tests
    by number, which never change, and with the ways in which tests failed.
    """

    repository_id: int
    span: Span
    revision: int
    counts: Counts
    groups: dict[int, Group]
    length: int
    ids: dict[int, str] = field(default_factory=dict)
    ways: dict[int, Ways] = field(default_factory=dict)

    def after(self, session: Connection, key: Key | None, limit: int) -> list[Rank]:
        """Those behind the key, or the first ones."""
        return list(islice(self._onwards(session, key), limit))

    def before(self, session: Connection, key: Key | None, limit: int) -> list[Rank]:
        """Those before the key, or the last ones, in the list's order."""
        return list(islice(self._backwards(session, key), limit))[::-1]

    def common_failures(
        self, session: Connection, nos: Sequence[int]
    ) -> dict[int, tuple[CommonFailure, ...]]:
        """Number of each of its tests → its ways to fail, as `test_ways.common_failures`."""
        known = dict(self.ways)
        missing = [no for no in nos if no not in known]
        read = test_ways.counted(session, self.repository_id, missing, self.span)
        test_ways.keep(self.ways, read)
        known.update(read)
        return test_ways.shown(session, self.repository_id, {no: known[no] for no in nos})

    def _onwards(self, session: Connection, key: Key | None) -> Iterator[Rank]:
        for minus in sorted(self.groups):
            if key is None or (minus,) >= key[:1]:
                parts = []
                for ranks in self._runs(session, minus):
                    first = 0 if key is None else bisect_right(ranks, key, key=_PLACE)
                    parts.append(self._standing(ranks, range(first, len(ranks))))
                yield from _distinct(merge(*parts))

    def _backwards(self, session: Connection, key: Key | None) -> Iterator[Rank]:
        for minus in sorted(self.groups, reverse=True):
            if key is None or (minus,) <= key[:1]:
                parts = []
                for ranks in self._runs(session, minus):
                    end = len(ranks) if key is None else bisect_left(ranks, key, key=_PLACE)
                    parts.append(self._standing(ranks, range(end - 1, -1, -1)))
                yield from _distinct(merge(*parts, reverse=True))

    def _standing(self, ranks: Sequence[Rank], places: Iterable[int]) -> Iterator[Rank]:
        for place in places:
            rank = ranks[place]
            if self.counts.of(rank.no) == -rank.minus:
                yield rank

    def _runs(self, session: Connection, minus: int) -> tuple[Sequence[Rank], ...]:
        """All of a group, in runs that are in order, and perhaps some that went elsewhere."""
        group = self.groups[minus]
        if not group.come:
            return group.runs
        nos = _still(self.counts, minus, group.come)
        self._read_ids(session, sorted(nos.difference(self.ids)))
        new = sorted(Rank(minus, self.ids[no], no) for no in nos if no in self.ids)
        runs = _few_runs(self.counts, minus, (*group.runs, new))
        self.groups[minus] = Group(runs)
        return runs

    def _read_ids(self, session: Connection, nos: Sequence[int]) -> None:
        if nos:
            told = {"of_repository": self.repository_id, "of_numbers": nos}
            self.ids.update(SELECT_IDS.rows(session, told))


def _distinct(ranks: Iterable[Rank]) -> Iterator[Rank]:
    # Who went and came back is in two runs.
    return (rank for rank, _ in groupby(ranks))


def _few_runs(
    counts: Counts, minus: int, runs: tuple[Sequence[Rank], ...]
) -> tuple[Sequence[Rank], ...]:
    """The same in one or two runs if they are many, so that the first is seldom gone through."""
    if len(runs) <= RUNS_MAX:
        return runs
    later = _merged(counts, minus, runs[1:])
    if len(later) * MOVED_APART <= len(runs[0]):
        return runs[0], later
    return (_merged(counts, minus, (runs[0], later)),)


def _merged(counts: Counts, minus: int, runs: Iterable[Sequence[Rank]]) -> list[Rank]:
    ranks = [rank for rank in chain.from_iterable(runs) if counts.of(rank.no) == -minus]
    # Of what is sorted in parts already, sorting does no more than to merge them.
    return list(_distinct(sorted(ranks)))


def _still(counts: Counts, minus: int, come: Iterable[Collection[int]]) -> set[int]:
    return {no for no in chain.from_iterable(come) if counts.of(no) == -minus}


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

SELECT_COUNTS = Direct(select(attempts.c.no, func.count()).where(_IN_SPAN).group_by(attempts.c.no))

_MARK: BindParameter[int] = bindparam("of_revision", type_=Id)


_OF_WAY = (attempts.c.no, attempts.c.failure)
_TOLD = (attempts.c.no, func.count(), attempts.c.failure, test_ways.LATEST)


def _passed_over(end: str) -> Select[*tuple[object, ...]]:
    """Attempts between two places of an end of the span; `<end>_sign` says who gains them."""
    sign: BindParameter[int] = bindparam(f"{end}_sign", type_=Id)
    return select(sign, *_TOLD).where(_failed(f"{end}_from", f"{end}_to")).group_by(*_OF_WAY)


# An upload's attempts ran when it did. That both say so, and both whether they count, is not asked
# of attempts: SQLite would go through all that failed in the span instead of an upload's.
_COME = (
    select(literal(1), *_TOLD)
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
    .group_by(*_OF_WAY)
)
SELECT_MOVES = Direct(union_all(_passed_over("start"), _passed_over("end"), _COME))
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
    failures: dict[int, int] = dict(SELECT_COUNTS.rows(session, _told(repository_id, span)))
    groups = {minus: Group(come=(nos,)) for minus, nos in _by_minus(failures).items()}
    counts = Counts(failures, {})
    return Order(repository_id, span, now.revision, counts, groups, len(failures))


def moved(session: Connection, order: Order, span: Span, now: AsOf) -> Order:
    """The order of another span or a later revision.

    No upload may have been removed since `order.revision`, and no attempt of either span be
    forgotten: what is no longer there cannot be taken off.
    """
    told = {
        **_told(order.repository_id, order.span),
        **_end_told("start", span.since, order.span.since),
        **_end_told("end", order.span.until, span.until),
        "of_revision": order.revision,
    }
    moves = SELECT_MOVES.rows(session, told)
    gains: Counter[int] = Counter()
    for sign, no, many, *_ in moves:
        gains[no] += sign * many
    changed = {no: max(0, order.counts.of(no) + gain) for no, gain in gains.items() if gain}
    stood = sum(order.counts.of(no) > 0 for no in changed)
    length = order.length - stood + sum(many > 0 for many in changed.values())
    groups = dict(order.groups)
    for minus, nos in _by_minus(changed).items():
        before = groups.get(minus, Group())
        groups[minus] = before._replace(come=(*before.come, nos))
    counts = Counts(order.counts.base, {**order.counts.moved, **changed})
    if len(counts.moved) * MOVED_APART > len(counts.base):
        counts, groups = _written_down(counts, groups)
    ways: dict[int, Ways] = {}
    # Of what left at the end it is not known when the others ran last.
    if order.span.until <= span.until:
        ways = test_ways.moved(
            order.ways,
            (
                Move(sign, no, many, key, instant(at))
                for sign, no, many, key, at in moves
                if key is not None
            ),
        )
    return Order(
        order.repository_id, span, now.revision, counts, groups, length, ids=order.ids, ways=ways
    )


def _by_minus(failures: Mapping[int, int]) -> Mapping[int, list[int]]:
    """Minus the failing attempts → the tests that failed so often; who never did is left out."""
    found: dict[int, list[int]] = defaultdict(list)
    for no, many in failures.items():
        if many > 0:
            found[-many].append(no)
    return found


def _written_down(counts: Counts, groups: Mapping[int, Group]) -> tuple[Counts, dict[int, Group]]:
    """The same without what has moved, and without groups of mostly those that went elsewhere."""
    base = {**counts.base, **counts.moved}
    for no, many in counts.moved.items():
        if not many:
            del base[no]
    counts, sizes = Counts(base, {}), Counter(base.values())
    kept = {minus: group for minus, group in groups.items() if sizes[-minus]}
    for minus, group in kept.items():
        if group.places > STALE_MAX * sizes[-minus]:
            come = _still(counts, minus, group.come)
            kept[minus] = Group((_merged(counts, minus, group.runs),), (come,))
    return counts, kept


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
