"""How near a goal is to what is possible: beside each the relaxed queues that come nearest.

A relaxed queue has too much information (strategies/informed.py). What is out of reach for the one
with most gifts, no queue that builds on undecided pull requests can reach. The others show what
each gift is worth. Each is as good as its policies, so a goal that none reaches is not proved
impossible, but no rule is known that would reach it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.scheduling.cells import Scenario
from tests.bench.scheduling.goals import GOALS, OURS, TOLERANCE, Bound, Cells, Goal, Row, Rows
from tests.bench.scheduling.strategies.informed import Gifts, relaxed

TITLES = {
    Gifts.HEDGES: "free hedges and blame",
    Gifts.BLAME: "free blame",
    Gifts.NAMES: "free isolation, failed tests known",
    Gifts.ISOLATION: "free isolation",
    Gifts.SEARCH: "failed tests known, searches take runs",
    Gifts.EACH: "failed tests known, a search for each culprit",
    Gifts.UNNAMED: "a search for each culprit",
}
IMPOSSIBLE = "impossible"
"""Out of reach with all gifts."""


@dataclass(frozen=True)
class Distance:
    """A strategy beside a goal: `factor` is the worst of its figures, divided by what is wanted."""

    name: str
    figures: str
    factor: float

    @property
    def words(self) -> str:
        """The figures and the factor."""
        return f"{self.figures} ({self.factor:.2f})"


def goals() -> tuple[Goal, ...]:
    """The goals of the engine that name figures in a chain."""
    return tuple(goal for goal in GOALS if _has_bound(goal))


def scenarios() -> tuple[Scenario, ...]:
    """The cells of these goals, none twice."""
    return tuple(dict.fromkeys(goal.scenario for goal in goals()))


def strategies() -> tuple[str, ...]:
    """What has to be measured in them."""
    return (OURS, *(name for gifts in Gifts for name in relaxed(gifts)))


def rows_of(cells: Cells) -> Iterator[Row]:
    """A row for each goal whose cell was measured."""
    for goal in goals():
        if goal.scenario in cells:
            yield _row(goal, cells[goal.scenario].rows)


def nearest(goal: Goal, rows: Rows, names: Sequence[str]) -> Distance:
    """The one of these strategies whose worst figure is nearest to the goal."""
    return min((distance(goal, rows, name) for name in names), key=lambda each: each.factor)


def distance(goal: Goal, rows: Rows, name: str) -> Distance:
    """How far a strategy is from a goal; a factor of 1 meets it exactly."""
    values = [float(getattr(rows[name], bound.metric)) for bound in goal.bounds]
    limits = [bound.limit_in(rows) for bound in goal.bounds]
    factors = map(_factor, goal.bounds, values, limits)
    return Distance(name, " · ".join(f"{value:.2f}" for value in values), max(factors))


def judged(goal: Goal, rows: Rows) -> str:
    """The least of the gifts with which the goal is met, within the tolerance of goals."""
    for gifts in reversed(Gifts):
        if nearest(goal, rows, list(relaxed(gifts))).factor <= 1 + TOLERANCE:
            return f"with {TITLES[gifts]}"
    return IMPOSSIBLE


def _has_bound(goal: Goal) -> bool:
    return goal.scenario.family == "F" and goal.name == OURS


def _factor(bound: Bound, value: float, limit: float) -> float:
    return limit / value if bound.is_floor else value / limit


def _row(goal: Goal, rows: Rows) -> Row:
    of_gifts = {gifts: nearest(goal, rows, list(relaxed(gifts))) for gifts in Gifts}
    wanted = (
        f"{bound.label} {'≥' if bound.is_floor else '≤'} {bound.limit_in(rows):.4g}"
        for bound in goal.bounds
    )
    return {
        "goal": goal.id,
        "cell": goal.scenario.title,
        "wanted": " · ".join(wanted),
        **{TITLES[gifts]: found.words for gifts, found in of_gifts.items()},
        "queue": distance(goal, rows, OURS).words,
        "possible": judged(goal, rows),
    }
