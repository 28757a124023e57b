"""Answers about what tests take and cost (docs/design/test-costs.md)."""

from datetime import date
from typing import Annotated

from pydantic import Field

from service.http.models.answers.common import Count, Id, LeftOut, SnakeAnswer
from service.testhealth.api.models.answers.tests import Address

Seconds = Annotated[float, Field(ge=0)]
"""Seconds with at most three decimals."""


class TimesShown(SnakeAnswer):
    """What a test took in a week; every time is right within 5 %."""

    runs: Count
    """How many attempts told their time."""
    total_seconds: Seconds
    """The time of all of them together. For example `5400.0`."""
    median_seconds: Seconds
    """Half of them took at most so long. For example `2.1`."""
    p95_seconds: Seconds
    """95 of 100 took at most so long. For example `4.8`."""


class CountedDays(SnakeAnswer):
    """Days of UTC, both included."""

    first_day: date
    """The first day."""
    last_day: date
    """The last day."""


class SlowTestShown(SnakeAnswer):
    """A test, and what it took."""

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
    codeowners: list[str]
    """Owners of its file. For example `["@octo/web"]`"""
    week: TimesShown
    """What it took in the week."""
    week_before: TimesShown
    """What it took in the week before; 0 runs: nothing is known."""
    median_change: float | None
    """How much longer its median is than in the week before, as a share; null if either is
    unknown. For example `0.25`.
    """


class SlowestTestsListed(SnakeAnswer):
    """The slowest tests of a week, the slowest first."""

    week: CountedDays | None
    """The last seven days that are counted; null: no time is known yet."""
    tests_timed: Count
    """How many tests told their time in the week."""
    total_seconds: Seconds
    """The time of all tests in the week. For example `360000.0`."""
    total_seconds_before: Seconds
    """The time of all tests in the week before. For example `340000.0`."""
    tests: list[SlowTestShown]
    """The tests."""


class ShardShown(SnakeAnswer):
    """One shard."""

    index: Annotated[int, Field(ge=1)]
    """Its number, from 1."""
    expected_seconds: Seconds
    """How long its tests take one after another, by their medians. For example `212.4`."""
    files: list[str]
    """Its files, sorted. For example `["tests/test_cart.py"]`"""


class ShardsPlanned(SnakeAnswer):
    """A plan of shards."""

    week: CountedDays | None
    """The week whose medians it rests on; null: no time is known yet."""
    shards: list[ShardShown]
    """The shards."""
    worst_expected_seconds: Seconds
    """The time of the longest shard. For example `220.1`."""
    files_known: Count
    """How many of the files have a known time."""
    files_unknown: Count
    """How many have none, and count as the median of the others."""
    too_little_is_known: bool
    """Whether most files have no known time, so that the expected times say little."""
    note: str
    """What of the plan rests on too little; empty: nothing does. For example `The time of 3 of 90
    files is not known; each counts as 2.1 s, the median.`
    """


class CostShown(SnakeAnswer):
    """What flaky tests cost in a week."""

    ci_seconds: Count
    """Seconds of CI that failures of tests lost that were flaky in that week. For example `5400`.
    """
    pull_request_seconds: Count
    """Seconds that pull requests in the queue waited because of failures that turned out flaky,
    each pull request counted by itself. For example `7200`.
    """
    queue_failures: Seconds
    """How many failures in the queue turned out flaky; of those by tests of several owners each
    owner has a part. For example `3.0`.
    """


class WeekOfCosts(CostShown):
    """A week, and what flaky tests cost in it."""

    week_start: date
    """Its Monday, UTC."""
    days_counted: Annotated[int, Field(ge=0, le=7)]
    """How many of its days are counted; 0: nothing is known of it."""


class OwnerOfCosts(SnakeAnswer):
    """An owner, and what the flaky tests of theirs cost."""

    owner: str | None
    """The owner; null: tests without an owner, and failures of which no report names a test. For
    example `@octo/web`.
    """
    weeks: list[CostShown]
    """What they cost in each of the weeks, in the same order."""


class FlakeCostsShown(SnakeAnswer):
    """What flaky tests cost, week by week and by owner."""

    counted: CountedDays | None
    """The days between which costs are known; null: none are yet."""
    weeks: list[WeekOfCosts]
    """The weeks, oldest first; the last one is the present one."""
    owners: list[OwnerOfCosts]
    """Owners, those first whose tests lost most CI time. Owners of a test have equal parts, so that
    all owners add up to the weeks.
    """
    alert_minutes: Count | None
    """The setting `flake_cost_alert_minutes`; null: there is no limit."""
    alert: bool
    """Whether the present week is above it."""
