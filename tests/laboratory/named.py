"""Cells that are not right, each with what is read and why it stays so."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.laboratory.judge import Condition


class Named(NamedTuple):
    """What the judge says of a cell, and the reason: a sentence for the page."""

    said: str
    because: str


NO_ATTEMPTS = (
    "the report shows the last attempt alone. The test counts as passed, and is not seen as flaky"
)
NO_PROJECTS = (
    "the report does not say which project a test ran in. Both are one test, which fails if it"
    " fails in either. Upload each project by a job with its own `--variant`"
)


def _passed(name: str) -> Named:
    return Named(f"`{name}` is read as passed", NO_ATTEMPTS)


NAMED: Mapping[str, Mapping[Condition, Named]] = {
    "pytest-retry": {Condition.FLAKE: _passed("test_fails_once_then_passes")},
    "lit": {Condition.FLAKE: _passed("fails_once_then_passes.test")},
    "jest-junit": {Condition.PROJECTS: Named("7 tests instead of 14", NO_PROJECTS)},
    "jest-junit-retried": {
        Condition.FLAKE: _passed(" fails once then passes"),
        Condition.PROJECTS: Named("8 tests instead of 16", NO_PROJECTS),
    },
    "jest-ctrf": {Condition.PROJECTS: Named("8 tests instead of 16", NO_PROJECTS)},
    "vitest": {Condition.PROJECTS: Named("7 tests instead of 14", NO_PROJECTS)},
    "vitest-retried": {
        Condition.FLAKE: _passed("fails once then passes"),
        Condition.PROJECTS: Named("8 tests instead of 16", NO_PROJECTS),
    },
    "mocha-junit-reporter": {
        Condition.SKIP: Named(
            "no such test is in the report", "skipped tests are left out of the report"
        ),
        Condition.FLAKE: _passed("fails once then passes"),
    },
    "playwright": {Condition.FLAKE: _passed("cart \u203a fails once then passes")},
    "cucumber-js": {Condition.FLAKE: _passed("it fails once then passes")},
    "catch2": {
        Condition.SKIP: Named("no such test is in the report", "Catch2 2 cannot skip a test")
    },
    "phpunit": {
        Condition.DIRECTORY: Named(
            "6 tests have other ids: testErrorsAlways, testFailsAlways",
            "PHPUnit names the outermost suite by the absolute path of a folder on its command"
            " line. Name the suites in `phpunit.xml` instead",
        )
    },
}
