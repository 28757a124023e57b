"""Handler of the endpoint about a queue's statistics."""

from service.http.callers import Call
from service.http.route import Route, read
from service.mergequeue.api import pull_requests
from service.mergequeue.api.models import statistics as models
from service.mergequeue.api.models.answers import statistics as answers
from service.mergequeue.operations import statistics
from service.mergequeue.operations.statistics import Bucket, Statistics

DAYS = 7
"""Days of statistics unless a request says otherwise."""


@read(
    "getMergeQueueStatistics",
    models.GetMergeQueueStatistics,
    answers.QueueStatistics,
    "queue_not_found",
)
async def get(call: Call, request: models.GetMergeQueueStatistics) -> answers.QueueStatistics:
    """Return the statistics of a queue."""
    queue = await pull_requests.queue_of(call, request)
    found = await statistics.load_statistics(call.runtime, queue, request.days or DAYS)
    buckets = [answers.BucketShown.of(each, **_seconds(each)) for each in found.buckets]
    ejections = [
        answers.Ejected(reason=reason, count=count) for reason, count in found.ejections.items()
    ]
    shown = _seconds(found)
    rates = answers.MeasuredRates.of(found.rates)
    return answers.QueueStatistics.of(
        found, measured_rates=rates, ejections=ejections, buckets=buckets, **shown
    )


def _seconds(of: Bucket | Statistics) -> dict[str, object]:
    return {
        "run_seconds": of.run_s,
        "time_to_merge_p50_seconds": of.time_to_merge_p50_s,
        "time_to_merge_p95_seconds": of.time_to_merge_p95_s,
        "parts_seconds": {part.value: mean for part, mean in of.parts_s.items()} or None,
    }


STATISTICS_ROUTES: tuple[Route, ...] = (get,)
