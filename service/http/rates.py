"""Rate limits: by token and class of endpoint, and by address for unknown tokens.

Counted in this process alone; the buckets are those of `service/memory.py`.

See docs/design/limits.md 3.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from aiohttp import web

from service.clock import Clock
from service.http.addresses import address_of
from service.http.errors import HttpRefused
from service.limits import Buckets, EventLimit, Rate
from service.runtime import Options

LIMITS = web.RequestKey("limits", Mapping[str, str])
"""Key of a request for the headers of `Turnstile.limits_of`."""


class RateClass(StrEnum):
    """The rate limit that a request counts against."""

    READ = "reads"
    WRITE = "writes"
    UPLOAD = "uploads"
    METRICS = "metrics"


class Turnstile:
    """Applies the rate limits of the settings."""

    def __init__(self, options: Options, clock: Clock) -> None:
        rates = options.rates
        self._clock = clock
        self._proxies = options.trusted_proxies
        self._buckets = {
            RateClass.READ: Buckets(rates.read),
            RateClass.WRITE: Buckets(rates.write),
            RateClass.UPLOAD: Buckets(rates.upload),
            RateClass.METRICS: Buckets(rates.metrics),
        }
        self._strangers = Buckets(rates.auth_failure)

    def take(self, token_id: str, kind: RateClass) -> None:
        """Count one request of a token. Raises HttpRefused 429, which does not count."""
        buckets = self._buckets[kind]
        wait_s = buckets.take(token_id, self._clock.monotonic_s())
        if wait_s and buckets.rate is not None:
            raise too_many(_rule("A token", buckets.rate, kind.value), wait_s)

    def limits_of(self, token_id: str, kind: RateClass) -> Mapping[str, str]:
        """Return the headers that tell a token its limit and what is left of it.

        They are those of draft-ietf-httpapi-ratelimit-headers; none without a limit.
        """
        buckets = self._buckets[kind]
        if buckets.rate is None:
            return {}
        left, full_s = buckets.left(token_id, self._clock.monotonic_s())
        window_s = math.ceil(buckets.rate.burst / buckets.rate.per_second)
        return {
            "RateLimit-Policy": f'"{kind.value}";q={buckets.rate.burst};w={window_s}',
            "RateLimit": f'"{kind.value}";r={left};t={math.ceil(full_s)}',
        }

    def check_stranger(self, request: web.BaseRequest) -> None:
        """Raise HttpRefused 429 for an address from which too many tokens were refused.

        Call it before a token is looked up, so that guessing costs no database read.
        """
        address = address_of(request, self._proxies)
        wait_s = self._strangers.wait_s(address, self._clock.monotonic_s())
        if wait_s and self._strangers.rate is not None:
            rule = _rule("An address", self._strangers.rate, "unknown tokens")
            raise too_many(rule, wait_s)

    def count_stranger(self, request: web.BaseRequest) -> None:
        """Count a refused token whose checksum is right."""
        self._strangers.take(address_of(request, self._proxies), self._clock.monotonic_s())


def _rule(who: str, rate: Rate, what: str) -> str:
    return f"{who} may send {rate.per_second:g} {what} a second, {rate.burst} at once"


def count_visit(visits: EventLimit, address: str, now: datetime) -> None:
    """Count one request without a token. Raises HttpRefused 429 for one too many.

    See docs/design/security.md 1.
    """
    allowed_at = visits.count(address, now)
    if allowed_at is not None:
        rule = f"{visits.most} requests a minute may come without a token"
        raise too_many(rule, (allowed_at - now).total_seconds())


def too_many(rule: str, wait_s: float) -> HttpRefused:
    """The 429 that states the rule and when to come back, in whole seconds, at least 1."""
    seconds = max(1, math.ceil(wait_s))
    refused = HttpRefused(
        "rate_limited",
        f"{rule}; this one came too early. Send it again in {seconds} s.",
        retry_after=seconds,
    )
    refused.headers = {"Retry-After": str(seconds)}
    return refused
