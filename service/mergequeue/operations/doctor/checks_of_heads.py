"""Required checks that judge a pull request and not its tree, such as its title."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider import audits
from service.provider.audits import Finding, warning
from service.vocabulary import Check, CheckOutcome, RequiredName

ID = "checks-of-heads"
FINE = "No required check passes on all pull requests and fails on all test branches."
COMMITS_MIN = 2
"""Test branches and heads that must agree."""


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning for each check that is green on every head and red on every test branch."""
    if min(facts.on_tests.commits, facts.on_pulls.commits) < COMMITS_MIN:
        return
    for check in facts.required:
        on_tests = _outcomes(facts.on_tests.checks, check)
        on_heads = _outcomes(facts.on_pulls.checks, check)
        if on_tests == {CheckOutcome.FAILED} and on_heads == {CheckOutcome.PASSED}:
            in_file = facts.in_file.get("headOnlyStatuses")
            names = ",".join((*facts.config.head_only_statuses, check.name))
            how = audits.how_to_set(facts.repo, facts.branch, "headOnlyStatuses", names, in_file)
            yield warning(
                ID,
                f"`{check.name}` passed on the heads of the last {facts.on_pulls.commits} open "
                f"pull requests and failed on the last {facts.on_tests.commits} test branches. It "
                "seems to judge the pull request (title, labels, reviews), and those of the queue "
                "differ.",
                f"To ask it of the heads only, {how}.",
            )


def _outcomes(checks: tuple[Check, ...], required: RequiredName) -> set[CheckOutcome]:
    return {check.outcome for check in checks if audits.is_report_of(required, check)}
