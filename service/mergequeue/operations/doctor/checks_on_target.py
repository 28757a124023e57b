"""Required checks without a report on the target's newest commit."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider.audits import Finding, note
from service.vocabulary import CheckOutcome

ID = "checks-on-target"
FINE = "No required check fails on the newest commit of the branch."


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a note for each check that is missing or fails there; the queue does not need it."""
    for check in facts.required:
        if facts.on_target.lacks(check):
            yield note(
                ID,
                f"`{check.name}` has no report on the newest commit of `{facts.branch}`. The queue "
                "does not need one.",
            )
    failed = {one.name for one in facts.on_target.checks if one.outcome is CheckOutcome.FAILED}
    for check in facts.required:
        if check.name in failed:
            yield note(
                ID,
                f"`{check.name}` fails on the newest commit of `{facts.branch}`, so it will fail "
                "for every pull request.",
                f"Fix `{facts.branch}` first.",
            )
