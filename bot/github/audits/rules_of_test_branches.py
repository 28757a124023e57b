"""Rules of rulesets that also bind the queue's own branches."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, error

ID = "test-branch-rules"
FINE = "No rule binds the queue's own branches."
EXCLUDED = "headgate/**/*"


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each ruleset under which test branches cannot be made or removed."""
    places: dict[str, list[str]] = {}
    for rule in facts.test_branch_rules:
        places.setdefault(facts.place_of(rule), []).append(rule.type)
    for place, types in places.items():
        listed = ", ".join(f"`{one}`" for one in dict.fromkeys(types))
        yield error(
            ID,
            f"{place[0].upper()}{place[1:]} also applies to `headgate/**`: under {listed} test "
            "branches cannot be made or removed.",
            f"In {place}, exclude the branches `{EXCLUDED}` by pattern.",
        )
