"""Required checks whose workflow does not start on the queue's test branches."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits import workflow_drafts
from bot.github.audits.facts import RepositoryFacts
from bot.github.workflow_files import Workflow
from service.provider.audits import Finding, error, note
from service.provider.values import Vehicle

ID = "workflow-triggers"
FINE = "The workflows of required checks start on test branches, as far as files tell."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each required check that no starting workflow reports.

    A file that cannot be read may report any check, so beside one nothing is an error. Where the
    workflows need the other kind of test branch, the audit `test-branch-kind` says how to
    choose it, and nothing here asks for another trigger.
    """
    if facts.workflows.trouble:
        yield note(ID, facts.workflows.trouble)
    for each in facts.workflows.unread:
        yield note(
            ID,
            f"Headgate cannot read `{each.name}` and cannot tell whether its checks start on test "
            f"branches. {each.why}",
        )
    if workflows.advice_of(facts.workflows).vehicle not in (None, facts.subject.vehicle):
        return
    for check in facts.subject.required:
        those = [each for each in facts.workflows.found if each.reports(check.name)]
        if not those or facts.workflows.unread or any(starts(facts, one) for one in those):
            continue
        if check.name in facts.subject.ran:
            continue  # seen there, so another CI reports it
        if any(one.audit == workflow_drafts.ID for one in workflow_drafts.decide(facts)):
            continue  # said there, with the way out
        name = those[0].name
        place = those[0].elsewhere
        other = f" It starts on `{place}`, which is another queue's." if place else ""
        yield error(
            ID,
            f"The required check `{check.name}` never reports on a test branch: `{name}` does not "
            f"start there.{other}",
            f"In `{workflows.FOLDER}/{name}`, add {trigger_of(facts)} under `on:`.",
        )


def trigger_of(facts: RepositoryFacts) -> str:
    """Return the trigger that starts a workflow on the queue's kind of test branch."""
    if facts.subject.vehicle is Vehicle.PUSH:
        return f'`push: {{branches: ["{workflows.PATTERN}"]}}`'
    return f"`pull_request: {{branches: [{facts.subject.branch}]}}`"


def starts(facts: RepositoryFacts, workflow: Workflow) -> bool:
    """Return whether a workflow starts on the queue's kind of test branch."""
    return bool(workflows.events_of(workflow, facts.subject.vehicle))
