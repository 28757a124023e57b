"""Answers about how well tests are judged (docs/design/quality-on-history.md)."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from service.http.models.answers.common import Count, Id, LeftOut, SnakeAnswer
from service.testhealth.api.models.answers.tests import Address

Share = Annotated[float, Field(ge=0, le=1)]
"""A share with at most three decimals."""


class TestNamed(SnakeAnswer):
    """A test."""

    __test__ = False

    id: Id
    """The test."""
    html_url: Address
    """Page of the test. For example `https://queue.example.org/octo/widgets/tests/06cb6db5`."""
    name: str
    """Its name. For example `test_total`."""
    variant: str
    """The flavor of the job that runs it; empty without. For example `linux`."""
    file_path: LeftOut[str] = None
    """Its file. For example `ui/test_cart.py`."""


class DoubtfulFlag(TestNamed):
    """A past flag that no later result has confirmed."""

    flagged_at: datetime
    """When the test was flagged flaky."""
    cleared_at: datetime | None
    """When the flag ended; null: it has not."""
    runs_since: Count
    """How often the test passed since. For example `140`."""
    runs_needed: Count
    """Among so many runs a test as flaky as it looked would have disagreed again with a chance of
    95 %. With fewer nobody can tell yet. For example `230`.
    """


class MissedFailure(TestNamed):
    """A flaky failure that happened while its test was not flagged."""

    failed_at: datetime
    """When another result had contradicted the failure."""
    flagged_at: datetime | None
    """When the test was flagged next; null: not again."""


class WeekOfFlags(SnakeAnswer):
    """Seven days that end with those of the newest results; the first may be shorter."""

    first_day: date
    """Its first day, UTC."""
    flags: Count
    """How many tests were flagged flaky in it."""


class JudgedPast(SnakeAnswer):
    """What settings would have said of the stored past, held against all evidence of today."""

    flags: Count
    """How often a test was flagged flaky."""
    flags_confirmed: Count
    """After how many of these the test disagreed with itself again, on other code."""
    flags_unconfirmed: Count
    """After how many it did not, though it ran often enough: a wrong flag, or a test mended since.
    """
    flags_open: Count
    """After how many it has not run often enough to tell."""
    precision_at_least: Share | None
    """The share of flags that are confirmed, so at least so many were right; null: too few flags
    can be told, or more than a quarter of them cannot. For example `0.92`.
    """
    flags_missing: Count
    """How many more flags with a known outcome are needed for that share."""
    failures_caught: Count
    """Flaky failures that happened while their test was flagged."""
    failures_missed: Count
    """Flaky failures of the same tests at other times."""
    failures_unclear: Count
    """Failures that another result contradicted, of tests that were never flagged: rare flakes, or
    machines.
    """
    recall_at_least: Share | None
    """The share of flaky failures that flags caught, if all unclear ones were flaky; null: too few
    failures. For example `0.88`.
    """
    recall_at_most: Share | None
    """The same if none of the unclear ones was flaky. For example `0.95`."""
    failures_missing: Count
    """How many more flaky failures are needed for these shares."""
    weeks: list[WeekOfFlags]
    """Flags by week, the oldest first."""
    flaky_now: Count
    """How many tests are flaky by these settings."""
    broken_now: Count
    """How many tests are broken by these settings."""
    times_broken: Count
    """How often a test was called broken."""
    failed_results: Count
    """Failed results of tests, of all kinds."""
    failed_results_excused: Count
    """How many of them would have counted as passed by the status of their test."""
    queue_runs_failed_by_flakes: Count
    """Test runs of queues that failed by tests alone that passed on the same code."""
    queue_runs_explained: Count
    """How many of them failed by tests that were known to be flaky, or were excused."""


class DetectionQuality(SnakeAnswer):
    """How well past flags hold by all evidence of today."""

    replayed_at: datetime
    """When the past was replayed."""
    since: datetime | None
    """From when on flags and failures count; null: there is no evidence."""
    until: datetime | None
    """The time of the newest results; null: there is no evidence."""
    uploads_left_out: Count
    """Older uploads that were not replayed, because there are too many."""
    tests: Count
    """How many tests failed at least once."""
    past: JudgedPast | None
    """What the present settings would have said; null: there is no evidence."""
    doubtful_flags: list[DoubtfulFlag]
    """The newest flags that are not confirmed, at most 100, the newest first."""
    missed_failures: list[MissedFailure]
    """The newest flaky failures outside of flags, at most 100, the newest first."""


class SettingsPreviewed(SnakeAnswer):
    """What other settings would have said, beside the present ones. Nothing was changed."""

    replayed_at: datetime
    """When the past was replayed."""
    since: datetime | None
    """From when on flags and failures count; null: there is no evidence."""
    until: datetime | None
    """The time of the newest results; null: there is no evidence."""
    uploads_left_out: Count
    """Older uploads that were not replayed, because there are too many."""
    now: JudgedPast | None
    """What the present settings would have said; null: there is no evidence."""
    then: JudgedPast | None
    """What the changed ones would have said; null: there is no evidence, or they are the same."""
    newly_flagged: list[TestNamed]
    """Tests that would be flaky or broken now, and are not."""
    no_longer_flagged: list[TestNamed]
    """Tests that are flaky or broken now, and would not be."""
    not_replayed: list[str]
    """Settings of the request that move no status of the past, or cannot be replayed. For example
    `["ticket_issues"]`
    """
    notes: list[str]
    """What else is left out. For example `["name_masks cannot be replayed."]`"""
