"""Whether GitHub's own merge queue owns the branch."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, error

ID = "provider-queue"
FINE = "GitHub's own merge queue is off for the branch."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error while GitHub's queue is on."""
    if facts.rules.has_queue:
        rule = next((one for one in facts.read.binding if one.type == "merge_queue"), None)
        yield error(
            ID,
            f"GitHub's own merge queue owns `{facts.subject.branch}` and refuses every other "
            "merge, so nothing of this queue can land.",
            f"In {facts.place_of(rule)}, turn off “Require merge queue”.",
        )
