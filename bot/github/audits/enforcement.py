"""Whether anybody can merge past the queue."""

from collections.abc import Iterator

from bot.github import protection
from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, warning

ID = "enforcement"
FINE = "Only the queue can merge, apart from people who may bypass the rules."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning unless a rule leaves the branch to the App."""
    branch, pushers = facts.subject.branch, facts.read.classic.pushers
    # One without the App on its bypass list is named by the audit `closed-branch`.
    is_restricted = any(rule.type == "update" for rule in facts.read.rules)
    if is_restricted or facts.rules.known.own_required or pushers == (facts.slug,):
        return
    yield warning(
        ID,
        f"Anybody who may write to the repository can merge into `{branch}` past the queue.",
        f"Make a ruleset for `{branch}` with “Restrict updates” and add the App `{facts.slug}` to "
        f"its bypass list, or require the check `{protection.own_check(branch)}`.",
    )
