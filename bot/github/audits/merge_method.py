"""Whether repository and rules allow the merge method of the queue."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from service.provider import audits
from service.provider.audits import Finding, error
from service.vocabulary import MergeMethod

ID = "merge-method"
SETTING = "mergeMethod"
FINE = "The repository and its rules allow the queue's merge method."

BOXES = {
    MergeMethod.MERGE_COMMIT: "Allow merge commits",
    MergeMethod.SQUASH: "Allow squash merging",
    MergeMethod.REBASE: "Allow rebase merging",
}


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error while the method is excluded, with the rule or setting that excludes it."""
    method, ruled = facts.subject.merge_method, facts.rules.known.merge_methods
    allowed = facts.repository.merge_methods & (ruled or frozenset(MergeMethod))
    if method in allowed:
        return
    if method not in facts.repository.merge_methods:
        why = "the settings of the repository exclude it"
        other = f"turn on “{BOXES[method]}” in the settings of the repository"
    else:
        why = f"the rules of `{facts.subject.branch}` exclude it{_culprit(facts, method)}"
        other = "change that rule"
    names = [one.value for one in MergeMethod if one in allowed]
    if not names:
        mend = f"No method is left: {other}."
    else:
        repo, branch = facts.subject.repo, facts.subject.branch
        path = facts.subject.in_file.get(SETTING)
        mend = audits.how_to_set(repo, branch, SETTING, names[0], path)
        mend = f"{mend[0].upper()}{mend[1:]}, or {other}."
    yield error(ID, f"The queue merges with {method.value}, but {why}.", mend)


def _culprit(facts: RepositoryFacts, method: MergeMethod) -> str:
    for rule in facts.read.binding:
        if rule.methods is not None and method not in rule.methods:
            return f" (allowed merge methods in {facts.place_of(rule)})"
        if rule.type == "required_linear_history" and method is MergeMethod.MERGE_COMMIT:
            return f" (“Require linear history” in {facts.place_of(rule)})"
    if facts.read.classic.is_linear and method is MergeMethod.MERGE_COMMIT:
        return f" (“Require linear history” in {facts.place_of(None)})"
    if facts.rules.needs_signatures and method is MergeMethod.REBASE:
        return " (“Require signed commits”: GitHub does not sign the commits that it rebases)"
    return ""
