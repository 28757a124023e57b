"""Answer about a queue's statistics."""

from typing import Annotated

from pydantic import Field

from service.http.models.answers.common import Answer, Count, Time
from service.mergequeue.engine.reasons import Reason

Seconds = Annotated[float, Field(ge=0)]


class TimeParts(Answer):
    """Mean seconds of what merged, by part of the way from the submission to the merge.

    `paused` is the time in which the queue was paused and no test of the pull request ran.
    """

    to_enter: Seconds
    for_a_slot: Seconds
    testing: Seconds
    for_others_ahead: Seconds
    again: Seconds
    paused: Seconds


class Numbers(Answer):
    """What ended in a time. Times are those of what merged, null if nothing did.

    `runSeconds` adds up the time of the test runs that finished.
    """

    merged: Count
    failed: Count
    removed: Count
    runs: Count
    run_seconds: Seconds
    time_to_merge_p50_seconds: Seconds | None
    time_to_merge_p95_seconds: Seconds | None
    parts_seconds: TimeParts | None


class BucketShown(Numbers):
    """A UTC day, or an hour of the last 24; how full the queue was at its end."""

    start: Time
    depth: Count
    runs_in_progress: Count


class Ejected(Answer):
    """How many pull requests failed or were removed for a reason."""

    reason: Reason
    count: Count


class QueueStatistics(Numbers):
    """The statistics of a queue, with buckets from the oldest to the newest."""

    since: Time
    until: Time
    concurrency: Count
    success_rate: Annotated[float, Field(ge=0, le=1)] | None
    runs_per_merge: Seconds | None
    ejections: list[Ejected]
    buckets: list[BucketShown]
