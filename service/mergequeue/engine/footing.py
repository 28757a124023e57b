"""What is known of the ground that runs stand on, carried from step to step.

All of it follows from the queue's value and only saves looking again: a value that was loaded
has none of it. Kept true by `draft.py`; nothing here decides anything.
"""

from dataclasses import dataclass, field

from service.mergequeue.engine.graph import Graph
from service.mergequeue.engine.model import LandedStep, Run
from service.mergequeue.engine.targets import Targets


@dataclass(frozen=True, slots=True)
class Progress:
    """What has landed since a run's tip: pull requests of its own, and whether others did too.

    `until` is the last move looked at, so that a later look begins behind it. `numbers` are the
    pull requests of the run and its base, `unproved` those of them that others merged before they
    had passed, `reach` what those of them that were live touched (None:
    not looked at), `evidence` says that the run was looked at as evidence.
    """

    landed: frozenset[int]
    others: bool
    until: LandedStep | None
    numbers: frozenset[int]
    reach: Targets | None
    evidence: bool
    unproved: tuple[int, ...] = ()


@dataclass(slots=True)
class Footing:
    """The graph (None: to be drawn), the progress of runs by id, and who was found to hold.

    The runs in `sound` stood on the graph as it is drawn when the last of the target's moves was
    `seen`.
    """

    graph: Graph | None = None
    progress: dict[str, Progress] = field(default_factory=dict)
    sound: set[str] = field(default_factory=set)
    seen: LandedStep | None = None

    def copy(self) -> "Footing":
        """One that may be changed; the graph is shared with the older value."""
        return Footing(self.graph, self.progress.copy(), self.sound.copy(), self.seen)


def foreseen_by(run: Run) -> tuple[object, ...]:
    """What of a run decides whether its base holds."""
    return run.kind, run.status, run.base_tip, run.base, run.entries, run.steps
