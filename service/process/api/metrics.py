"""The handler of the metrics page (API.md 7)."""

from service.accounts import access
from service.http.callers import Call
from service.http.rates import RateClass
from service.http.route import VERSIONED, Fetched, Page, Route
from service.process import figures
from service.process.api.models import AskMetrics
from service.vocabulary import Role


async def queues(call: Call, asked: AskMetrics) -> Page:
    """`GET /getMergeQueueMetrics`: text for Prometheus, whatever `Accept` says."""
    ref = asked.ref()
    repository = (
        None if ref is None else await access.find_repository(call.runtime, call.caller, ref)
    )
    body = await figures.page(call.runtime, call.caller, repository)
    return Page(figures.CONTENT_TYPE, body)


METRIC_ROUTES: tuple[Route, ...] = (
    Fetched(
        f"{VERSIONED}/getMergeQueueMetrics",
        Role.READ,
        queues,
        rate=RateClass.METRICS,
        query=AskMetrics,
    ).answering(figures.CONTENT_TYPE),
)
