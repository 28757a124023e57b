"""Rules about reviews that hold single pull requests back."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, note

ID = "review-rules"
FINE = "No rule about conversations, code owners or last pushes holds pull requests back."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a note for each rule, since it makes a pull request wait in the queue."""
    rules, branch = facts.rules, facts.subject.branch
    if rules.needs_resolved_threads:
        yield note(
            ID,
            f"`{branch}` wants every conversation resolved. Anybody who can read the repository "
            "can begin one, and the pull request waits until it is resolved.",
        )
    if rules.needs_code_owners:
        yield note(
            ID, f"`{branch}` wants approvals of code owners; without them a pull request waits."
        )
    if rules.needs_last_push:
        yield note(
            ID,
            f"`{branch}` wants an approval by somebody other than the last pusher; without it a "
            "pull request waits.",
        )
    if rules.dismisses_approvals:
        yield note(
            ID,
            f"`{branch}` dismisses the approvals of a pull request whose base changes. Headgate "
            "has to change the base of each member of a chain when the one below has merged, so it "
            "refuses chains that are no stack on GitHub: merge the lowest one first.",
        )
