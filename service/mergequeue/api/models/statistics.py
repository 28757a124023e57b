"""Body of the endpoint about a queue's statistics."""

from typing import Literal

from service.http.models.common import Named


class GetMergeQueueStatistics(Named):
    """`/getMergeQueueStatistics`: of the last days, 7 unless sent."""

    days: Literal[1, 7, 30, 90] | None = None
    """The last days to look at; 7 unless sent."""
