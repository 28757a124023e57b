"""What a pull request needs before it may enter the queue: one text per code (UX.md 3.5).

Each code has a whole clause ("the PR is marked ready for review") and a few words for the
title of a check run ("ready for review").
"""

from collections.abc import Callable, Sequence

from service.mergequeue.reasons import Reason
from service.wording.phrases import NAMES_SHOWN_MAX, Code, Phrase, listed, phrase, short
from service.wording.situation import Wanted

Words = tuple[Callable[[Wanted], Phrase], Callable[[Wanted], Phrase]]
"""The clause, and the same in a few words."""


def goal(wanted: Wanted) -> Phrase:
    """What has to be so, as a clause that is true once it is met."""
    return GOALS[wanted.code][0](wanted)


def goals(wanted: Sequence[Wanted]) -> Phrase:
    """Several in one sentence."""
    return listed([goal(each) for each in wanted], NAMES_SHOWN_MAX)


def brief(wanted: Wanted) -> Phrase:
    """The same in a few words, for `Waiting: …`."""
    return GOALS[wanted.code][1](wanted)


def _base(wanted: Wanted) -> Phrase:
    clause = phrase("the base branch is {}", wanted.target)
    return clause + phrase(" (now {})", wanted.name) if wanted.name else clause


def _check(wanted: Wanted) -> Phrase:
    if not wanted.name:
        return phrase("the required checks of the PR itself pass")
    clause = phrase("check {} passes", wanted.name)
    state = wanted.state or ("failed" if wanted.code is Reason.CHECK_FAILING else "running")
    return clause + Phrase((f" ({state})",))


def _check_brief(wanted: Wanted) -> Phrase:
    return phrase("check {}", wanted.name) if wanted.name else phrase("checks of the PR")


def _rule(wanted: Wanted) -> Phrase:
    if not wanted.name:
        return phrase("every rule of {} is satisfied", wanted.target)
    return phrase("rule {} is satisfied", wanted.name)


def _targets(wanted: Wanted) -> Phrase:
    if wanted.head is None:
        return phrase("impacted targets are uploaded")
    return phrase("impacted targets for {} are uploaded", short(wanted.head))


def _fixed(clause: str, few: str) -> Words:
    return (lambda _: phrase(clause)), (lambda _: phrase(few))


GOALS: dict[Reason, Words] = {
    Reason.FACTS_UNKNOWN: _fixed("GitHub has answered about this PR", "GitHub's answer"),
    Reason.DRAFT: _fixed("the PR is marked ready for review", "ready for review"),
    Reason.BASE_MISMATCH: (_base, lambda wanted: phrase("base branch {}", wanted.target)),
    Reason.CONFLICT_TARGET: (
        lambda wanted: phrase("no conflict with {}", wanted.target),
        lambda wanted: phrase("no conflict with {}", wanted.target),
    ),
    Reason.MERGEABILITY_UNKNOWN: _fixed(
        "GitHub has computed whether it merges cleanly", "GitHub's merge check"
    ),
    Reason.REVIEW_REQUIRED: _fixed("the required reviews approve it", "review"),
    Reason.CHANGES_REQUESTED: _fixed(
        "the requested changes are made and approved", "requested changes"
    ),
    Reason.CONVERSATIONS_UNRESOLVED: _fixed("all conversations are resolved", "open conversations"),
    Reason.CHECK_PENDING: (_check, _check_brief),
    Reason.CHECK_FAILING: (_check, _check_brief),
    Reason.RULE_UNMET: (
        _rule,
        lambda wanted: phrase("rule {}", wanted.name) if wanted.name else phrase("a rule"),
    ),
    Reason.IMPACTED_TARGETS_MISSING: (_targets, lambda _: phrase("impacted targets")),
    Reason.FORK_NEEDS_PERSON: (
        lambda _: phrase("a person with write access comments {}", Code("/merge")),
        lambda _: phrase("{} by a person with write access", Code("/merge")),
    ),
    Reason.WORKFLOWS_PERMISSION_MISSING: _fixed(
        "Headgate has the permission “Workflows: write” (an owner of the repository grants it)",
        "permission “Workflows: write”",
    ),
}
"""Every code of ENGINE.md 5."""
