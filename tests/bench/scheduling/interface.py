"""What a strategy is: plain events in, plain actions out.

A strategy is a pure state machine. It owns no clock, no I/O and no chance: everything it may
know arrives in an event, everything it wants done leaves as an action.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

URGENT, NORMAL = 0, 100
"""Priorities, lower first."""

NO_PROOF = -1


class PrView(NamedTuple):
    """What a queue may know about a pull request when it is submitted.

    `id` counts from 0 in order of arrival, `author` from 0 too; `targets` None: all of them, or
    unknown; `p_ok` is the calibrated chance that it passes on its own, `d_hat` the expected
    seconds of its CI.
    """

    id: int
    t: float
    targets: frozenset[int] | None
    p_ok: float
    d_hat: float
    priority: int = NORMAL
    author: int = 0


class PrSubmitted(NamedTuple):
    """A pull request enters the queue."""

    t: float
    pr: PrView


class RunFinished(NamedTuple):
    """A run that nobody cancelled has ended; `run` is the id the strategy chose.

    `failed_tests` are known only where CI sends the results of its tests.
    """

    t: float
    run: int
    passed: bool
    failed_tests: tuple[str, ...] = ()


class PrCancelled(NamedTuple):
    """The author withdrew it: it must never be merged."""

    t: float
    pr: int


class Clock(NamedTuple):
    """The answer to `SetTimer`."""

    t: float


Event = PrSubmitted | RunFinished | PrCancelled | Clock


class StartRun(NamedTuple):
    """Test the tree main(now) + `base` + `prs`.

    `base` are those the run depends on and does not test. The tree is fixed when the action is
    taken; the run waits for a free worker in order of (`rank`, issue) if all are busy.
    """

    run: int
    base: tuple[int, ...]
    prs: tuple[int, ...]
    rank: float = 0.0


class CancelRun(NamedTuple):
    """Free the run's worker at once; its time is waste."""

    run: int


class Merge(NamedTuple):
    """Merge in order; `proof` is the passed run that justifies it."""

    prs: tuple[int, ...]
    proof: int


class Eject(NamedTuple):
    """Reject; `proof` is the failed run that justifies it."""

    pr: int
    proof: int = NO_PROOF


class SetTimer(NamedTuple):
    """Ask for a `Clock` at second `t`."""

    t: float


Action = StartRun | CancelRun | Merge | Eject | SetTimer


class Strategy(Protocol):
    """A way to run a queue."""

    name: str

    def answer(self, event: Event) -> Iterable[Action]:
        """Take one event; the actions it causes, in order."""


class StrategyConfig(NamedTuple):
    """Everything a strategy is told when it is made.

    `workers` runs may execute at once; `use_targets`: whether targets may be trusted;
    `conflict_prior` and `flake_prior` are the chances that two which may conflict do, and that a
    run of a good tree fails; `full_suite`: whether every run tests its whole tree. As history
    would show them: `conflict_rate` is the chance that one conflicts with others that came shortly
    before, `minutes` how long a run usually takes. `sends_results`: CI sends which tests failed.
    `foreseen` is the share of the failures that the estimates foresee.
    """

    workers: int
    use_targets: bool
    conflict_prior: float
    flake_prior: float
    full_suite: bool = False
    conflict_rate: float = 0.03
    minutes: float = 20.0
    sends_results: bool = False
    foreseen: float = 0.0


MakeStrategy = Callable[[StrategyConfig], Strategy]
