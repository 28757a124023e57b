"""The list of all tests of a repository, filtered; and how much harm its unhealthy tests do."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
)

from service.database import bulk
from service.database.tables_tenants import RepositoryRow
from service.testhealth.detector import figures
from service.testhealth.filters import NO_OWNER, TestFilter, TestOrder
from service.testhealth.reports.results import Outcome
from service.testhealth.store.attempts import attempts, impacts
from service.testhealth.store.cases import IS_UNHEALTHY, shared
from service.testhealth.store.listings import (
    HERE,
    RECORDS,
    SAME_OVERRIDE,
    SAME_TICKET,
    ListedCase,
    cases,
    listed_case,
    listed_cases,
    overrides,
    tickets,
)
from service.testhealth.store.numbered import Numbered
from service.vocabulary import UNHEALTHY, Health, Override, RepoRef

repositories = RepositoryRow.__table__

FOUND_MAX = 1000
"""So many tests that filters leave are listed by their numbers."""


class QuarantineRule(NamedTuple):
    """The rule that quarantines tests by their status now; None of them: quarantining is off."""

    is_on: bool
    statuses: tuple[Health, ...]


@dataclass(frozen=True, slots=True)
class AllTests:
    """Tests that pass a filter at `now`, in its order, then by number.

    Tests that only untrusted uploads have are left out. `numbers` are those of its tests, None if
    they are too many or were not looked up (`narrowed`).
    """

    repository_id: int
    wanted: TestFilter
    rule: QuarantineRule
    now: datetime
    numbers: tuple[int, ...] | None = None

    def narrowed(self, session: Connection) -> "AllTests":
        """Return the same list with the numbers of its tests if filters leave at most 1,000.

        No index helps a filter: with the numbers the tests are read once, and not once to count
        them and once for the page. Of 100,000 tests that takes up to 41 ms, not 157; of 500,000
        it takes up to 200 ms.
        """
        if not self.wanted.is_narrow:
            return self
        statement = self._select(cases.c.no).limit(FOUND_MAX + 1)
        nos = tuple(session.execute(statement, self._asked()).scalars())
        return self if len(nos) > FOUND_MAX else replace(self, numbers=nos)

    def count(self, session: Connection) -> int:
        """Return how many there are."""
        if self.numbers is not None:
            return len(self.numbers)
        return session.execute(self._select(func.count()), self._asked()).scalar_one()

    def top(self, session: Connection, limit: int) -> list[int]:
        """Return the first numbers in the order of the list."""
        return [int(row.no) for row in self._rows().top(session, self._asked(), limit)]

    def among(self, session: Connection, nos: Sequence[int]) -> set[int]:
        """Return those of these numbers that are in the list."""
        return self._rows().among(session, self._asked(), nos)

    def after(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the lowest numbers above this one, the lowest first."""
        return self._rows().after(session, self._asked(), no, limit)

    def before(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the highest numbers below this one, the lowest first."""
        return self._rows().before(session, self._asked(), no, limit)

    def _rows(self) -> Numbered:
        is_by_cost = self.wanted.order is TestOrder.CI_TIME
        rank = cases.c.cost_rank if is_by_cost else cases.c.impact_rank
        return Numbered(self._select(cases.c.no), cases.c.no, (rank, cases.c.no))

    def _select(self, column: ColumnElement[int]) -> Select[int]:
        """Return the statement that selects a column of its tests, in any order."""
        tables: FromClause = cases
        if self.wanted.quarantined is not None:
            tables = tables.outerjoin(overrides, SAME_OVERRIDE)
        if self.wanted.has_ticket is not None:
            tables = tables.outerjoin(tickets, SAME_TICKET)
        is_listed = (cases.c.repository_id == HERE, *self._conditions())
        return select(column).select_from(tables).where(*is_listed)

    def _asked(self) -> dict[str, object]:
        return {"of_repository": self.repository_id, "of_numbers": self.numbers}

    def _conditions(self) -> list[ColumnElement[bool]]:
        if self.numbers is not None:
            return [bulk.among(cases.c.no, "of_numbers")]
        wanted = self.wanted
        conditions: list[ColumnElement[bool]] = [cases.c.is_known.is_(True)]
        if wanted.statuses:
            conditions.append(cases.c.status.in_([each.value for each in wanted.statuses]))
            if Health.HEALTHY not in wanted.statuses:
                conditions.append(IS_UNHEALTHY)
        if wanted.search:
            searched = (cases.c.name, cases.c.file, cases.c.classname, cases.c.parent)
            parts = (each.icontains(wanted.search, autoescape=True) for each in searched)
            conditions.append(or_(*parts))
        if wanted.owner:
            conditions.append(owned_by(wanted.owner))
        if wanted.variant:
            conditions.append(cases.c.variant == wanted.variant)
        if wanted.has_ticket is not None:
            is_missing = tickets.c.html_url.is_(None)
            conditions.append(~is_missing if wanted.has_ticket else is_missing)
        if wanted.quarantined is not None:
            quarantined = self._quarantined()
            conditions.append(quarantined if wanted.quarantined else ~quarantined)
        return conditions

    def _quarantined(self) -> ColumnElement[bool]:
        """Return the condition of `detector/quarantine.py:setting_of`."""
        if not self.rule.is_on:
            return cases.c.no < 0
        is_said = and_(
            overrides.c.id.is_not(None),
            or_(overrides.c.expires_at.is_(None), overrides.c.expires_at > self.now),
        )
        is_always = and_(is_said, overrides.c.override == Override.ALWAYS_QUARANTINE.value)
        of_status = cases.c.status.in_([each.value for each in self.rule.statuses])
        return func.coalesce(or_(is_always, and_(~is_said, of_status)), False)


def owned_by(owner: str) -> ColumnElement[bool]:
    """Return the condition that a test has an owner, or none (`NO_OWNER`)."""
    if owner == NO_OWNER:
        return cases.c.owners == "[]"
    return cases.c.owners.contains(orjson.dumps(owner).decode(), autoescape=True)


class CostOfTests(NamedTuple):
    """The cost of tests in 168 hours.

    `pull_requests` are those for which a test failed that is flaky or broken now, `cost_ms` is the
    CI time that these tests lost. `excused_uploads` are uploads in which a failure counted as
    passed.
    """

    tests: int
    flaky: int
    broken: int
    pull_requests: int
    failed_attempts: int
    cost_ms: int
    excused_uploads: int

    @property
    def lost(self) -> timedelta:
        """The CI time that flaky and broken tests lost."""
        return timedelta(milliseconds=self.cost_ms)


SELECT_COUNTS = (
    select(
        cases.c.status, func.count().label("tests"), func.sum(cases.c.cost_rank).label("cost_rank")
    )
    .where(cases.c.repository_id == HERE, cases.c.is_known.is_(True))
    .group_by(cases.c.status)
)
SELECT_HIT = (
    select(func.count(impacts.c.pr.distinct()))
    .select_from(cases)
    .join(
        impacts, and_(impacts.c.repository_id == cases.c.repository_id, impacts.c.no == cases.c.no)
    )
    .where(cases.c.repository_id == HERE, IS_UNHEALTHY, impacts.c.is_counted.is_(True))
)
_OF_CASE = and_(attempts.c.repository_id == cases.c.repository_id, attempts.c.no == cases.c.no)


def cost_of_tests(session: Connection, repository_id: int, now: datetime) -> CostOfTests:
    """Return what the tests of a repository cost in the 168 hours before `now`."""
    asked = {"of_repository": repository_id}
    since = now - figures.WEEK
    of_week = (
        select(func.count())
        .select_from(cases)
        .join(attempts, _OF_CASE)
        .where(cases.c.repository_id == HERE, IS_UNHEALTHY)
        .where(attempts.c.is_eligible.is_(True), attempts.c.ran_at > since)
        .where(attempts.c.outcome == Outcome.FAILED.value)
    )
    excused = (
        select(func.count(attempts.c.upload.distinct()))
        .select_from(cases)
        .join(attempts, _OF_CASE)
        .where(cases.c.repository_id == HERE, cases.c.last_failed_at > since)
        .where(attempts.c.ran_at > since, attempts.c.is_quarantined.is_(True))
    )
    rows = session.execute(SELECT_COUNTS, asked).all()
    by_status = {row.status: row.tests for row in rows}
    return CostOfTests(
        tests=sum(by_status.values()),
        flaky=by_status.get(Health.FLAKY.value, 0),
        broken=by_status.get(Health.BROKEN.value, 0),
        pull_requests=session.execute(SELECT_HIT, asked).scalar_one(),
        failed_attempts=session.execute(of_week, asked).scalar_one(),
        cost_ms=-sum(int(row.cost_rank) for row in rows if row.status in UNHEALTHY),
        excused_uploads=session.execute(excused, asked).scalar_one(),
    )


_WORST = (
    select(cases.c.repository_id, cases.c.no, cases.c.impact_rank)
    .where(
        cases.c.repository_id.in_(bindparam("of_repositories", expanding=True)),
        IS_UNHEALTHY,
        cases.c.is_known.is_(True),
        or_(cases.c.impact_rank < 0, cases.c.cost_rank < 0),
    )
    .order_by(cases.c.impact_rank, cases.c.cost_rank, cases.c.repository_id, cases.c.no)
    .limit(bindparam("at_most"))
)


def worst(
    session: Connection, repository_ids: Sequence[int], at_most: int
) -> list[tuple[int, ListedCase]]:
    """Return repositories with unhealthy tests of theirs, those first that hit most in a week.

    Of tests that hit as many pull requests, those first that lost most CI time.
    """
    asked = {"of_repositories": repository_ids, "at_most": at_most}
    found = session.execute(_WORST, asked).all()
    listed = _listed(session, [(row.repository_id, row.no) for row in found])
    return [(row.repository_id, listed[row.repository_id, row.no]) for row in found]


def _listed(
    session: Connection, found: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], ListedCase]:
    """Return tests by repository and number."""
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for here, no in found:
        numbers[here].append(no)
    return {
        (here, case.no): case
        for here, nos in numbers.items()
        for case in listed_cases(session, here, nos)
    }


_HAS_NAME = repositories.c.owner_key.is_not(None)
"""Another repository may have taken the name of a deleted one; our pages have only its tests."""

_NAMED = (
    select(
        cases.c.repository_id,
        cases.c.no,
        repositories.c.host,
        repositories.c.owner,
        repositories.c.name,
    )
    .join(repositories, repositories.c.id == cases.c.repository_id)
    .where(cases.c.is_known.is_(True), _HAS_NAME)
    .order_by(cases.c.impact_rank, cases.c.repository_id, cases.c.no)
    .limit(bindparam("at_most"))
)


def named(
    session: Connection,
    scope: tuple[int | None, frozenset[int] | None],
    text: str,
    at_most: int,
) -> list[tuple[RepoRef, ListedCase]]:
    """Return tests whose name contains a text, those first that hit most pull requests.

    `scope`: of one organization or all, in some repositories or all.
    """
    org_id, within = scope
    statement = _NAMED.where(cases.c.name.icontains(text, autoescape=True))
    if org_id is not None:
        statement = statement.where(cases.c.org_id == org_id)
    if within is not None:
        statement = statement.where(cases.c.repository_id.in_(sorted(within)))
    found = session.execute(statement, {"at_most": at_most}).all()
    listed = _listed(session, [(row.repository_id, row.no) for row in found])
    return [
        (RepoRef(row.host, row.owner, row.name), listed[row.repository_id, row.no]) for row in found
    ]


def places_of(
    session: Connection, org_ids: Collection[int], test_ids: Collection[str]
) -> dict[tuple[int | None, str], tuple[RepoRef, str]]:
    """Return repository and name of tests, by organization and id.

    A test that is known in several repositories of its organization is left out.
    """
    of_orgs = select(repositories.c.id).where(repositories.c.org_id.in_(sorted(org_ids)))
    statement = (
        select(
            cases.c.org_id,
            cases.c.id,
            cases.c.name.label("test"),
            repositories.c.host,
            repositories.c.owner,
            repositories.c.name,
        )
        .join(repositories, repositories.c.id == cases.c.repository_id)
        .where(
            cases.c.repository_id.in_(of_orgs),
            cases.c.id.in_(sorted(test_ids)),
            cases.c.is_known.is_(True),
            _HAS_NAME,
        )
    )
    rows = session.execute(statement).all()
    counts = Counter((row.org_id, row.id) for row in rows)
    return {
        (row.org_id, row.id): (RepoRef(row.host, row.owner, row.name), row.test)
        for row in rows
        if counts[row.org_id, row.id] == 1
    }


def changes(session: Connection, org_id: int | None, within: frozenset[int] | None) -> int:
    """Return a number that changes with all that lists of these repositories' tests show."""
    statement = select(func.coalesce(func.sum(shared.c.revision), 0))
    if org_id is not None:
        statement = statement.where(shared.c.org_id == org_id)
    if within is not None:
        statement = statement.where(shared.c.repository_id.in_(sorted(within)))
    return int(session.execute(statement).scalar_one())


def variants(session: Connection, repository_id: int, no: int) -> list[ListedCase]:
    """Return tests that differ from a test in the variant only, by variant, at most 50."""
    parts = (cases.c.name, cases.c.file, cases.c.classname, cases.c.parent)
    asked = {"of_repository": repository_id}
    # No index has the texts. Of 100,000 tests that takes 40 ms; with a join, or in the order of
    # another index than the numbers', it takes 130 ms.
    own = select(*parts).where(cases.c.repository_id == HERE, cases.c.no == no)
    row = session.execute(own, asked).one()
    same = (column == value for column, value in zip(parts, row, strict=True))
    statement = (
        RECORDS.where(cases.c.no > 0, *same, cases.c.no != no, cases.c.is_known.is_(True))
        .order_by(cases.c.variant, cases.c.no)
        .limit(VARIANTS_MAX)
    )
    return list(map(listed_case, session.execute(statement, asked)))


VARIANTS_MAX = HITS_MAX = 50


class Hit(NamedTuple):
    """A pull request for which a test failed, and when it last did."""

    pr: int
    last_at: datetime


def hits(session: Connection, repository_id: int, no: int) -> list[Hit]:
    """Return the pull requests that a test hit in 168 hours, the newest first, at most 50."""
    statement = (
        select(impacts.c.pr, impacts.c.last_at)
        .where(impacts.c.repository_id == repository_id, impacts.c.no == no)
        .where(impacts.c.is_counted.is_(True))
        .order_by(impacts.c.last_at.desc(), impacts.c.pr)
        .limit(HITS_MAX)
    )
    return [Hit(*row) for row in session.execute(statement)]


def owners(session: Connection, repository_id: int) -> list[str]:
    """Return the owners of unhealthy tests, sorted, at most 200."""
    statement = select(cases.c.owners).distinct().where(cases.c.repository_id == repository_id)
    found: set[str] = set()
    for text in session.execute(statement.where(IS_UNHEALTHY)).scalars():
        found.update(orjson.loads(text))
    return sorted(found)[:OWNERS_MAX]


OWNERS_MAX = 200
