"""Events that the App does not receive, and what becomes slow without each."""

from collections.abc import Iterator, Mapping

from bot.github.audits.facts import AppFacts
from service.provider.audits import Finding, error, warning

ID = "app-events"
FINE = "The App receives every event it reads."

# The events of app.yml. Headgate learns what a missing event reports from a sweep, or never.
NEEDED: Mapping[str, str] = {
    "pull_request": "pushes, labels and closed pull requests are noticed late",
    "pull_request_review": "approvals are noticed late",
    "pull_request_review_thread": "resolved conversations are noticed late",
    "issue_comment": "`/merge` in a comment is answered minutes later",
    "push": "a moved target branch is noticed late",
    "check_run": "a finished check is noticed up to a minute late",
    "check_suite": "a finished check is noticed up to a minute late",
    "status": "a commit status is noticed up to a minute late",
    "workflow_run": "test reports of finished CI runs are read late",
    "repository": "a renamed or archived repository is noticed late",
    "repository_ruleset": "changed rules are noticed up to five minutes late",
    "branch_protection_rule": "changed branch protection is noticed up to five minutes late",
}
COMMANDS = frozenset({"issue_comment", "pull_request"})


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield a finding for each event that is not subscribed."""
    for event, without in NEEDED.items():
        if event not in facts.events:
            severity = error if event in COMMANDS else warning
            yield severity(
                ID,
                f"The App does not subscribe to `{event}`: {without}.",
                f"Open {facts.settings_url}, then “Permissions & events”, and subscribe to "
                f"`{event}`.",
            )
