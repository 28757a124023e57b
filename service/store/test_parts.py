"""What the cut days at the edges of rates hold of each test (FLAKY.md 7.2).

Whole days come from counts. Of the day that a window cuts, and of what lies ahead of the present
instant, single attempts and the sets of uploads are read, and that is most of the work. But what
an upload holds of a test never changes, and few uploads pass an edge between two questions: so
what was read is kept as long as the same uploads lie in the parts.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    bindparam,
    func,
    literal,
    select,
    union_all,
)

from service.flaky.figures import Counts
from service.flaky.results import Outcome
from service.store.tables.tests import TestedRepositoryRow
from service.store.test_evidence import attempts, uploads
from service.store.test_sets import OutcomeSets
from service.store.types import Utc

WEEK, DAY, AHEAD = "week", "day", "ahead"
"""Parts of days: the first of either window, and what lies ahead of the present instant."""

SIGNS = {WEEK: (1, 0), DAY: (0, 1), AHEAD: (-1, -1)}
"""Part → what it adds to the week, and to the last day."""

REPOSITORIES_MAX = 64
TESTS_MAX = 10_000
"""Tests of which something is kept, for each of so many repositories: some 2 MiB each."""

Told = dict[str, object]
"""Where the windows begin and end: what statements are told."""


class Held(NamedTuple):
    """What is added to whole days, for either window."""

    week: Counts
    day: Counts


shared = TestedRepositoryRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_NUMBERS: BindParameter[int] = bindparam("of_numbers", expanding=True)


def within(column: ColumnElement[object], part: str) -> ColumnElement[bool]:
    """Whether an instant lies in the part."""
    after = column > bindparam(f"{part}_after", type_=Utc)
    if part == AHEAD:
        return after
    return after & (column < bindparam(f"{part}_before", type_=Utc))


def _uploads_in(part: str) -> tuple[ColumnElement[bool], ...]:
    return (
        uploads.c.repository_id == _HERE,
        uploads.c.is_eligible.is_(True),
        within(uploads.c.ran_at, part),
    )


# As time goes on uploads only leave a part, those that come have a higher revision, and removals
# are numbered: so equal answers mean the same uploads.
SELECT_STAMP = select(
    shared.c.removal,
    *(
        select(figure).where(*_uploads_in(part)).scalar_subquery().label(f"{name}_{part}")
        for part in (WEEK, DAY, AHEAD)
        for name, figure in (
            ("many", func.count(uploads.c.id)),
            ("newest", func.max(uploads.c.revision)),
        )
    ),
).where(shared.c.repository_id == _HERE)
SELECT_ATTEMPTS = union_all(
    *(
        select(literal(part).label("part"), attempts.c.no, attempts.c.outcome, func.count())
        .where(
            attempts.c.repository_id == _HERE,
            attempts.c.no.in_(_NUMBERS),
            attempts.c.is_eligible.is_(True),
            within(attempts.c.ran_at, part),
        )
        .group_by(attempts.c.no, attempts.c.outcome)
        for part in (WEEK, DAY, AHEAD)
    )
)
SELECT_SETS = union_all(
    *(
        select(literal(part).label("part"), uploads.c.passed, func.count())
        .where(*_uploads_in(part), uploads.c.passed.is_not(None))
        .group_by(uploads.c.passed)
        for part in (WEEK, DAY, AHEAD)
    )
)


class CutDays:
    """What the parts held of the tests that were asked for. Used from several threads."""

    def __init__(self, sets: OutcomeSets) -> None:
        self._sets = sets
        self._kept: LRUCache[int, tuple[Hashable, dict[int, Held]]] = LRUCache(REPOSITORIES_MAX)
        self._lock = Lock()

    def held(
        self, session: Connection, repository_id: int, nos: Sequence[int], told: Told
    ) -> Mapping[int, Held]:
        """Number of each of these tests, and perhaps of others, → what the parts hold of it."""
        row = session.execute(SELECT_STAMP, told).first()
        stamp = (told["week_from"], told["day_from"], None if row is None else tuple(row))
        with self._lock:
            before, known = self._kept.get(repository_id, (None, {}))
        if before != stamp:
            known = {}
        missing = [no for no in nos if no not in known]
        if missing:
            read = self._read(session, repository_id, missing, told)
            known = known | read if len(known) < TESTS_MAX else read | _only(known, nos)
            with self._lock:
                self._kept[repository_id] = (stamp, known)
        return known

    def _read(
        self, session: Connection, repository_id: int, nos: Sequence[int], told: Told
    ) -> dict[int, Held]:
        figures: dict[tuple[int, Outcome], Counter[int]] = defaultdict(Counter)
        for part, no, word, many in session.execute(SELECT_ATTEMPTS, told | {"of_numbers": nos}):
            for window, sign in enumerate(SIGNS[part]):
                figures[window, Outcome(word)][no] += sign * many
        weights: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for part, key, many in session.execute(SELECT_SETS, told):
            for window, sign in enumerate(SIGNS[part]):
                weights[key][window] += sign * many
        members = self._sets.members(session, repository_id, weights, nos)
        for key, of_windows in weights.items():
            for window, weight in enumerate(of_windows):
                if weight:
                    passed = figures[window, Outcome.PASSED]
                    for no in members.get(key, ()):
                        passed[no] += weight
        week, day = (
            (figures[window, Outcome.PASSED], figures[window, Outcome.FAILED]) for window in (0, 1)
        )
        return {
            no: Held(Counts(week[0][no], week[1][no]), Counts(day[0][no], day[1][no])) for no in nos
        }


def _only(known: Mapping[int, Held], nos: Sequence[int]) -> dict[int, Held]:
    return {no: known[no] for no in nos if no in known}
