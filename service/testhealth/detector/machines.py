"""Machines that fail tests which pass elsewhere (docs/design/machines.md)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp, lgamma, log, log1p
from typing import NamedTuple

from service.testhealth.detector.evidence import Event

WINDOW = timedelta(days=14)
"""The time up to the evidence clock that is looked at."""

MOSTLY = 4
"""A test is a machine's own if so many of five disagreements of it were there."""

TESTS_MAX = 100
"""Tests of a machine that are named."""

TESTS_MIN = 3
"""Fewer tests of its own may be tests that the machine is too slow for, not a bad machine."""

AS_OTHERS, BY_SHARE = 1e-6, 1e-5
"""A machine is bad if chance explains less than this: as many such runs at the rate of others, and
as many of them on one machine."""

NEWEST, NEWEST_AS_OTHERS, CLEAN = 30, 1e-2, 1e-3
"""It is mended if its newest runs are like those of others, or if that many without a failure of
its own have a smaller chance than CLEAN."""


class Ran(NamedTuple):
    """A job ran code on a machine; once, however often it ran it again there."""

    machine: str
    job: str
    code: str


@dataclass(frozen=True, slots=True)
class BadMachine:
    """A machine that fails tests of its own, `count` in all.

    `tests` are at most TESTS_MAX of them, those first that fail most often there. Any of them
    failed in `failing` of its `runs`; tests of their own failed in `others_failing` of the
    `others_runs` of all other machines. `since` is the first of these failures, `last` the newest.
    """

    machine: str
    tests: tuple[int, ...]
    count: int
    since: datetime
    last: datetime
    failing: int
    runs: int
    others_failing: int
    others_runs: int


def found(
    events: Mapping[int, Iterable[Event]], uploads: Iterable[tuple[datetime, Ran]], clock: datetime
) -> tuple[BadMachine, ...]:
    """Return the machines that are bad now, by name.

    `events` are those of each test, with machines where enough share the job (`on_shared`);
    `uploads` are when jobs that so many machines share ran, and where.
    """
    recent = [(at, ran) for at, ran in uploads if at > clock - WINDOW and ran.machine]
    distinct = {ran for _, ran in recent}
    runs = Counter(ran.machine for ran in distinct)
    own: defaultdict[str, dict[int, list[Event]]] = defaultdict(dict)
    for no, of_test in events.items():
        owner, theirs = _owner(of_test, clock)
        if owner:
            own[owner][no] = theirs
    # What failed earlier may be contradicted in the window; its run is not one of `runs`.
    failing = {
        machine: {
            each for each in _runs_with(tests.values(), machine) if Ran(machine, *each) in distinct
        }
        for machine, tests in own.items()
    }
    known = {machine: len(failing.get(machine, ())) for machine in runs}
    return tuple(
        bad
        for machine in sorted(own)
        if (bad := _judged(machine, own[machine], runs, known)) is not None
        and not _is_mended(bad, [ran for _, ran in sorted(recent)], failing[machine])
    )


def _owner(events: Iterable[Event], clock: datetime) -> tuple[str, list[Event]]:
    """The machine whose own a test is, empty: nobody's; and its events of the window."""
    recent = [event for event in events if event.at > clock - WINDOW]
    counted = Counter(event.machine for event in recent)
    machine, count = max(counted.items(), key=lambda each: (each[1], each[0]), default=("", 0))
    is_own = machine and count * (MOSTLY + 1) >= len(recent) * MOSTLY
    return (machine, recent) if is_own else ("", recent)


def _runs_with(tests: Iterable[Iterable[Event]], machine: str) -> Set[tuple[str, str]]:
    """The jobs and codes that failed any of these tests on a machine."""
    return {
        (event.job, event.code) for events in tests for event in events if event.machine == machine
    }


def _judged(
    machine: str,
    tests: Mapping[int, list[Event]],
    runs: Mapping[str, int],
    failing: Mapping[str, int],
) -> BadMachine | None:
    """Return the machine if chance does not explain what failed there."""
    here, ran = failing.get(machine, 0), runs.get(machine, 0)
    others, others_ran = sum(failing.values()) - here, sum(runs.values()) - ran
    if len(tests) < TESTS_MIN or not ran or not others_ran:
        return None
    anywhere = {(event.job, event.code) for of in tests.values() for event in of}
    rate, share = (others + 1) / (others_ran + 2), ran / (ran + others_ran)
    if _chance(here, ran, rate) > AS_OTHERS or _chance(here, len(anywhere), share) > BY_SHARE:
        return None
    there = {no: [event.at for event in of if event.machine == machine] for no, of in tests.items()}
    times = [at for of in there.values() for at in of]
    return BadMachine(
        machine=machine,
        tests=tuple(sorted(there, key=lambda no: (-len(there[no]), no)))[:TESTS_MAX],
        count=len(there),
        since=min(times),
        last=max(times),
        failing=here,
        runs=ran,
        others_failing=others,
        others_runs=others_ran,
    )


def _is_mended(bad: BadMachine, ran: Iterable[Ran], failing: Set[tuple[str, str]]) -> bool:
    """Return whether its newest runs are those of a sound machine; `ran`: all, oldest first."""
    there = dict.fromkeys(each for each in ran if each.machine == bad.machine)
    newest = [(each.job, each.code) in failing for each in there][-NEWEST:]
    clean = newest[::-1].index(True) if True in newest else len(newest)
    rate = (bad.others_failing + 1) / (bad.others_runs + 2)
    if _chance(sum(newest), len(newest), rate) > NEWEST_AS_OTHERS:
        return True
    return (1 - min(bad.failing / bad.runs, 0.9)) ** clean <= CLEAN


def _chance(count: int, of: int, rate: float) -> float:
    """The chance of so many or more of some runs, each of which counts at this rate."""
    return min(1.0, sum(_exactly(count, of, rate)))


def _exactly(least: int, of: int, rate: float) -> Iterator[float]:
    for count in range(least, of + 1):
        ways = lgamma(of + 1) - lgamma(count + 1) - lgamma(of - count + 1)
        yield exp(ways + count * log(rate) + (of - count) * log1p(-rate))
