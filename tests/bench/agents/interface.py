"""What a queue is here: a strategy of the scheduling benchmark that also asks git.

An `Eject` without a proof says that the head cannot be merged.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from tests.bench.agents.world import Clash
from tests.bench.scheduling.interface import Strategy, StrategyConfig


class Git(Protocol):
    """What git answers about heads, by number; the branch is as all landings have left it."""

    def pull_request(self, head: int) -> int:
        """The pull request of which it is a head."""

    def clash_of(self, head: int, ahead: Iterable[int] = ()) -> Clash | None:
        """Why the head cannot be merged onto the branch and these heads; None if it can."""

    def is_contained(self, head: int, ahead: Iterable[int] = ()) -> bool:
        """Whether the branch with these heads has the change already."""

    def land(self, head: int) -> None:
        """Move the branch; a queue calls it as it asks for the merge."""


MakeQueue = Callable[[StrategyConfig, Git], Strategy]
