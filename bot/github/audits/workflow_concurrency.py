"""Concurrency groups in which one test branch cancels the CI of another."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits import workflow_triggers
from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, error
from service.provider.values import Vehicle

ID = "workflow-concurrency"
FINE = "No concurrency group holds several test branches."

# Expressions of GitHub's "Contexts" that differ between test branches, by how CI sees them.
ALWAYS = ("github.ref", "github.sha", "github.run_id", "github.run_number")
ON_PULLS = ("github.head_ref", "pull_request.number", "github.event.number")


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each group that does not name the branch."""
    for each in facts.workflows.found:
        if not workflow_triggers.starts(facts, each):
            continue
        is_push = facts.subject.vehicle is Vehicle.PUSH or each.on_push
        parts = ALWAYS if is_push else (*ALWAYS, *ON_PULLS)
        for group in each.groups:
            if any(part in group for part in parts):
                continue
            yield error(
                ID,
                f"`{each.name}` puts all test branches into the concurrency group `{group}`, in "
                "which a newer run cancels an older one: checks of the queue are cancelled.",
                f"In `{workflows.FOLDER}/{each.name}`, set the group to "
                "`${{ github.workflow }}-${{ github.ref }}`.",
            )
