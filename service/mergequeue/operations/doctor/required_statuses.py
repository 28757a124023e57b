"""Whether anything is required of a test run."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider import audits
from service.provider.audits import Finding, error, warning

ID = "required-statuses"
FINE = "The required statuses of the branch are known."


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error for unreadable rules, and for a branch that requires nothing."""
    branch = facts.branch
    in_file = facts.in_file.get("requiredStatuses")
    if facts.resolved.owned:
        return  # the audit of GitHub's own merge queue says what to do
    if facts.resolved.error is not None:
        yield error(
            ID,
            f"The required statuses of `{branch}` cannot be read: {facts.resolved.error}",
            "Grant the App `Administration: read`"
            # The file adds to the rules, so it cannot replace them.
            + ("." if in_file else f", or name them yourself: {_update(facts)}."),
        )
    elif not facts.required and facts.config.required_statuses is None:
        yield error(
            ID,
            f"`{branch}` requires no status, so a test run has nothing to wait for.",
            f"Require checks in the branch protection or a ruleset of `{branch}`, name them in "
            f"`.github/headgate.yml`, or run {_update(facts)}.",
        )
    elif not facts.required:
        yield warning(
            ID,
            "The queue's own setting requires no status: pull requests land untested.",
            f"Name statuses in `{in_file}` on `{branch}`."
            if in_file
            else f"Name statuses: {_update(facts)}.",
        )


def _update(facts: QueueFacts) -> str:
    names = ("--set", "requiredStatuses=NAME,NAME")
    return audits.command("update", facts.repo, facts.branch, *names)
