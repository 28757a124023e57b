"""Describe what failed in a test run, and how sure it is that the pull request is at fault.

For the API, the command line and agents; comments and pages show the same.
"""

from dataclasses import dataclass

from service.mergequeue.engine.model import Named
from service.mergequeue.wording import aftermath, bodies
from service.mergequeue.wording.failed_tests import FailedTests
from service.mergequeue.wording.situation import PullRequestText
from service.text import markdown, phrases


@dataclass(frozen=True, slots=True)
class Failures:
    """The checks and tests that failed; `text` says in sentences how the cause was found."""

    text: str
    checks: tuple[Named, ...]
    tests: FailedTests


def failures_of(view: PullRequestText) -> Failures | None:
    """Return what failed; None if no check and no test did, or if it does not matter any more."""
    failing = view.situation.failing
    checks = failing.checks if failing is not None else bodies.failed_checks(view)
    tests = view.tests if bodies.tests(view) else FailedTests()
    if not checks and not tests.failed:
        return None
    found = phrases.joined([aftermath.how_found(view), bodies.verdict(view)])
    return Failures(markdown.plain(found), checks, tests)
