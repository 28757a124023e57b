"""The pages of the slowest tests of a repository, and of what its flaky tests cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from service.dashboard.charts import Chart, Series, day_label, took
from service.errors import Malformed
from service.runtime import Runtime
from service.testhealth.filters import TimeOrder
from service.testhealth.flake_costs import WEEKS_MAX, Cost, FlakeCosts, Week
from service.testhealth.operations import flake_costs, settings, slow_tests
from service.testhealth.operations.records import RepositoryAddresses
from service.testhealth.operations.slow_tests import SlowTest, SlowTests

TESTS_MAX = 100
TEXT_MAX = 1000
FLAT = 0.15
"""A median that changed by less is the same: times are read from buckets 10 % wide."""

ORDERS: Mapping[str, TimeOrder] = {
    "": TimeOrder.TOTAL,
    "median": TimeOrder.MEDIAN,
    "p95": TimeOrder.P95,
}


@dataclass(frozen=True, slots=True)
class SlowPage:
    """The slowest tests; `given` is the filter as the query has it."""

    given: Mapping[str, str]
    found: SlowTests

    @property
    def order(self) -> TimeOrder:
        """The order of the list."""
        return ORDERS[self.given.get("sort", "")]

    @property
    def heading(self) -> str:
        """`5,000 tests took 31 h in a week, 4 % more than in the week before`."""
        found = self.found
        if found.period is None:
            return "No time of a test is known yet"
        many = "test" if found.count == 1 else "tests"
        text = f"{found.count:,} {many} took {took(found.now_ms)} in a week"
        if not found.before_ms:
            return text
        change = found.now_ms / found.before_ms - 1
        if abs(change) < 0.005:
            return f"{text}, as in the week before"
        more = "more" if change > 0 else "less"
        return f"{text}, {abs(change):.0%} {more} than in the week before".replace("%", " %")

    @property
    def days(self) -> str:
        """`15 Mar to 21 Mar`."""
        period = self.found.period
        return "" if period is None else f"{day_label(period.first)} to {day_label(period.last)}"

    def share_of(self, test: SlowTest) -> float:
        """Return the share of a test in the time of all."""
        return test.now.total_ms / self.found.now_ms if self.found.now_ms else 0.0

    def trend_of(self, test: SlowTest) -> tuple[str, str]:
        """Return how the median changed: a word for its color, and a text."""
        if test.trend is None:
            return "soft", "new" if not test.before.runs else "-"
        if abs(test.trend) < FLAT:
            return "soft", "same"
        return ("bad" if test.trend > 0 else "good"), f"{test.trend:+.0%}".replace("%", " %")

    def sorted_by(self, order: str) -> str:
        """Return the query of the same list in another order."""
        return urlencode({**{k: v for k, v in self.given.items() if k != "sort"}, "sort": order})


async def slowest(
    runtime: Runtime, where: RepositoryAddresses, query: Mapping[str, str]
) -> SlowPage:
    """Return the page that a query asks for. Raises Malformed for an unknown filter."""
    given = {name: query[name].strip() for name in ("owner", "sort") if query.get(name, "").strip()}
    if given.get("sort", "") not in ORDERS:
        raise Malformed('The filter `sort` takes "median", "p95", or nothing.')
    if len(given.get("owner", "")) > TEXT_MAX:
        raise Malformed(f"The filter `owner` takes at most {TEXT_MAX:,} characters.")
    order, owner = ORDERS[given.get("sort", "")], given.get("owner", "")
    found = await slow_tests.slowest(runtime, where.repository, order, owner, TESTS_MAX)
    return SlowPage(given, found)


class OwnerRow(NamedTuple):
    """The costs of an owner's flaky tests: those of all weeks, and the CI minutes of each."""

    owner: str
    whole: Cost
    minutes: Sequence[int]


@dataclass(frozen=True, slots=True)
class CostsPage:
    """The page of what flaky tests cost; `limit` is the setting of the alert."""

    costs: FlakeCosts
    limit: int | None

    @property
    def known(self) -> Sequence[Week]:
        """The weeks of which something is known."""
        return [week for week in self.costs.weeks if week.is_known]

    @property
    def whole(self) -> Cost:
        """The cost of all weeks."""
        return sum((week.cost for week in self.known), Cost())

    @property
    def is_above(self) -> bool:
        """Return whether the present week is above the limit."""
        return flake_costs.is_above(self.costs.present.cost, self.limit)

    @property
    def heading(self) -> str:
        """`Flaky tests lost 61 h of CI in 12 weeks`."""
        if not self.known:
            return "No cost of flaky tests is known yet"
        many = len(self.known)
        weeks = "a week" if many == 1 else f"{many} weeks"
        if not self.whole.ci_ms and not self.whole.wait_ms:
            return f"Flaky tests cost nothing in {weeks}"
        return f"Flaky tests lost {took(self.whole.ci_ms)} of CI in {weeks}"

    @property
    def owners(self) -> Sequence[OwnerRow]:
        """A row for each owner."""
        return [
            OwnerRow(each.owner, each.whole, [round(cost.ci_ms / 60_000) for cost in each.weeks])
            for each in self.costs.owners
        ]

    @property
    def charts(self) -> Sequence[Chart]:
        """The weeks as bars: CI time and the time of pull requests."""
        labels = [day_label(week.start) for week in self.costs.weeks]

        def of(name: str, color: str, field: str) -> Series:
            values = [
                getattr(week.cost, field) / 1000 if week.is_known else None
                for week in self.costs.weeks
            ]
            return Series(name, color, values)

        hint = "A bar is a week from Monday on, UTC; the last one goes on. No bar: nothing is known"
        return (
            Chart(
                "CI time lost, by week",
                f"{hint}, or nothing was lost.",
                labels,
                [of("CI time", "bad", "ci_ms")],
                is_time=True,
            ),
            Chart(
                "Time that pull requests waited in the queue, by week",
                f"{hint}, or nothing waited. Each pull request counts by itself.",
                labels,
                [of("pull requests", "wait", "wait_ms")],
                is_time=True,
            ),
        )


async def costs(runtime: Runtime, where: RepositoryAddresses) -> CostsPage:
    """Return the page of costs."""
    found = await flake_costs.of_repository(runtime, where.repository, WEEKS_MAX)
    limit = (await settings.read(runtime, where.repository)).flake_cost_alert_minutes
    return CostsPage(found, limit)
