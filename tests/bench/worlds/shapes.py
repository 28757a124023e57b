"""What a repository is made of, and one moment of its CI."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from numpy.random import Generator

Rerun = Literal["job", "failed tests", "inside", "nobody"]


@dataclass(frozen=True)
class Life:
    """A test that is flaky from day `begin` to `end`, and fails at this rate in `jobs`."""

    test: int
    begin: float
    end: float
    rate: float
    jobs: tuple[int, ...]


@dataclass(frozen=True)
class Moment:
    """One attempt of a job; `base` is the day of the code of main that it contains.

    `run` and `attempt` name it, `commit` is the commit of main it was made from.
    """

    run: int
    job: int
    attempt: int
    day: float
    base: float
    machine: int
    pr: int | None
    is_last_push: bool


class Law(Protocol):
    """A reason why tests fail. Drawn once for a world, by `drawn`."""

    def drawn(self, shape: "Shape", chance: Generator) -> "Drawn":
        """Draw what the reason hits in one repository."""
        ...


class Drawn(Protocol):
    """A reason in one repository."""

    def lives(self) -> Iterable[Life]:
        """The tests that are flaky by it; empty: it makes none flaky."""
        ...

    def failing(self, moment: Moment, chance: Generator) -> Iterable[int]:
        """The tests that it fails now, of any job."""
        ...


@dataclass(frozen=True)
class Shape:
    """A repository: its tests and jobs, how often CI runs, and what its uploads say.

    `rerun`: what is done about `believed` less than all red jobs; `shuffles`: each run spreads
    the tests over the jobs anew; `is_matrix`: every job runs every test; `by_queue`: a merge queue
    tests each last push before main has it; `nightly`: only job 0 runs for pushes, the others once
    a night on main. `renamed`: share of flaky tests that get another number. `people`
    open pull requests; the busiest of them twice as many as the next, three times as many as the
    third.
    """

    laws: tuple[Law, ...]
    tests: int = 600
    jobs: int = 2
    days: int = 45
    pushes: float = 20
    main: float = 8
    rerun: Rerun = "job"
    rerun_share: float = 0.5
    machines: int = 8
    has_machine_names: bool = False
    has_positions: bool = True
    has_runs: bool = True
    shuffles: bool = False
    is_matrix: bool = False
    by_queue: bool = False
    tests_main: bool = True
    nightly: bool = False
    renamed: float = 0.0
    people: int = 10

    def home_of(self, test: int) -> tuple[int, ...]:
        """The jobs that run a test, where runs do not spread them anew."""
        if self.is_matrix or self.shuffles:
            return tuple(range(self.jobs))
        return (test % self.jobs,)
