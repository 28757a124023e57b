"""Failed tests that CI jobs report while they run, as values (docs/design/live-tests.md)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.provenance import Proof

FAILURES_MAX = 20
"""Early failures of one attempt of a job (docs/design/limits.md 5)."""

NAME_MAX = 1000
"""Characters of each name of a test."""


class EarlyStanding(StrEnum):
    """Effects of a failed test that was reported early; COUNTS alone moves a test run.

    NOT_FINAL: the runner may try the test again. NO_TEST_RUN: the commit is not that of a test run
    of a queue. OVER: the test run, or this attempt of the job, has ended. UNPROVED: the report does
    not come from the job itself. QUARANTINED, KNOWN_FLAKY, RED_ON_TARGET: the failure is excused,
    or known, or the target branch has it too. PASSED: the test passed when it was tried again.
    """

    COUNTS = "counts"
    NOT_FINAL = "not_final"
    NO_TEST_RUN = "no_test_run"
    OVER = "over"
    UNPROVED = "unproved"
    QUARANTINED = "quarantined"
    KNOWN_FLAKY = "known_flaky"
    RED_ON_TARGET = "red_on_target"
    PASSED = "passed"


@dataclass(frozen=True, slots=True)
class CaseNames:
    """A test as a runner names it; texts are empty when unknown."""

    name: str
    classname: str = ""
    parent: str = ""
    file: str = ""

    @property
    def shown(self) -> str:
        """Return the name as people search for it."""
        place = self.file or self.classname or self.parent
        return f"{place}::{self.name}" if place else self.name


@dataclass(frozen=True, slots=True)
class EarlyFailure:
    """A failed test of one attempt of a CI job, reported while the job runs.

    `check_run` is the job's own as its token proves it, empty without such a token. `proof` is what
    shows that the report comes from there. `taken_back_at` None: nothing has contradicted it.
    """

    key: str
    sha: str
    run_id: str
    run_attempt: int
    check_run: str
    job: str
    name: str
    classname: str
    parent: str
    file: str
    proof: Proof
    standing: EarlyStanding
    heard_at: datetime
    taken_back_at: datetime | None = None

    @property
    def test(self) -> CaseNames:
        """Return the names of the test."""
        return CaseNames(self.name, self.classname, self.parent, self.file)


def is_namesake(one: CaseNames, other: CaseNames) -> bool:
    """Return whether two names may mean the same test: equal names, and no place that differs.

    Files are compared where both are known, else classes. A runner that starts in a folder names
    files from there.
    """
    if one.name != other.name:
        return False
    if one.file and other.file:
        return _ends_alike(one.file, other.file)
    if one.classname and other.classname:
        return one.classname == other.classname
    return True


def _ends_alike(one: str, other: str) -> bool:
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
