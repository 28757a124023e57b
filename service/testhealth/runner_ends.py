"""Ends of runs of test runners, as plug-ins say them (docs/reference/live-tests.md)."""

from dataclasses import dataclass
from enum import StrEnum

ENDS_MAX = 50
"""Runs of runners in one upload."""

ERRORS_MAX = 20
"""Errors of each list of an end; how many more there are is counted."""

NAME_MAX, SHARD_MAX = 255, 20
FILE_MAX, MESSAGE_MAX = 1000, 300
TESTS_MAX = 10_000_000
EXIT_CODE_MAX = 255


class EndReason(StrEnum):
    """Reasons for the end of a run of a runner: the first that is true, in this order.

    KILLED: it began and never said how it ended. TESTS_FAILED: tests failed, and nothing else makes
    the exit code one of a failure.
    """

    KILLED = "killed"
    INTERNAL = "internal"
    USAGE = "usage"
    INTERRUPTED = "interrupted"
    UNLOADED = "unloaded"
    ERROR_OUTSIDE = "error_outside"
    THRESHOLD = "threshold"
    STOPPED_EARLY = "stopped_early"
    TESTS_FAILED = "tests_failed"
    NO_TESTS = "no_tests"
    PASSED = "passed"


@dataclass(frozen=True, slots=True)
class FileError:
    """An error that belongs to no test; `file` is empty if it belongs to no file either."""

    file: str
    message: str


@dataclass(frozen=True, slots=True)
class RunnerEnd:
    """The end of one run of a runner, in its own words.

    `run` tells runs apart. `exit_code` None: the plug-in does not know it. `planned` is how many
    tests the runner meant to run, and `not_run` how many of them it did not run. `unloaded` are
    files whose tests could not be loaded, `errors_outside` errors that belong to no test; how many
    more there are of each stands beside them. `shard` is `2/4`, or empty.
    """

    run: str
    runner: str
    reason: EndReason
    exit_code: int | None = None
    planned: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    not_run: int = 0
    unloaded: tuple[FileError, ...] = ()
    unloaded_more: int = 0
    errors_outside: tuple[FileError, ...] = ()
    errors_outside_more: int = 0
    shard: str = ""

    @property
    def is_plain(self) -> bool:
        """Return whether all tests ran, and nothing but tests can have failed."""
        has_passed = self.reason is EndReason.NO_TESTS and self.exit_code == 0
        is_usual = self.reason in (EndReason.PASSED, EndReason.TESTS_FAILED) or has_passed
        has_errors = self.unloaded or self.errors_outside
        more = self.not_run + self.unloaded_more + self.errors_outside_more
        return is_usual and not has_errors and not more
