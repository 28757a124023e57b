"""Workflows that skip the draft pull requests of the queue."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits.facts import RepositoryFacts
from service.provider import audits
from service.provider.audits import Finding, error
from service.provider.values import Vehicle

ID = "workflow-drafts"
FINE = "No workflow skips the queue's test branches because they are drafts."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each workflow that skips drafts, where test branches are drafts."""
    subject, setting = facts.subject, "createPrsForTestingBranches"
    if subject.vehicle is not Vehicle.DRAFT_PR:
        return
    path = subject.in_file.get(setting)
    pushes = audits.how_to_set(subject.repo, subject.branch, setting, "false", path)
    for each in facts.workflows.found:
        if each.on_push or not (each.guarded or each.wrong_types):
            continue
        names = ", ".join(f"`{job}`" for job in each.guarded)
        why = f"its jobs {names} skip drafts" if names else "its `types` leave out `opened`"
        yield error(
            ID,
            f"`{each.name}` does not test the queue's draft pull requests: {why}. A skipped "
            "check is no evidence, so nothing lands.",
            f"In `{workflows.FOLDER}/{each.name}`, add `push: {{branches: "
            f'["{workflows.PATTERN}"]}}` under `on:`, then {pushes}.',
        )
