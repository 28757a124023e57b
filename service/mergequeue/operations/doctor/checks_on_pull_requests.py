"""Required checks that never reported on a pull request's own head."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider.audits import Finding, error
from service.vocabulary import RequiredSource

ID = "checks-on-pull-requests"
FINE = "No required check is missing on all of the open pull requests."


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error for each check that the provider wants there and nothing reports."""
    source = facts.resolved.required.source
    if not facts.on_pulls.commits or source is not RequiredSource.BRANCH_PROTECTION:
        return
    for check in facts.required:
        if facts.on_pulls.lacks(check):
            yield error(
                ID,
                f"The required check `{check.name}` has not reported on the heads of the last "
                f"{facts.on_pulls.commits} open pull requests, and a pull request only merges with "
                f"it. Reported there: {facts.on_pulls.names()}.",
                f"Let the CI that reports `{check.name}` also start on pull requests. If no CI "
                "reports that name, correct it in the required checks.",
            )
