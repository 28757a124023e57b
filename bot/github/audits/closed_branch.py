"""Whether rules keep the App from updating the branch."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, error

ID = "closed-branch"
FINE = "The App may update the branch."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each rule that shuts the App out."""
    branch, classic = facts.subject.branch, facts.read.classic
    for rule in facts.read.binding:
        if rule.type == "update":
            yield error(
                ID,
                f"A rule restricts updates of `{branch}`, so GitHub refuses every merge of the "
                "App.",
                f"In {facts.place_of(rule)}, add the App `{facts.slug}` to the bypass list.",
            )
    if classic.is_locked:
        yield error(
            ID,
            f"`{branch}` is locked: GitHub refuses every merge.",
            f"In {facts.place_of(None)}, turn off “Lock branch”.",
        )
    elif classic.pushers is not None and facts.slug not in classic.pushers:
        yield error(
            ID,
            f"Only some people and Apps may push to `{branch}`, and the App is not among them, so "
            "GitHub refuses every merge of the App.",
            f"In {facts.place_of(None)}, add the App `{facts.slug}` under “Restrict who can push "
            "to matching branches”.",
        )
