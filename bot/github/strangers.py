"""The share of GitHub's rate limit that callers without a token may use (API.md 2).

Every call that such a caller causes counts, the repeated ones too. Without a bound anybody could
use up an installation's limit, and its queues would stop.
"""

from collections import deque
from datetime import timedelta

from cachetools import LRUCache

from service.clock import Clock
from service.provider.errors import Throttled

SHARE = 0.05
"""Of what is left of an installation's limit, for all of its repositories."""

REPOSITORY_SHARE = 0.02
"""The same for one repository, so that one under attack leaves room for the others."""

WINDOW_S = 3600.0
LEFT_ASSUMED = 5000  # the smallest limit of an installation, also for a host without limits
KEYS_MAX = 10_000


class Strangers:
    """Counts calls of the last hour by installation and by repository."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: LRUCache[str, deque[float]] = LRUCache(KEYS_MAX)

    def take(self, installation: str, repo: str, left: int | None) -> None:
        """Count one call. Raises Throttled, which does not count, when a share is used up.

        `left`: what is left of the installation's limit, None when that is unknown.
        """
        rest = LEFT_ASSUMED if left is None else left
        now_s = self._clock.monotonic_s()
        shares = ((installation, SHARE), (f"{installation} {repo.lower()}", REPOSITORY_SHARE))
        counted = [(self._of(key, now_s), int(rest * share)) for key, share in shares]
        waits = [_wait_s(calls, most, now_s) for calls, most in counted if len(calls) >= most]
        if waits:
            raise Throttled(
                "Callers without a token have used their share of GitHub's rate limit",
                self._clock.now() + timedelta(seconds=max(waits)),
            )
        for calls, _ in counted:
            calls.append(now_s)

    def _of(self, key: str, now_s: float) -> deque[float]:
        calls = self._calls.setdefault(key, deque())
        while calls and calls[0] <= now_s - WINDOW_S:
            calls.popleft()
        return calls


def _wait_s(calls: deque[float], most: int, now_s: float) -> float:
    """Seconds until a call is free again; an hour where nothing is left to share."""
    return calls[-most] + WINDOW_S - now_s if most else WINDOW_S
