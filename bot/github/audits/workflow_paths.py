"""Path filters that leave a required check without any report."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits import workflow_triggers
from bot.github.audits.facts import RepositoryFacts
from bot.github.workflow_files import Workflow
from service.provider.audits import Finding, error
from service.provider.values import Vehicle

ID = "workflow-paths"
FINE = "No path filter keeps the workflow of a required check from starting."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each workflow of a required check with a path filter."""
    for each in facts.workflows.found:
        names = [one.name for one in facts.subject.required if each.reports(one.name)]
        events = [event for event in _events(facts, each) if event in each.filtered]
        if not names or not events:
            continue
        checks = ", ".join(f"`{name}`" for name in names)
        yield error(
            ID,
            f"`{each.name}` has a path filter on `{', '.join(events)}`. Where no changed file "
            f"matches, {checks} never reports, and the queue waits until it gives up.",
            f"In `{workflows.FOLDER}/{each.name}`, remove `paths` and `paths-ignore` from "
            f"`{', '.join(events)}` and skip its jobs with `if:` instead: a skipped job reports.",
        )


def _events(facts: RepositoryFacts, workflow: Workflow) -> tuple[str, ...]:
    """Return the events by which a workflow reports on test branches and pull requests."""
    if not workflow_triggers.starts(facts, workflow):
        return ("pull_request",) if workflow.on_draft else ()
    pushed = ("push",) if workflow.on_push else ()
    is_push = facts.subject.vehicle is Vehicle.PUSH
    return (*pushed, "pull_request") if workflow.on_draft or not is_push else pushed
