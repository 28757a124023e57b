"""Bodies of the test run endpoints."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from service.http.models import common
from service.http.models.common import Named

RUN_ID_LENGTH_MAX = 100


class GetMergeQueueTestingDetails(Named):
    """`/getMergeQueueTestingDetails`; any string may be asked for, an unknown one is 404."""

    ignores_unknown = True

    test_run_id: Annotated[
        str,
        Field(min_length=1, max_length=RUN_ID_LENGTH_MAX),
        WithJsonSchema(
            {
                "type": "string",
                "minLength": 1,
                "maxLength": RUN_ID_LENGTH_MAX,
                "pattern": common.ANYTHING,
            }
        ),
    ]
    """The test run: `testRunId` of a pull request. For example
    `6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10`.
    """
