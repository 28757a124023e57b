"""The metrics endpoint (API.md 7)."""

from service.http.rates import RateClass
from service.http.route import VERSIONED, Fetched, Route
from service.process import figures
from service.process.api import metrics
from service.process.api.models import AskMetrics
from service.vocabulary import Role

METRIC_ROUTES: tuple[Route, ...] = (
    Fetched(
        f"{VERSIONED}/getMergeQueueMetrics",
        Role.READ,
        metrics.queues,
        rate=RateClass.METRICS,
        query=AskMetrics,
    ).answering(figures.CONTENT_TYPE),
)
