"""Add up what flaky tests cost, week by week: pure sums (docs/design/test-costs.md 4).

Weeks begin on Monday, at midnight UTC, and have a number: weeks since 1969-12-29.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

WEEKS_MAX = 12
DAYS = 7

EPOCH = date(1970, 1, 1)
_MONDAY = 3
"""Days from the Monday of week 0 to 1970-01-01, a Thursday."""

Owners = tuple[str, ...]


def week_of(day: int) -> int:
    """Return the number of the week of a day, which is counted since 1970."""
    return (day + _MONDAY) // DAYS


def first_day_of(week: int) -> int:
    """Return the Monday of a week, as days since 1970."""
    return week * DAYS - _MONDAY


class Cost(NamedTuple):
    """CI time lost, time of pull requests that waited, and failures; each as a share of a test."""

    ci_ms: float = 0
    wait_ms: float = 0
    failures: float = 0

    def __add__(self, other: object) -> "Cost":
        """Return the sum."""
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(
            self.ci_ms + other.ci_ms,
            self.wait_ms + other.wait_ms,
            self.failures + other.failures,
        )

    def part(self, of: int) -> "Cost":
        """Return one of so many equal parts."""
        return Cost(self.ci_ms / of, self.wait_ms / of, self.failures / of)

    @property
    def lost(self) -> timedelta:
        """The CI time."""
        return timedelta(milliseconds=self.ci_ms)

    @property
    def waited(self) -> timedelta:
        """The time of pull requests."""
        return timedelta(milliseconds=self.wait_ms)


class OwnCost(NamedTuple):
    """The cost of a test on a day; number 0: no report names the test."""

    day: int
    no: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Week:
    """A week and its cost. `counted` days of it are known, of the 7 that it has."""

    number: int
    counted: int
    cost: Cost

    @property
    def start(self) -> date:
        """Its Monday."""
        return EPOCH + timedelta(days=first_day_of(self.number))

    @property
    def is_known(self) -> bool:
        """Return whether any day of it is counted."""
        return self.counted > 0

    @property
    def is_whole(self) -> bool:
        """Return whether every day of it is counted."""
        return self.counted == DAYS


@dataclass(frozen=True, slots=True)
class OwnerCost:
    """The cost of the tests of an owner in each of the weeks; `owner` empty: they have none."""

    owner: str
    weeks: tuple[Cost, ...]

    @property
    def whole(self) -> Cost:
        """The sum of all weeks."""
        return sum(self.weeks, Cost())


@dataclass(frozen=True, slots=True)
class FlakeCosts:
    """The cost of flaky tests in the weeks up to the present one, oldest first, and by owner.

    `first` and `last` are the days between which costs are known, None if none are.
    """

    weeks: tuple[Week, ...]
    owners: tuple[OwnerCost, ...]
    first: date | None = None
    last: date | None = None

    @property
    def present(self) -> Week:
        """The week that is not over."""
        return self.weeks[-1]


def costs_of(
    weeks: range,
    known: tuple[int, int] | None,
    costs: Iterable[OwnCost],
    owners_of: Mapping[int, Owners],
) -> FlakeCosts:
    """Add up what tests cost; owners of a test have equal parts, so that all add up to the sum."""
    by_week: defaultdict[int, Cost] = defaultdict(Cost)
    by_owner: defaultdict[str, defaultdict[int, Cost]] = defaultdict(lambda: defaultdict(Cost))
    for each in costs:
        week = week_of(each.day)
        by_week[week] += each.cost
        owners = owners_of.get(each.no) or ("",)
        for owner in owners:
            by_owner[owner][week] += each.cost.part(len(owners))
    counted = Counter(week_of(day) for day in range(known[0], known[1] + 1)) if known else Counter()
    found = [
        OwnerCost(owner, tuple(sums[week] for week in weeks)) for owner, sums in by_owner.items()
    ]
    bounds = [EPOCH + timedelta(days=day) for day in known] if known else [None, None]
    return FlakeCosts(
        weeks=tuple(Week(week, counted[week], by_week[week]) for week in weeks),
        owners=tuple(sorted(found, key=_rank)),
        first=bounds[0],
        last=bounds[1],
    )


def _rank(owner: OwnerCost) -> tuple[float, float, str]:
    whole = owner.whole
    return (-whole.ci_ms, -whole.wait_ms, owner.owner)


def is_in_weeks(spans: Sequence[tuple[int, int | None]], week: int) -> bool:
    """Return whether one of these spans of days touches a week; None: it goes on."""
    first, end = first_day_of(week), first_day_of(week + 1)
    return any(since < end and (until is None or until >= first) for since, until in spans)
