"""Required checks whose workflow does not start on the queue's test branches."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits import workflow_drafts
from bot.github.audits.facts import RepositoryFacts
from bot.github.workflows import Workflow
from service.provider.audits import Finding, error, note
from service.provider.values import Vehicle

ID = "workflow-triggers"
FINE = "The workflows of required checks start on test branches, as far as files tell."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each required check that no starting workflow reports.

    Where the workflows need the other kind of test branch, the audit `test-branch-kind` says how to
    choose it, and nothing here asks for another trigger.
    """
    if facts.workflows is None:
        yield note(ID, "The workflow files are too many or too large to be read.")
    elif workflows.advice_of(facts.workflows).vehicle not in (None, facts.subject.vehicle):
        return
    for check in facts.subject.required:
        those = [each for each in facts.workflows or () if each.reports(check.name)]
        if not those or any(starts(facts, each) for each in those):
            continue
        if any(one.audit == workflow_drafts.ID for one in workflow_drafts.decide(facts)):
            continue  # said there, with the way out
        name = those[0].name
        if facts.subject.vehicle is Vehicle.PUSH:
            trigger = f'`push: {{branches: ["{workflows.PATTERN}"]}}`'
        else:
            trigger = f"`pull_request: {{branches: [{facts.subject.branch}]}}`"
        yield error(
            ID,
            f"The required check `{check.name}` never reports on a test branch: `{name}` does not "
            f"start there.",
            f"In `{workflows.FOLDER}/{name}`, add {trigger} under `on:`.",
        )


def starts(facts: RepositoryFacts, workflow: Workflow) -> bool:
    """Return whether a workflow starts on the queue's kind of test branch."""
    is_push = facts.subject.vehicle is Vehicle.PUSH
    return workflow.on_push or (workflow.on_draft and not is_push)
