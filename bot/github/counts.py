"""Counts of the calls that one installation made, and of the pull requests they landed."""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum

from cachetools import LRUCache

from service.clock import Clock
from service.telemetry import Meter

MINUTE_S, HOUR_S = 60.0, 3600.0
REPOSITORIES_MAX = 10_000


class CallKind(StrEnum):
    """The kind of a call by GitHub's limits (docs/design/limits.md 8)."""

    READ = "read"
    FREE_READ = "free_read"
    QUERY = "query"
    WRITE = "write"
    CONTENT = "content"
    PUSH = "push"


class Counts:
    """The number of calls of each kind an installation made, and of pull requests it landed."""

    def __init__(self, clock: Clock, telemetry: Meter) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self._calls: dict[CallKind, deque[float]] = {kind: deque() for kind in CallKind}
        self._landed: deque[float] = deque()
        self._pushes: LRUCache[str, deque[float]] = LRUCache(REPOSITORIES_MAX)

    def add(self, kind: CallKind) -> None:
        """Count one call."""
        self._within(self._calls[kind], HOUR_S)
        self._calls[kind].append(self._clock.monotonic_s())
        self._telemetry.count("headgate_provider_calls_total", kind.value)

    def add_push(self, repo: str) -> None:
        """Count one push by git."""
        self.add(CallKind.PUSH)
        self._pushes.setdefault(repo, deque()).append(self._clock.monotonic_s())

    def add_landed(self, pull_requests: int) -> None:
        """Count landed pull requests."""
        for _ in range(pull_requests):
            self._landed.append(self._clock.monotonic_s())
            self._telemetry.count("headgate_provider_landed_total")

    def of_hour(self) -> Mapping[str, int]:
        """Return the calls of the last hour by kind."""
        return {kind.value: self._within(calls, HOUR_S) for kind, calls in self._calls.items()}

    def landed_of_hour(self) -> int:
        """Return the pull requests landed in the last hour."""
        return self._within(self._landed, HOUR_S)

    def pushes(self, repo: str) -> int:
        """Return the pushes to a repository in the last minute."""
        return self._within(self._pushes.get(repo, deque()), MINUTE_S)

    def _within(self, times: deque[float], span_s: float) -> int:
        since_s = self._clock.monotonic_s() - span_s
        while times and times[0] <= since_s:
            times.popleft()
        return len(times)
