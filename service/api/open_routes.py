"""The endpoints that need no token, one line each (API.md 10)."""

from service.api import health
from service.api.route import VERSIONED, Open, Route

OPEN_ROUTES: tuple[Route, ...] = (
    Open(f"{VERSIONED}/status", health.status),
    Open("/healthz", health.healthz),
    Open("/readyz", health.readyz),
)
