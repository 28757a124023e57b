"""Time of tests of operations."""

from datetime import UTC, datetime, timedelta


class WaitingClock:
    """Time that stands still until somebody waits; `waits` are the spans in seconds."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._passed_s = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 14, tzinfo=UTC) + timedelta(seconds=self._passed_s)

    def monotonic_s(self) -> float:
        return self._passed_s

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._passed_s += seconds
