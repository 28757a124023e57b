"""The endpoints that need no token, one line each (API.md 10)."""

from service.http import health
from service.http.models.answers import status as answers
from service.http.route import VERSIONED, Open, Route

OPEN_ROUTES: tuple[Route, ...] = (
    Open(f"{VERSIONED}/status", health.status, answers.ServiceStatus),
    Open("/healthz", health.healthz, answers.Alive),
    Open("/readyz", health.readyz, answers.Ready, (200, 503)),
)
