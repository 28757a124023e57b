"""The metrics endpoint (API.md 7)."""

from service.api import metrics
from service.api.models.metrics import AskMetrics
from service.api.rates import RateClass
from service.api.route import VERSIONED, Fetched, Route
from service.operations import figures
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
