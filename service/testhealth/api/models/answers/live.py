"""Answers to jobs that run: what a failed test moves, and the tests to run first."""

from service.http.models.answers.common import Id, SnakeAnswer
from service.testhealth.early_failures import EarlyStanding
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
