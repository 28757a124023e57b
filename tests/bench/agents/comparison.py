"""What is compared: GitHub's rules, and Headgate with each of its guards off and on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from service.mergequeue.engine.config import FairShares
from tests.bench.agents.figures import Figures, figures_of, mean
from tests.bench.agents.github_rules import GitHubRules
from tests.bench.agents.interface import MakeQueue
from tests.bench.agents.queue import HeadgateQueue
from tests.bench.agents.simulator import Rules, play
from tests.bench.agents.world import Scenario
from tests.bench.tables import Row

ADAPTIVE, PLAIN = "headgate", "headgate-plain"
"""The recommended settings, and those without batches (tests/bench/scheduling/settings.py)."""

SEEDS = range(1, 6)

JAIN_MIN, PEOPLE_MAX, REVERTS_MAX = 0.95, 1.5, 1
"""Goals of the queue with all guards: fairness; people's 95th percentile, in that of people who
have the queue to themselves; silent reverts in a day."""


@dataclass(frozen=True)
class Contender:
    """One queue of the comparison; without `settings` GitHub's."""

    settings: str = ""
    rules: Rules = field(default_factory=Rules)
    shares: FairShares = FairShares.OFF

    def queue(self, scenario: Scenario) -> MakeQueue:
        """How the queue is made for a scenario."""
        if not self.settings:
            return GitHubRules
        return partial(
            HeadgateQueue,
            settings=self.settings,
            changes={"fair_shares": self.shares},
            people_from=scenario.agents,
        )

    def measured(self, scenario: Scenario, seeds: Sequence[int] = SEEDS) -> Figures:
        """The mean figures of the scenario under these seeds."""
        drawn = [replace(scenario, seed=seed) for seed in seeds]
        return mean([figures_of(play(one, self.queue(one), self.rules)) for one in drawn])

    def people_alone_min(self, scenario: Scenario, seeds: Sequence[int] = SEEDS) -> float:
        """People's 95th percentile in a repository without agents."""
        return self.measured(replace(scenario, agents=0, flood=0), seeds).people_p95_min


GUARDS = Rules(guard=True, budget=True, verdict=True, radar=True)
ALL_ON = "Headgate, all on"
CONTENDERS: Mapping[str, Contender] = {
    "GitHub's rules": Contender(),
    "Headgate, no batches, all off": Contender(PLAIN),
    "Headgate, all off": Contender(ADAPTIVE),
    "… with undone-work guard": Contender(ADAPTIVE, Rules(guard=True)),
    "… with attempt budget": Contender(ADAPTIVE, Rules(budget=True)),
    "… with fair shares": Contender(ADAPTIVE, shares=FairShares.SUBMITTERS),
    "… with people apart": Contender(ADAPTIVE, shares=FairShares.PEOPLE_AND_AGENTS),
    "… with one verdict": Contender(ADAPTIVE, Rules(verdict=True)),
    "… with conflict radar": Contender(ADAPTIVE, Rules(radar=True)),
    ALL_ON: Contender(ADAPTIVE, GUARDS, FairShares.PEOPLE_AND_AGENTS),
}

BUSIER = Scenario(agent_every_min=150.0)
"""60 pull requests an hour in place of 45."""

IN_BUSIER = ("GitHub's rules", "Headgate, all off", ALL_ON)


def run(scale: float = 1.0) -> Sequence[Row]:
    """A row for each queue, and one for each goal's cell; SCALE multiplies the seeds."""
    seeds = range(1, round(len(SEEDS) * scale) + 1)
    rows = [_row("45/h", name, Scenario(), seeds) for name in CONTENDERS]
    rows += [_row("60/h", name, BUSIER, seeds[:2]) for name in IN_BUSIER]
    return [*rows, *(_held_against_goals(row) for row in rows if row["queue"] == ALL_ON)]


def _row(load: str, name: str, scenario: Scenario, seeds: Sequence[int]) -> Row:
    contender = CONTENDERS[name]
    found = contender.measured(scenario, seeds)
    alone_min = contender.people_alone_min(scenario, seeds)
    return {
        "load": load,
        "queue": name,
        "ci_wasted_percent": round(100 * found.ci_wasted),
        "ci_minutes_each": round(found.ci_min_per_landing, 1),
        "submissions_wasted_percent": round(100 * found.attempts_wasted),
        "refused_percent": round(100 * found.attempts_refused),
        "landed_per_h": round(found.landed_per_h, 1),
        "silent_reverts": round(found.silent_reverts, 1),
        "empty_landings": round(found.empty_landings, 1),
        "jain": round(found.fairness, 2),
        "people_p95_min": round(found.people_p95_min),
        "people_p95_by_alone": round(found.people_p95_min / alone_min, 1),
        "agents_p95_min": round(found.agents_p95_min),
        "conflicts": round(found.clashes),
        "rebases": round(found.rebases),
        "good_never_landed": round(found.unlanded, 1),
    }


def _held_against_goals(row: Row) -> Row:
    return {
        **{name: row[name] for name in ("load", "queue")},
        "silent_reverts": row["silent_reverts"],
        "silent_reverts_goal": REVERTS_MAX,
        "jain": row["jain"],
        "jain_floor": JAIN_MIN,
        "people_p95_by_alone": row["people_p95_by_alone"],
        "people_p95_by_alone_goal": PEOPLE_MAX,
    }
