"""What is true of each required check of a pull request, and what its own CI job says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.provenance import Proof
from service.testhealth.detector.completeness import (
    Account,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)
from service.testhealth.detector.excuses import FailedTest

NEEDS = Proof.JOB
"""The default of `excuseProof`."""

TESTS = 20
"""Tests of each job on the target branch."""


class Truth(StrEnum):
    """How the job of a required check truly ends on a tree."""

    PASSES = "every step passes"
    FLAKES = "tests fail that are quarantined, and nothing else"
    FAILS = "a healthy test fails"
    CRASHES = "its tests end early"
    MORE = "a step besides its tests fails too"
    SKIPPED = "a path filter leaves it out, on the head as well"
    SKIPPED_HERE = "a condition leaves it out on test branches, and it runs on heads"
    NOT_HERE = "it runs on heads and never on a test branch"
    NEVER = "no job of this name runs at all"
    ELSEWHERE = "the workflow file of the target branch lets it run in another queue alone"


WORST_FIRST = (
    *(
        Truth.NEVER,
        Truth.NOT_HERE,
        Truth.ELSEWHERE,
        Truth.SKIPPED_HERE,
        Truth.CRASHES,
        Truth.MORE,
        Truth.FAILS,
        Truth.FLAKES,
    ),
    *(Truth.PASSES, Truth.SKIPPED),
)
MAY_LAND = frozenset({Truth.PASSES, Truth.FLAKES, Truth.SKIPPED})
"""What a landing may rest on: it passed, its failures are quarantined, or CI left it out."""

SKIPS = frozenset({Truth.SKIPPED, Truth.SKIPPED_HERE, Truth.ELSEWHERE})
RED = frozenset({Truth.FLAKES, Truth.FAILS, Truth.CRASHES, Truth.MORE})
FAILED_TESTS = {Truth.FLAKES: ("flaky 1",), Truth.FAILS: ("flaky 1", "own")}
"""What fails in a job whose failures may count as passed, if all of them are quarantined."""
RAN = frozenset({Truth.PASSES, *FAILED_TESTS})


def together(truths: list[Truth]) -> Truth:
    """The truth of a tree with several changes: a job runs if one of them needs it."""
    return min(truths, key=WORST_FIRST.index)


def id_of(job: str, name: str) -> str:
    """The id of a test of a job."""
    return f"{job}::{name}"


def a_test(job: str, name: str, *, was_quarantined: bool) -> FailedTest:
    """A failed test of a job; one that is called flaky is so since long."""
    is_flaky = name.startswith("flaky")
    keys = frozenset({f"{name} fails"})
    return FailedTest(
        id=id_of(job, name),
        file=f"{job}/test_{name}.py",
        classname="",
        keys=keys,
        known_keys=keys if is_flaky or was_quarantined else frozenset(),
        was_quarantined=was_quarantined,
        was_flaky=is_flaky,
    )


@dataclass(frozen=True)
class Upload:
    """A test report as it arrived: whose job it says it is, and what proves that.

    `sender` is the id of the check run of the job that sent it, empty where that is unknown.
    """

    id: str
    key: str
    machine: str
    proof: Proof
    sender: str = ""
    failed: tuple[str, ...] = ("flaky 1",)
    missing: tuple[str, ...] = ()
    exit_code: int | None = 1

    @property
    def account(self) -> Account:
        """What it says of itself, and what proves it."""
        return Account(
            exit_code=self.exit_code, runner="pytest", proof=self.proof, check_run=self.sender
        )


def report_of(job: str, uploads: list[Upload], conclusion: str) -> JobReport:
    """The uploads of a job beside what it reported on the target branch."""
    parts = tuple(Part(one.account, len(one.failed), needs=NEEDS) for one in uploads)
    gone = frozenset.intersection(*(frozenset(one.missing) for one in uploads))
    named = tuple(MissingTest(name, f"{job}/test_{name}.py", "") for name in sorted(gone))
    expectation = Expectation(TESTS, named, has_exit_code=True)
    return JobReport(job, parts, expectation, conclusion=conclusion)


class Plot(StrEnum):
    """What a history is about beside the checks of its pull requests."""

    NONE = "nothing else"
    FILES = "files of the target branch and of heads"
    QUARANTINE = "overrides of quarantine"
    PUSHES = "pushes beside landings"


_BAD = (
    *(Truth.CRASHES, Truth.CRASHES, Truth.CRASHES, Truth.FAILS, Truth.FAILS, Truth.MORE),
    *(Truth.SKIPPED_HERE, Truth.NOT_HERE, Truth.NEVER),
)
BAD: Mapping[Plot, tuple[float, tuple[Truth, ...]]] = {
    Plot.NONE: (0.5, _BAD),
    Plot.FILES: (0.4, (Truth.SKIPPED_HERE, Truth.SKIPPED_HERE, Truth.FAILS, Truth.NEVER)),
    Plot.QUARANTINE: (0.8, (Truth.FAILS, Truth.FAILS, Truth.FLAKES, Truth.CRASHES)),
}
"""How many changes have a check that does not end well, and how it ends."""
