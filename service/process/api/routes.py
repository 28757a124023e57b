"""Every endpoint: the groups' tables, joined."""

import difflib
from collections.abc import Mapping

from service.accounts.api.tokens import TOKEN_ROUTES
from service.http.documents import DOCUMENT_ROUTES
from service.http.health import OPEN_ROUTES
from service.http.route import Contract, Route
from service.http.well_known import WELL_KNOWN_ROUTES
from service.mergequeue.api.conflicts import CONFLICT_ROUTES
from service.mergequeue.api.doctor import DOCTOR_ROUTES
from service.mergequeue.api.events import EVENT_ROUTES
from service.mergequeue.api.landing_evidence import EVIDENCE_ROUTES
from service.mergequeue.api.models.answers.messages import QUEUE_MESSAGES
from service.mergequeue.api.provider_limits import LIMIT_ROUTES
from service.mergequeue.api.pull_requests import PULL_REQUEST_ROUTES
from service.mergequeue.api.queues import QUEUE_ROUTES
from service.mergequeue.api.schemas import SCHEMA_ROUTES
from service.mergequeue.api.shadow_report import SHADOW_REPORT_ROUTES
from service.mergequeue.api.statistics import STATISTICS_ROUTES
from service.mergequeue.api.target_health import TARGET_HEALTH_ROUTES
from service.mergequeue.api.testing import RUN_ROUTES
from service.notifications.api.models.answers.messages import WEBHOOK_MESSAGES
from service.notifications.api.webhooks import WEBHOOK_ROUTES
from service.process.api.metrics import METRIC_ROUTES
from service.testhealth.api.costs import COST_ROUTES
from service.testhealth.api.live import LIVE_ROUTES
from service.testhealth.api.machines import MACHINE_ROUTES
from service.testhealth.api.models.answers.messages import TEST_MESSAGES
from service.testhealth.api.quality import QUALITY_ROUTES
from service.testhealth.api.tests import TEST_ROUTES
from service.testhealth.api.uploads import UPLOAD_ROUTES

ROUTES: tuple[Route, ...] = (
    *PULL_REQUEST_ROUTES,
    *QUEUE_ROUTES,
    *EVENT_ROUTES,
    *EVIDENCE_ROUTES,
    *RUN_ROUTES,
    *STATISTICS_ROUTES,
    *SHADOW_REPORT_ROUTES,
    *TARGET_HEALTH_ROUTES,
    *CONFLICT_ROUTES,
    *DOCTOR_ROUTES,
    *LIMIT_ROUTES,
    *METRIC_ROUTES,
    *TEST_ROUTES,
    *COST_ROUTES,
    *MACHINE_ROUTES,
    *QUALITY_ROUTES,
    *UPLOAD_ROUTES,
    *LIVE_ROUTES,
    *TOKEN_ROUTES,
    *WEBHOOK_ROUTES,
    *OPEN_ROUTES,
    *DOCUMENT_ROUTES,
    *WELL_KNOWN_ROUTES,
    *SCHEMA_ROUTES,
)
"""The table. Its paths are case-sensitive and have no trailing slash."""

CONTRACT = Contract(ROUTES, (*QUEUE_MESSAGES, *TEST_MESSAGES, *WEBHOOK_MESSAGES))
"""What the OpenAPI document describes."""

BY_LOWER: Mapping[str, str] = {
    route.path.lower(): route.path for route in ROUTES if "{" not in route.path
}


def nearest(path: str) -> str | None:
    """The endpoint that somebody probably meant, if one is near."""
    found = difflib.get_close_matches(path.lower()[:200], BY_LOWER, n=1, cutoff=0.7)
    return BY_LOWER[found[0]] if found else None
