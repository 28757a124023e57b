"""Answers to jobs that run: what a failed test moves, and the tests to run first."""

from service.http.models.answers.common import Id, SnakeAnswer
from service.testhealth.early_failures import EarlyStanding
from service.testhealth.repeats import PlanStanding, RepeatedBecause
from service.testhealth.suspects import SuspectedBecause


class EarlyFailureHeard(SnakeAnswer):
    """What the failure moves."""

    counts: bool
    """Whether a test run is judged by it."""
    standing: EarlyStanding
    """What it moves, or why it moves nothing."""
    message: str
    """The same as a sentence. For example `The test is quarantined, so only the report decides.`"""


class SuspectedTestShown(SnakeAnswer):
    """A test to run first; fields that are unknown are empty."""

    test_id: Id
    """The test."""
    name: str
    """Its name. For example `test_total`."""
    classname: str
    """Its class; empty if unknown. For example `TestCart`."""
    parent: str
    """Its suite; empty if unknown. For example `ui`."""
    file_path: str
    """Its file; empty if unknown. For example `ui/test_cart.py`."""
    because: SuspectedBecause
    """Why it is suspected."""


class SuspectedTestsListed(SnakeAnswer):
    """The tests to run first, the most suspected first."""

    tests: list[SuspectedTestShown]
    """The tests."""


class PlannedTestShown(SnakeAnswer):
    """A test to run again; fields that are unknown are empty."""

    test_id: Id
    """The test."""
    name: str
    """Its name. For example `test_total`."""
    classname: str
    """Its class; empty if unknown. For example `TestCart`."""
    parent: str
    """Its suite; empty if unknown. For example `ui`."""
    file_path: str
    """Its file; empty if unknown. For example `ui/test_cart.py`."""
    because: RepeatedBecause
    """Why it is run again."""
    times: int
    """How often, in all processes together."""


class RepeatsPlanned(SnakeAnswer):
    """The tests that a job runs again, the most telling first."""

    standing: PlanStanding
    """Whether any are, or why not."""
    message: str
    """The same as a sentence. For example `The minutes of this day are spent.`"""
    plan_id: Id | None
    """The plan; null without one."""
    seconds: float
    """Within how many seconds."""
    tests: list[PlannedTestShown]
    """The tests."""


class RepeatsHeard(SnakeAnswer):
    """What of a report counts."""

    tests: int
    """Tests of the plan."""
    runs: int
    """Runs of them."""
    disagreeing: list[Id]
    """Tests that failed and passed."""
