"""The value that a simulation is driven by: submissions with known outcomes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine.rules import Seen
from service.mergequeue.engine.targets import Targets
from service.mergequeue.entry_rules.expressions import READABLE
from service.vocabulary import Actor, Sha


@dataclass(frozen=True, slots=True)
class Fate:
    """The effect of a change on the tests.

    `breaks`: every tree with it fails. `breaks_with`: a tree fails that has one of these pull
    requests beside it. `conflicts`: no test branch can be made of it.
    """

    breaks: bool = False
    breaks_with: frozenset[int] = frozenset()
    conflicts: bool = False

    @property
    def is_good(self) -> bool:
        """Return whether it passes on every base."""
        return not (self.breaks or self.breaks_with or self.conflicts)


GOOD = Fate()


@dataclass(frozen=True, slots=True)
class Arrival:
    """One submission of one head, at the instant at which it was ready.

    `priority` None: no person gave one. `ci_s` is how long a test of it takes, None: drawn from the
    history. `contains_tip`: its head contained the target's tip when it came, and its own checks
    had passed. `submitted_by` None: the author, a person. `resubmissions` are how often the head is
    submitted again after it has failed. `cancelled_at`: a person took it out then, if it was still
    queued. `targets` None: they are unknown. `seen` is the pull request as rules see it, but for
    what is in `unknown`.
    """

    at: datetime
    pr: int
    head: Sha
    author: str = ""
    priority: int | None = None
    no_batch: bool = False
    targets: Targets | None = None
    fate: Fate = GOOD
    ci_s: float | None = None
    contains_tip: bool = False
    submitted_by: Actor | None = None
    resubmissions: int = 0
    cancelled_at: datetime | None = None
    seen: Seen | None = None
    unknown: frozenset[str] = READABLE


@dataclass(frozen=True, slots=True)
class History:
    """Submissions by time, and the CI they meet.

    `durations_s` are those of finished tests; a test without one of its own takes one of them.
    `flake_rate` is the chance that a test of a good tree fails. `workers` is how many tests CI
    runs at the same time, None: as many as are asked for.
    """

    arrivals: tuple[Arrival, ...]
    durations_s: tuple[float, ...]
    flake_rate: float = 0.0
    workers: int | None = None


def history_of(
    arrivals: Iterable[Arrival], durations_s: Iterable[float], flake_rate: float
) -> History:
    """A history with its arrivals in order and its durations sorted."""
    ordered = tuple(sorted(arrivals, key=lambda one: (one.at, one.pr, one.head)))
    return History(ordered, tuple(sorted(durations_s)), flake_rate)
