"""The worlds: each changes one thing, and has goals and gates of its own."""

from dataclasses import dataclass, replace

from tests.bench.worlds import laws
from tests.bench.worlds.laws import Flaky
from tests.bench.worlds.shapes import Law, Shape

USUAL: tuple[Law, ...] = (
    *(Flaky(share=0.03), laws.Clusters(), laws.Losses()),
    *(laws.BrokenPulls(), laws.BrokenMain()),
)
SOUND = USUAL[2:]
"""The same without flaky tests."""


@dataclass(frozen=True)
class World:
    """A shape with its goals: precision and recall at least, flags of a flaky test at most.

    `GATES` has lower bounds where a goal is not reached, so that nothing gets worse unseen.
    """

    name: str
    shape: Shape
    about: str
    precision: float = 0.95
    recall: float = 0.95
    flags: float = 1.2


BASE = Shape(USUAL)
TINY_LAWS: tuple[Law, ...] = (Flaky(share=0.08, low=0.02), laws.Clusters(2, low=0.03), *SOUND)
SMALL_LAWS: tuple[Law, ...] = (Flaky(share=0.06, low=0.01), laws.Clusters(3, low=0.01), *SOUND)
TINY = replace(BASE, laws=TINY_LAWS, tests=100, jobs=1, pushes=3, main=1, people=2)


def _with(*changed: Law) -> Shape:
    """The usual repository with these flaky tests instead of its own."""
    return replace(BASE, laws=(*changed, *SOUND))


def _and(*more: Law) -> Shape:
    return replace(BASE, laws=(*USUAL, *more))


WORLDS = (
    World("Base", BASE, "half of the red jobs are run again"),
    World(
        "CommitChange",
        _with(Flaky(share=0.06, low=0.01, short=True)),
        *("a commit makes a test flaky, another mends it some days later", 0.9, 0.9),
    ),
    World(
        "Sharded",
        replace(BASE, shuffles=True, jobs=4),
        *("each run spreads the tests over 4 jobs anew", 0.93, 0.93),
    ),
    World(
        "BadMachine",
        _and(laws.BadMachine()),
        *("one of 8 machines fails 2 % of the tests, others each time; no names", 0.93, 0.93),
    ),
    World(
        "BadMachineNamed",
        replace(_and(laws.BadMachine(fixed=15)), has_machine_names=True),
        *("one of 8 machines fails 15 tests, always these; uploads name machines", 0.93, 0.93),
    ),
    World(
        "SlowMachine",
        replace(_and(laws.BadMachine(begin=0, end=45, fixed=6, share=0.0)), has_machine_names=True),
        *("6 tests are too slow for one of 8 machines, all the time", 0.93, 0.93),
    ),
    World("OrderDependent", _with(laws.ByOrder()), "a re-run mostly repeats the order of tests"),
    World(
        "NoPositions",
        replace(_with(laws.ByOrder()), has_positions=False),
        *("OrderDependent; nobody tells where commits are on main", 0.95, 0.85),
    ),
    World(
        "SlowBurn",
        _with(Flaky(share=0.04, low=0.002, high=0.012, changing=0.0)),
        *("flaky tests fail in 2 to 12 of 1,000 runs", 0.9, 0.75),
    ),
    World(
        "SmallTeam",
        replace(BASE, laws=SMALL_LAWS, tests=150, jobs=1, pushes=8, main=3, people=4),
        *("150 tests, 8 pushes a day", 0.93, 0.9),
    ),
    World("TinyTeam", TINY, "100 tests, 3 pushes a day", 0.9, 0.85),
    World(
        "Renames", replace(BASE, renamed=0.5), "half of the flaky tests get another name", 0.95, 0.9
    ),
    World(
        "SharedService",
        _and(laws.BadService()),
        *("a service that 10 % of the tests use is away now and then", 0.95, 0.93),
    ),
    World(
        "PrOnlyNoRerun",
        replace(BASE, rerun="nobody", tests_main=False),
        *("CI tests pull requests alone, and nobody runs it again", 0.93, 0.4),
    ),
    World(
        "FragileNoRerun",
        replace(BASE, rerun="nobody", tests_main=False, laws=(*USUAL, laws.Fragile())),
        *("the same, and many pull requests break the same sound tests", 0.85, 0.4),
    ),
    World("InfraOutages", _and(laws.Outages()), "outages fail 3 to 60 % of the tests", 0.95, 0.93),
    World("TimeOfDay", _with(laws.AtHours()), "flaky tests fail between 22 and 24 o'clock"),
    World("PrOnly", replace(BASE, tests_main=False), "CI tests pull requests alone"),
    World(
        "MatrixOs",
        replace(_with(Flaky(in_one_job=True)), is_matrix=True),
        "two systems run all tests; a test is flaky on one of them",
    ),
    World("RerunFailedOnly", replace(BASE, rerun="failed tests"), "only failed tests run again"),
    World("RetryInside", replace(BASE, rerun="inside"), "a failed test is tried again at once"),
    World("MergeQueue", replace(BASE, by_queue=True, tests_main=False), "a merge queue, no main"),
    World("QueueAndMain", replace(BASE, by_queue=True), "main tests what the queue has tested"),
    World(
        "BrokenMainDay",
        _and(laws.BrokenMain(every_days=3, hours=(12, 36), most=40)),
        "main is red for a day, again and again",
    ),
    World("HalfFixed", _with(laws.HalfFixed()), "a fix makes a test fail ten times as rarely", 0.9),
    World(
        "MainOnly",
        replace(BASE, pushes=0.5, rerun="nobody", main=20),
        "no pull requests",
        0.95,
        0.75,
    ),
    World(
        "Nightly",
        replace(BASE, nightly=True, jobs=2, rerun="nobody"),
        *("half of the tests run once a night alone, nobody runs them again", 0.9, 0.6),
    ),
    World(
        "Monorepo",
        replace(
            BASE, tests=5000, jobs=4, laws=(Flaky(share=0.004, low=0.005), laws.Clusters(2), *SOUND)
        ),
        "5,000 tests, few of them flaky",
    ),
)
BY_NAME = {world.name: world for world in WORLDS}
GATES: dict[str, tuple[float, float, float]] = {
    "Base": (0.95, 0.9, 1.2),
    "CommitChange": (0.45, 0.7, 1.2),
    "Sharded": (0.93, 0.85, 1.4),
    "BadMachine": (0.93, 0.85, 1.3),
    "BadMachineNamed": (0.92, 0.85, 1.36),
    "SlowMachine": (0.9, 0.85, 1.6),
    "OrderDependent": (0.95, 0.85, 1.4),
    "NoPositions": (0.91, 0.85, 1.5),
    "SlowBurn": (0.9, 0.1, 1.6),
    "SmallTeam": (0.93, 0.8, 1.5),
    "TinyTeam": (0.88, 0.42, 1.4),
    "Renames": (0.93, 0.85, 1.4),
    "SharedService": (0.9, 0.85, 1.5),
    "PrOnlyNoRerun": (0.9, 0.4, 1.4),
    "FragileNoRerun": (0.85, 0.4, 1.4),
    "InfraOutages": (0.93, 0.85, 1.5),
    "TimeOfDay": (0.85, 0.5, 1.6),
    "PrOnly": (0.95, 0.85, 1.6),
    "MatrixOs": (0.93, 0.9, 1.4),
    "RerunFailedOnly": (0.94, 0.85, 1.4),
    "RetryInside": (0.95, 0.85, 1.49),
    "MergeQueue": (0.95, 0.75, 1.4),
    "QueueAndMain": (0.94, 0.85, 1.5),
    "BrokenMainDay": (0.93, 0.85, 1.5),
    "HalfFixed": (0.9, 0.89, 2.5),
    "MainOnly": (0.93, 0.45, 1.5),
    "Nightly": (0.9, 0.6, 1.8),
    "Monorepo": (0.95, 0.9, 1.4),
}
"""By name: precision and recall at least, flags at most."""
