"""Audit whether required signatures allow the queue's merge method."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider import audits
from service.provider.audits import Finding, note
from service.vocabulary import MergeMethod

ID = "signatures"
FINE = "The branch takes unsigned commits, or GitHub signs those that the queue makes."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a note for merge commits, whose second parents people have to sign."""
    if facts.rules.needs_signatures and facts.subject.merge_method is MergeMethod.MERGE_COMMIT:
        repo, branch = facts.subject.repo, facts.subject.branch
        path = facts.subject.in_file.get("mergeMethod")
        squash = audits.how_to_set(repo, branch, "mergeMethod", MergeMethod.SQUASH.value, path)
        yield note(
            ID,
            f"`{branch}` takes only signed commits, and the queue makes merge commits: a pull "
            "request with an unsigned commit is set aside.",
            f"Let everybody sign, or {squash}: GitHub signs the commit that it makes.",
        )
