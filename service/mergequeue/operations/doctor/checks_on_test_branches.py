"""Required checks that never reported on a test branch."""

import shlex
from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider import audits
from service.provider.audits import Finding, error, note

ID = "checks-on-test-branches"
FINE = "Every required check has run on a recent test branch, or on one that landed lately."


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
        elif facts.on_tests.skips(check):
            yield from _skipped(facts, check.name)


def _skipped(facts: QueueFacts, name: str) -> Iterator[Finding]:
    """Yield a finding for a check of which the newest test branches have skips alone."""
    found = f"The required check `{name}` was skipped on the last {facts.on_tests.commits} test "
    found += "branches."
    history = None if facts.queue is None else facts.queue.check_history
    if name in facts.config.optional_statuses:
        yield note(ID, f"{found} `optionalStatuses` names it, so pull requests land without it.")
    elif history is None or name not in history.ran_lately(facts.now):
        setting = "optionalStatuses"
        optional = audits.how_to_set(
            facts.repo, facts.branch, setting, name, facts.in_file.get(setting)
        )
        yield error(
            ID,
            f"{found} A check that ran nowhere is no evidence, so nothing lands.",
            f"Let its job run on {facts.trigger}, or, if it may be skipped, {optional}.",
        )
