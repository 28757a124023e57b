"""What a pull request needs before it may enter the queue: one text per code.

Each code has a whole clause ("there is no conflict with main"), a few words for the title of
a check run ("no conflict with main") and the step that brings it about ("the conflict with
main is resolved").
"""

from collections.abc import Callable, Sequence

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.wording.situation import Wanted
from service.text import phrases
from service.text.phrases import (
    NAMES_SHOWN_MAX,
    Code,
    Phrase,
    counted,
    filled,
    listed,
    phrase,
    quoted,
    short,
)
from service.vocabulary import CODE_OWNERS, LAST_PUSH

Text = str | Callable[[Wanted], Phrase]
"""A template with `{target}`, `{name|words}` and `{merge}`, or a function."""

Words = tuple[Text, Text]
"""The clause, and the same in a few words."""

STEPS_SHOWN_MAX = 2

MERGE = Code("/merge")


def goal(wanted: Wanted) -> Phrase:
    """Return the goal as a clause that is true once it is met."""
    return _written(GOALS[wanted.code][0], wanted)


def goals(wanted: Sequence[Wanted]) -> Phrase:
    """Several in one sentence."""
    return listed([goal(each) for each in wanted], NAMES_SHOWN_MAX)


def met(wanted: Wanted) -> Phrase:
    """Return the clause for a goal that is met, or was never in question."""
    return _written(_MET.get(wanted.code, GOALS[wanted.code][0]), wanted)


def brief(wanted: Wanted) -> Phrase:
    """Return the goal in a few words, for `Waiting: …`."""
    return _written(GOALS[wanted.code][1], wanted)


def step(wanted: Wanted) -> Phrase:
    """Return the step that meets the goal, as a clause."""
    return _written(_STEPS.get(wanted.code, GOALS[wanted.code][0]), wanted)


def steps(wanted: Sequence[Wanted]) -> Phrase:
    """The first two by name, the others counted."""
    named = [step(each) for each in wanted[:STEPS_SHOWN_MAX]]
    rest = len(wanted) - len(named)
    if rest:
        named.append(counted(rest, "more condition is met", "more conditions are met"))
    return listed(named, len(named))


def _written(text: Text, wanted: Wanted) -> Phrase:
    if not isinstance(text, str):
        return text(wanted)
    fields: dict[str, str | Code] = {"target": wanted.target, "name": wanted.name, "merge": MERGE}
    return filled(text, lambda name, words: fields[name] or phrase(words))


def _named(words: str, without: str, wanted: Wanted) -> Phrase:
    """The words with the name, others if there is none."""
    return _written(words if wanted.name else without, wanted)


def _base(wanted: Wanted) -> Phrase:
    clause = phrase("the base branch is {}", wanted.target)
    return clause + phrase(" (now {})", wanted.name) if wanted.name else clause


def _pending(wanted: Wanted) -> Phrase:
    without = "the required checks of the PR itself have finished"
    return _named("check {name} passes (running)", without, wanted)


def _failing(wanted: Wanted) -> Phrase:
    who = " (it failed; the author fixes the cause and pushes, or runs it again)"
    without = "no required check of the PR itself fails (the author fixes those that do)"
    return _named("check {name} of the PR itself passes" + who, without, wanted)


def _failing_brief(wanted: Wanted) -> Phrase:
    return _named("failed check {name}", "failed checks of the PR", wanted)


def _check_brief(wanted: Wanted) -> Phrase:
    return _named("check {name}", "checks of the PR", wanted)


def _pending_step(wanted: Wanted) -> Phrase:
    return _named("check {name} passes", "the required checks of the PR itself finish", wanted)


def _failing_step(wanted: Wanted) -> Phrase:
    without = "the failed checks of the PR itself pass"
    return _named("check {name} passes after a fix or another run", without, wanted)


def _base_step(wanted: Wanted) -> Phrase:
    words = "the base branch is changed from {name} to {target}"
    return _named(words, "the base branch is changed to {target}", wanted)


def _conflict(wanted: Wanted) -> Phrase:
    return phrase("there is no conflict with {}", wanted.target) + _rebase(wanted)


def _conflict_step(wanted: Wanted) -> Phrase:
    return phrase("the conflict with {} is resolved", wanted.target) + _rebase(wanted)


def _rebase(wanted: Wanted) -> Phrase:
    """Return how a member of a chain is rebased once the one below it has landed as new commits."""
    if not wanted.name:
        return Phrase()
    command = Code(f"git rebase --onto origin/{wanted.target} origin/{wanted.name}")
    return phrase(" (the PR below it landed as new commits: run {} and push)", command)


def _stacked(wanted: Wanted) -> Phrase:
    below, missing = _numbers(wanted.name), _numbers(wanted.state)
    if not below:
        return phrase("the PRs below it in its stack on GitHub have been merged")
    words = "{}, which is below it in its stack, has been merged"
    if len(below) > 1:
        words = "{}, which are below it in its stack, have been merged"
    clause = phrase(words, phrases.pulls(below))
    if not missing:
        return clause
    verb = "is" if len(missing) == 1 else "are"
    words = f" ({{}} {verb} not in the queue: comment {{}} here again to submit the stack)"
    return clause + phrase(words, phrases.pulls(missing), MERGE)


def _stacked_brief(wanted: Wanted) -> Phrase:
    below = _numbers(wanted.name)
    return phrase("{} of its stack", phrases.pulls(below)) if below else phrase("its stack")


def _stacked_step(wanted: Wanted) -> Phrase:
    below = _numbers(wanted.name)
    if not below:
        return phrase("the PRs below it in its stack on GitHub are merged")
    verb = "is" if len(below) == 1 else "are"
    return phrase(f"{{}} of its stack {verb} merged", phrases.pulls(below))


def _numbers(name: str) -> list[int]:
    """Return the pull requests that a name lists, the lowest of the stack first."""
    return [int(word) for word in name.split() if word.isdecimal()]


def _rule(wanted: Wanted) -> Phrase:
    return _named("rule {name} is satisfied", "every rule of {target} is satisfied", wanted)


def _targets(wanted: Wanted) -> Phrase:
    if wanted.head is None:
        return phrase("CI has uploaded the impacted targets")
    return phrase("CI has uploaded the impacted targets of {}", short(wanted.head))


def _review(wanted: Wanted) -> Phrase:
    extra = _REVIEWS.get(wanted.name, "")
    clause = phrase("the required reviews approve it" + extra)
    if not wanted.state:
        return clause
    words = (
        " (its base was changed from {} to {}, and a rule that dismisses stale approvals dismisses "
        "them then: approve it again)"
    )
    return clause + phrase(words, wanted.state, wanted.target)


_REVIEWS = {
    CODE_OWNERS: " (a code owner must approve it)",
    LAST_PUSH: " (somebody other than the last pusher must approve it)",
}


def _accepted(wanted: Wanted) -> Phrase:
    if not wanted.name:
        return phrase("GitHub accepts its merge")
    words = "GitHub accepts its merge, which Headgate retries (a maintainer removes the cause: {})"
    return phrase(words, quoted(wanted.name))


GOALS: dict[Reason, Words] = {
    Reason.FACTS_UNKNOWN: ("GitHub has answered about this PR", "GitHub's answer"),
    Reason.DRAFT: ("the PR is marked ready for review", "ready for review"),
    Reason.BASE_MISMATCH: (_base, "base branch {target}"),
    Reason.CONFLICT_TARGET: (_conflict, "no conflict with {target}"),
    Reason.MERGEABILITY_UNKNOWN: (
        "GitHub has computed whether it merges cleanly",
        "GitHub's merge check",
    ),
    Reason.REVIEW_REQUIRED: (_review, "review"),
    Reason.CHANGES_REQUESTED: ("no reviewer requests changes", "requested changes"),
    Reason.CONVERSATIONS_UNRESOLVED: ("all conversations are resolved", "open conversations"),
    Reason.CHECK_PENDING: (_pending, _check_brief),
    Reason.CHECK_FAILING: (_failing, _failing_brief),
    Reason.CHECK_MISSING: (
        "{name|every required check} has run on the PR itself, which GitHub requires before a "
        "merge (the author runs CI there)",
        _check_brief,
    ),
    Reason.STACKED: (_stacked, _stacked_brief),
    Reason.PROVIDER_QUEUED: (
        "a maintainer removes the PR from GitHub's own merge queue, or lets that queue merge it",
        "GitHub's own merge queue",
    ),
    Reason.UNSIGNED: ("the author signs all commits of the PR", "signatures"),
    Reason.MERGE_REFUSED: (_accepted, "GitHub's refusal to merge it"),
    Reason.RULE_UNMET: (_rule, lambda wanted: _named("rule {name}", "a rule", wanted)),
    Reason.IMPACTED_TARGETS_MISSING: (_targets, "impacted targets"),
    Reason.FORK_NEEDS_PERSON: (
        "a person with write access comments {merge}",
        "{merge} by a person with write access",
    ),
    Reason.WORKFLOWS_PERMISSION_MISSING: (
        "Headgate has the permission “Workflows: write” (an owner of the repository grants it)",
        "permission “Workflows: write”",
    ),
    Reason.NO_EVIDENCE: (
        "its skipped checks run on the test branch (change the workflow, then comment {merge})",
        "checks that run",
    ),
    Reason.CI_INTERRUPTED: ("CI has had time to recover", "CI"),
    Reason.INFRASTRUCTURE: ("CI has had time to recover", "CI"),
}
"""Every code of docs/design/engine.md 5, and those for which a tested PR is set aside."""

_MET: dict[Reason, Text] = {
    Reason.FORK_NEEDS_PERSON: "it needs no approval as a PR from a fork",
    Reason.WORKFLOWS_PERMISSION_MISSING: "Headgate has the permissions that it needs",
    Reason.CHECK_FAILING: "no required check of the PR itself fails",
    Reason.CHECK_MISSING: "the required checks have reported on the PR itself",
    Reason.MERGE_REFUSED: "GitHub has not refused its merge",
    Reason.STACKED: "every PR below it in its stack has been merged",
    Reason.PROVIDER_QUEUED: "GitHub's own merge queue does not contain the PR",
    Reason.UNSIGNED: "all its commits have verified signatures",
}
"""Clauses that would puzzle where they were never in question."""

_STEPS: dict[Reason, Text] = {
    Reason.FACTS_UNKNOWN: "GitHub answers about this PR",
    Reason.BASE_MISMATCH: _base_step,
    Reason.CONFLICT_TARGET: _conflict_step,
    Reason.MERGEABILITY_UNKNOWN: "GitHub computes whether it merges cleanly",
    Reason.CHANGES_REQUESTED: (
        "the reviewers who asked for changes approve it, or their reviews are dismissed"
    ),
    Reason.CHECK_PENDING: _pending_step,
    Reason.CHECK_FAILING: _failing_step,
    Reason.STACKED: _stacked_step,
    Reason.WORKFLOWS_PERMISSION_MISSING: (
        "an owner of the repository grants Headgate the permission “Workflows: write”"
    ),
}
"""Steps that differ from the clause of their goal."""
