"""Rulesets that the App bypasses, which no longer check what the queue lands."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, warning

ID = "bypass"
FINE = "The App bypasses no required check."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning for each bypassed ruleset with required checks."""
    for rule in facts.read.rules:
        if rule.checks and rule not in facts.read.binding:
            yield warning(
                ID,
                f"The App may bypass {facts.place_of(rule)}, which has required checks. The queue "
                "still waits for them on the test branch, but GitHub no longer checks it.",
                f"Keep required checks in a ruleset without a bypass for the App `{facts.slug}`.",
            )
