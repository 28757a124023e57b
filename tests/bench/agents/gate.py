"""What Headgate decides when a head is submitted, before it costs CI.

The undone-work guard is a model with the rates that were measured on public histories
(docs/design/undone-work.md 7); the attempt budget is the rule itself.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from tests.bench.agents.world import Head, Kind, World
from tests.bench.scheduling import chance

RECALL = 0.96
"""Of 920 landings that stale trees took back, 886 were named."""

FALSE_ALARM = 1 / 345
"""Of landings that took nothing back."""


class Answer(StrEnum):
    """The answers to a submission."""

    ACCEPTED = "accepted"
    HELD = "undoes_landed_work"
    SUPERSEDED = "superseded"
    FAILED_BEFORE = "failed_before"


@dataclass
class Gate:
    """The decisions of one repository; `declared` said that they mean what they take back."""

    world: World
    guards: bool = False
    budgets: bool = False
    declared: set[int] = field(default_factory=set)
    blamed: set[int] = field(default_factory=set)

    def answer(self, head: Head) -> Answer:
        """Whether the head enters."""
        if self.guards and self.world.is_contained(head.id):
            return Answer.SUPERSEDED
        if self.guards and head.pr not in self.declared and self._alarms(head):
            return Answer.HELD
        if self.budgets and head.id in self.blamed:
            return Answer.FAILED_BEFORE
        return Answer.ACCEPTED

    def _alarms(self, head: Head) -> bool:
        rate = RECALL if head.kind is Kind.STALE else FALSE_ALARM
        return chance.unit(chance.mix(self.world.scenario.seed) ^ head.pr) < rate
