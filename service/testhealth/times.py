"""Times that tests took."""

from typing import NamedTuple


class Times(NamedTuple):
    """The times of a test: how often its time was told, the sum, the median, and 95 in 100."""

    runs: int = 0
    total_ms: int = 0
    median_ms: int = 0
    p95_ms: int = 0
