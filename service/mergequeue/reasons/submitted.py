"""Reasons of a submission; the same codes take a pull request out again on request."""

from service.mergequeue.reasons.record import Ender, Ending, Record

_QUEUED = "queued[ by {requester}]"
_BY_REQUEST = "by {by|somebody}[: {words}]"
_AGAIN = "Comment {merge} to queue it again."

RECORDS = (
    Record(
        code="user_requested",
        retryable=True,
        submitted=_QUEUED,
        cancelled=Ending(
            clause=_BY_REQUEST, label="removed by a person", next=_AGAIN, by=Ender.COMMAND
        ),
    ),
    Record(
        code="admin_requested",
        retryable=True,
        submitted=_QUEUED,
        cancelled=Ending(
            clause=_BY_REQUEST, label="removed by a maintainer", next=_AGAIN, by=Ender.COMMAND
        ),
    ),
    Record(
        code="api_requested",
        retryable=True,
        submitted=_QUEUED,
        cancelled=Ending(
            clause=_BY_REQUEST, label="removed over the API", next=_AGAIN, by=Ender.COMMAND
        ),
    ),
)
