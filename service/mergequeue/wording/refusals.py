"""Why a command was refused: one text per code."""

from collections.abc import Callable

from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.wording.endings import MERGE
from service.text import markdown, phrases
from service.text.phrases import Code, Phrase, Pull, phrase

Text = str | Callable[[Refused, str], Phrase]
"""A template with `{target}` and `{merge}`, or a function of the refusal and the target branch."""


def message(refused: Refused, target: str) -> str:
    """Return what was refused and what to do, as the plain `detail` of an API error."""
    return markdown.plain(text(refused, target))


def text(refused: Refused, target: str) -> Phrase:
    """Return what was refused and what to do, in whole sentences."""
    found = REFUSALS[refused.reason]
    if isinstance(found, str):
        return phrases.filled(found, lambda name, _: target if name == "target" else MERGE)
    return found(refused, target)


def no_required_checks(target: str) -> Phrase:
    """Without a required check there is nothing to test, and untested code does not land."""
    return phrase(
        "I found no required checks for {}, so I would merge untested code. Add one in branch "
        "protection, or set required checks for the queue.",
        target,
    )


def _not_empty(refused: Refused, target: str) -> Phrase:
    count = phrases.counted(len(refused.prs), "PR is", "PRs are")
    return (
        phrase(
            "{} still in the queue for {}: {}. Cancel or merge them first.",
            count,
            target,
            phrases.pulls(refused.prs),
        )
        if refused.prs
        else phrase("The queue for {} is not empty.", target)
    )


def _invalid(refused: Refused, _: str) -> Phrase:
    what = phrase("{} cannot have this value", refused.field or "a setting")
    return what + (phrase(": {}.", phrases.quoted(refused.text)) if refused.text else phrase("."))


def _conflict_after_landing(refused: Refused, target: str) -> Phrase:
    """Say why members of a chain cannot land one after the other, and every way out."""
    upper, lower = Pull(refused.prs[0]), Pull(refused.prs[-1])
    paths = phrase(" in {}", phrases.names(refused.paths)) if refused.paths else Phrase()
    what = phrase(
        "{} builds on {}, which lands as new commits. After that {} conflicts with {}{}, so the "
        "two cannot be merged together.",
        *(upper, lower, upper, target, paths),
    )
    rebase = Code(f"git rebase --onto origin/{target} {refused.head}")
    step = phrase(
        "Comment {} on {} first. When it has merged, run {} and {}, push, then comment {} on {}.",
        *(MERGE, lower, Code("git fetch origin"), rebase, MERGE, upper),
    )
    settings = phrase(
        "With {} or {} the queue merges both together.",
        *(Code("mergeMethod=MERGE_COMMIT"), Code("landTestedCommits=true")),
    )
    return phrases.joined([what, step, settings])


REFUSALS: dict[Reason, Text] = {
    Reason.PULL_REQUEST_CLOSED: "This PR is closed. Reopen it, then comment {merge}.",
    Reason.PULL_REQUEST_MERGED: "This PR is already merged.",
    Reason.FORK_NEEDS_PERSON: (
        "This PR comes from a fork: a person with write access must comment {merge} on it."
    ),
    Reason.NO_REQUIRED_STATUSES: lambda _, target: no_required_checks(target),
    Reason.CONFLICT_AFTER_LANDING: _conflict_after_landing,
    Reason.LIMIT_REACHED: "The queue for {target} is full. Try again when PRs have left it.",
    Reason.NOT_IN_QUEUE: "This PR is not in the queue.",
    Reason.ALREADY_LANDED: "This PR has already landed.",
    Reason.QUEUE_NOT_EMPTY: _not_empty,
    Reason.MODE_SWITCH_IN_PROGRESS: (
        "The queue for {target} is switching its mode. Try again when the switch is done."
    ),
    Reason.HOLD_NOT_FOUND: "This hold does not exist; it may already have been released.",
    Reason.HOLD_NOT_LIFTABLE: (
        "This hold cannot be released by hand. It ends when its cause is gone."
    ),
    Reason.INVALID_VALUE: _invalid,
}
"""Every refusal."""
