"""Answer about a queue's statistics."""

from typing import Annotated

from pydantic import Field

from service.http.models.answers.common import Answer, Count, Time
from service.mergequeue.engine.reasons import Reason

Seconds = Annotated[float, Field(ge=0)]


class TimeParts(Answer):
    """Mean seconds of what merged, by part of the way from the submission to the merge."""

    to_enter: Seconds
    """From the submission until it was ready."""
    for_a_slot: Seconds
    """From then until its first test run."""
    testing: Seconds
    """The last test run."""
    for_others_ahead: Seconds
    """From the end of its tests to the landing."""
    again: Seconds
    """Test runs before the last one."""
    paused: Seconds
    """While the queue was paused and no test of it ran."""


class Numbers(Answer):
    """What ended in a time. Times are those of what merged, null if nothing did.

    `runSeconds` adds up the time of the test runs that finished.
    """

    merged: Count
    """How many pull requests landed."""
    failed: Count
    """How many pull requests failed."""
    removed: Count
    """How many pull requests were taken out."""
    runs: Count
    """How many test runs finished."""
    run_seconds: Seconds
    """Seconds that these test runs took together."""
    time_to_merge_p50_seconds: Seconds | None
    """Half of the landed ones took at most so many seconds; null without any."""
    time_to_merge_p95_seconds: Seconds | None
    """95 % of the landed ones took at most so many seconds; null without any."""
    parts_seconds: TimeParts | None
    """Mean seconds of the parts of the way; null without any."""


class BucketShown(Numbers):
    """A UTC day, or an hour of the last 24; how full the queue was at its end."""

    start: Time
    """When the day or hour begins."""
    depth: Count
    """How many pull requests were in the queue at its end."""
    runs_in_progress: Count
    """How many test runs were in progress at its end."""


class Ejected(Answer):
    """How many pull requests failed or were removed for a reason."""

    reason: Reason
    """Why."""
    count: Count
    """How many."""


Rate = Annotated[float, Field(ge=0, le=1)]


class MeasuredRates(Answer):
    """Rates that the queue plans with, measured over its newest test runs and submissions."""

    flake: Rate
    """The share of test runs that fail although every change in them is good. For example 0.02."""
    conflict: Rate
    """The share of submissions that fail only together with others. For example 0.03."""
    foreseen: Rate
    """The share of the expected failures that is on pull requests with a chance of failing of more
    than 20 %. For example 0.4. Below 0.3 adaptive batches test pull requests alone beside the line.
    """
    minutes: dict[str, Annotated[float, Field(ge=0)]]
    """How many minutes each required status usually takes, by name. For example
    `{"unit": 12.5}`
    """


class QueueStatistics(Numbers):
    """The statistics of a queue, with buckets from the oldest to the newest."""

    since: Time
    """The beginning of the time that is looked at."""
    until: Time
    """Its end."""
    concurrency: Count
    """Test runs that the queue may have at the same time."""
    success_rate: Annotated[float, Field(ge=0, le=1)] | None
    """The share of the ended ones that landed; null without any."""
    runs_per_merge: Seconds | None
    """Test runs for each landed pull request; null without any."""
    measured_rates: MeasuredRates
    """What the queue knows of its tests."""
    ejections: list[Ejected]
    """Why pull requests did not land, most frequent first."""
    buckets: list[BucketShown]
    """Days, or hours of a single day, oldest first."""
