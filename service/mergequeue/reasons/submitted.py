"""Reasons of a submission; the same codes take a pull request out again on request."""

from service.mergequeue.reasons.record import ASK, DROP, WAIT, Ender, Ending, Record, StepKind


def _requested(code: str, label: str, then: StepKind) -> Record:
    """Return the record; `then` follows when it takes the pull request out."""
    return Record(
        code,
        next=then,
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
    _requested("user_requested", "removed by a person", ASK),
    _requested("admin_requested", "removed by a maintainer", ASK),
    _requested("api_requested", "removed over the API", DROP),
    Record("rule_requested", next=WAIT, retryable=True, submitted="queued by {submitter}"),
)
