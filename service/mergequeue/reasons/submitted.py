"""Reasons of a submission; the same codes take a pull request out again on request."""

from service.mergequeue.reasons.record import Ender, Ending, Record


def _requested(code: str, label: str) -> Record:
    return Record(
        code,
        retryable=True,
        submitted="queued[ by {requester}]",
        cancelled=Ending(
            clause="by {by|somebody}[: {words}]",
            label=label,
            next="Comment {merge} to queue it again.",
            by=Ender.COMMAND,
        ),
    )


RECORDS = (
    _requested("user_requested", "removed by a person"),
    _requested("admin_requested", "removed by a maintainer"),
    _requested("api_requested", "removed over the API"),
    Record("rule_requested", retryable=True, submitted="queued by {submitter}"),
)
