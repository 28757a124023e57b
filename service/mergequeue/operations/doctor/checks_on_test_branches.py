"""Required checks that never reported on a test branch."""

import shlex
from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider.audits import Finding, error, note

ID = "checks-on-test-branches"
FINE = "Every required check has reported on a recent test branch."


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error for each such check, a note before the first test branch."""
    if not facts.on_tests.commits:
        words = ("headgate", "doctor", facts.repo.slug, "--branch", facts.branch, "--dry-test")
        dry_test = f"`{shlex.join(words)}`"
        yield note(
            ID,
            "No test branch of this queue has been tested yet.",
            f"Run {dry_test} to see which required checks report on one.",
        )
        return
    for check in facts.required:
        if facts.on_tests.lacks(check):
            yield error(
                ID,
                f"The required check `{check.name}` has not reported on the last "
                f"{facts.on_tests.commits} test branches. Reported there: "
                f"{facts.on_tests.names()}.",
                f"Let the CI that reports `{check.name}` also start on {facts.trigger}. If no CI "
                "reports that name, correct it in the required checks.",
            )
