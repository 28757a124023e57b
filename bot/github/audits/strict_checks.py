"""Whether the branch only takes pull requests that contain its newest commit."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, error

ID = "strict-checks"
FINE = "Pull requests need not contain the newest commit of the branch."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each place where strict checks are on."""
    places = [facts.place_of(rule) for rule in facts.read.binding if rule.is_strict and rule.checks]
    places += [facts.place_of(None)] * facts.read.classic.is_strict
    for place in dict.fromkeys(places):
        yield error(
            ID,
            f"`{facts.subject.branch}` only takes pull requests that contain its newest commit: "
            "after each merge GitHub refuses the next one, and the queue stops.",
            f"In {place}, turn off “Require branches to be up to date before merging”. The queue "
            "tests every pull request on the newest commit itself.",
        )
