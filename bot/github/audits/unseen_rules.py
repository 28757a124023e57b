"""Rules that GitHub judges on each pull request and whose state the App cannot read."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, warning

ID = "unseen-rules"
FINE = "The App can read the state of every rule of the branch."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning for each such rule that binds the App."""
    for rule in facts.read.binding:
        if rule.type in facts.rules.unseen:
            yield warning(
                ID,
                f"The rule `{rule.type}` is judged by GitHub on the pull request itself. The App "
                "cannot see its state: a pull request that breaks it is tested, then set aside.",
                f"Let every pull request meet it before `/merge`, or add the App `{facts.slug}` to "
                f"the bypass list of {facts.place_of(rule)} (“Exempt”).",
            )
