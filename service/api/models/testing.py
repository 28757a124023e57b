"""Bodies of the test run endpoints (SPECIFICATION.md 4.3)."""

from typing import Annotated

from pydantic import Field

from service.api.models.common import Named


class GetMergeQueueTestingDetails(Named):
    """`/getMergeQueueTestingDetails`; any string may be asked for, an unknown one is 404."""

    test_run_id: Annotated[str, Field(min_length=1, max_length=100)]
