"""Branches whose names are in the way of the queue's own."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, error

ID = "branch-names"
FINE = "No branch is in the way of the queue's own under `headgate/`."

# Git keeps no branch `x/y` beside a branch `x`.
IN_THE_WAY = ("headgate", "headgate/merge", "headgate/temp")


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each branch that keeps test branches from being made."""
    for branch in IN_THE_WAY:
        if branch in facts.branches:
            yield error(
                ID,
                f"There is a branch `{branch}`, so git refuses every branch `{branch}/…`, and no "
                "test branch can be made.",
                f"Delete the branch `{branch}`, or rename it: `git push origin --delete {branch}`.",
            )
