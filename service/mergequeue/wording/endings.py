"""Why a pull request left the queue, why a run failed, and what to do next."""

import re
from collections.abc import Callable, Sequence

from service.mergequeue.engine.reasons import SUBMITTED, Cause, Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import readiness
from service.mergequeue.wording.situation import Situation
from service.text import markdown, phrases, times
from service.text.phrases import Code, Phrase, phrase

Text = Callable[[Situation], Phrase]

MERGE = Code("/merge")
TEST_BRANCHES = Code("headgate/merge/**")

NO_REASON_GIVEN = "taken out by "
"""The queue's own text for a removal without a reason."""

_CODE = re.compile(r"[a-z_]*")

# Words of GitHub's refusal and what usually stands behind them; the first that fits is shown.
_USUAL_CAUSES = (
    ("locked", "the conversation of the PR is locked"),
    ("approving review", "a required review was withdrawn"),
    ("conversation", "a conversation is not resolved"),
    ("status check", "a required check ran on the PR alone, not on its test branch"),
)


def why(situation: Situation) -> Phrase:
    """The reason as a clause: "`test` failed", "it became a draft"."""
    match situation.state:
        case EntryState.FAILED:
            return FAILED[situation.reason](situation)
        case EntryState.MERGED:
            return MERGED[situation.reason](situation)
        case _:
            return CANCELLED[situation.reason](situation)


def removed(situation: Situation) -> Phrase:
    """`removed by alice`, `removed: it became a draft`."""
    by_request = situation.reason in SUBMITTED
    return phrase("removed {}" if by_request else "removed: {}", why(situation))


def next_step(situation: Situation) -> Phrase:
    """Return what to do about it, in whole sentences; empty if there is nothing to do."""
    fixed = _NEXT.get((situation.state, situation.reason))
    return fixed(situation) if fixed else Phrase()


def said(situation: Situation) -> Phrase:
    """The provider's words, if it was the provider."""
    text = situation.detail.text
    return Phrase() if is_code(text) else phrase("GitHub said {}.", phrases.quoted(text))


def is_code(text: str) -> bool:
    """Whether the text is no words, but a code of ours that stands in for silence."""
    return _CODE.fullmatch(text) is not None


def checks(situation: Situation, none: str) -> Phrase:
    """The checks in the evidence with their pages, or our words for none."""
    named = [(each.name, each.url) for each in situation.detail.checks]
    return phrases.pages(named) if named else phrase(none)


def prs(situation: Situation, none: str) -> Phrase:
    """The pull requests in the evidence, or our words for none."""
    return phrases.pulls(situation.detail.prs) if situation.detail.prs else phrase(none)


def by(situation: Situation) -> Phrase:
    """Return the actor, `somebody` if unknown."""
    return phrases.actor(situation.by) if situation.by.login else phrase("somebody")


def _timed_out(situation: Situation) -> Phrase:
    if situation.config is None:
        return phrase("timed out")
    return phrase("timed out after {} min", situation.config.testing_timeout_minutes)


def _requested(situation: Situation) -> Phrase:
    who = phrase("by {}", by(situation))
    text = situation.detail.text
    if not text or text.startswith(NO_REASON_GIVEN):
        return who
    return who + phrase(": {}", phrases.quoted(text))


def _pushed(situation: Situation) -> Phrase:
    clause, new = phrase("new commits were pushed"), situation.detail.sha
    if new is None or situation.head is None or new == situation.head:
        return clause
    return clause + phrase(" ({} → {})", phrases.short(situation.head), phrases.short(new))


def _base_changed(situation: Situation) -> Phrase:
    clause = phrase("the base branch changed")
    return clause + phrase(" to {}", situation.detail.text) if situation.detail.text else clause


def _not_ready(situation: Situation) -> Phrase:
    if situation.config is None:
        return phrase("not ready for too long")
    hours = situation.config.not_ready_timeout_hours
    return Phrase((f"not ready for {hours:g} h",))


def _authorization_lost(situation: Situation) -> Phrase:
    return phrase("{} lost the right to queue it", phrases.actor(situation.submitted_by))


def _tries(situation: Situation) -> str:
    return times.times(situation.config.auto_retry_limit + 1) if situation.config else "again"


def _interrupted(situation: Situation) -> Phrase:
    stopped = checks(situation, "its checks")
    return phrase("CI stopped {} " + _tries(situation), stopped) + _not_your_change()


def _infrastructure(situation: Situation) -> Phrase:
    if situation.detail.text:
        return phrase("every test attempt failed while the queue was on hold")
    return phrase(f"CI failed {_tries(situation)} without a test result") + _not_your_change()


def _not_your_change() -> Phrase:
    return phrase("; nothing in your change needs fixing")


def _landed(situation: Situation) -> Phrase:
    clause = phrase("merged into {}", situation.target)
    sha = situation.detail.sha
    return clause + phrase(" as {}", phrases.short(sha)) if sha else clause


def _merged_by_hand(situation: Situation) -> Phrase:
    return (
        phrase("merged outside the queue by {}", by(situation))
        if situation.by.login
        else (phrase("merged outside the queue"))
    )


FAILED: dict[Reason, Text] = {
    Reason.REQUIRED_STATUS_FAILED: lambda situation: phrase(
        "{} failed", checks(situation, "a required check")
    ),
    Reason.INTERACTION: lambda situation: phrase(
        "passes alone, fails together with {}", prs(situation, "a PR ahead")
    ),
    Reason.RUN_TIMED_OUT: _timed_out,
    Reason.CONFLICT_TARGET: lambda situation: phrase("conflict with {}", situation.target),
    Reason.REBASE_DIFFERS: lambda situation: phrase(
        "GitHub cannot rebase it onto {}", situation.target
    ),
    Reason.BUILD_REFUSED: lambda _: phrase("GitHub refused the test branch"),
    Reason.MERGE_REFUSED: lambda _: phrase("tests passed, but GitHub refused the merge"),
}
"""Codes of FAILED (ENGINE.md 4)."""

CANCELLED: dict[Reason, Text] = {
    Reason.USER_REQUESTED: _requested,
    Reason.ADMIN_REQUESTED: _requested,
    Reason.API_REQUESTED: _requested,
    Reason.LABEL_REMOVED: lambda situation: phrase("{} removed the label", by(situation)),
    Reason.PR_CLOSED: lambda _: phrase("the PR was closed"),
    Reason.MERGED_INTO_OTHER_BRANCH: lambda situation: phrase(
        "it was merged into {}", situation.detail.text or phrase("another branch")
    ),
    Reason.HEAD_CHANGED: _pushed,
    Reason.BASE_CHANGED: _base_changed,
    Reason.CONVERTED_TO_DRAFT: lambda _: phrase("it became a draft"),
    Reason.NOT_READY_TIMEOUT: _not_ready,
    Reason.AUTHORIZATION_LOST: _authorization_lost,
    Reason.FLAKY_RETRIES_SPENT: lambda _: phrase(
        "only known flaky tests failed, and the retries are used up"
    ),
    Reason.CI_INTERRUPTED: _interrupted,
    Reason.INFRASTRUCTURE: _infrastructure,
    Reason.CHECK_NEVER_STARTED: lambda situation: phrase(
        "{} never reported", checks(situation, "a required check")
    ),
    Reason.TEST_BRANCH_TAMPERED: lambda _: phrase(
        "somebody else deleted its test branch three times"
    ),
    Reason.PR_GONE: lambda _: phrase("the PR no longer exists"),
}
"""Codes of CANCELLED."""

MERGED: dict[Reason, Text] = {
    Reason.LANDED: _landed,
    Reason.LANDED_DIRECTLY: _landed,
    Reason.MERGED_BY_HAND: _merged_by_hand,
    Reason.ALREADY_CONTAINED: lambda situation: phrase("already in {}", situation.target),
}
"""Codes of MERGED."""


def _again(words: str = "Comment {} to queue it again.") -> Text:
    return lambda _: phrase(words, MERGE)


def _after(first: str) -> Text:
    return lambda _: phrase(first + ", then comment {} again.", MERGE)


def _after_interaction(situation: Situation) -> Phrase:
    others = prs(situation, "what is ahead of it")
    return phrase("Make it work together with {}, push, then comment {} again.", others, MERGE)


def _after_conflict(situation: Situation) -> Phrase:
    step = phrase("Rebase or merge {}, push, then comment {} again.", situation.target, MERGE)
    paths = situation.detail.paths
    return (
        phrases.joined([phrase("In conflict: {}.", phrases.names(paths)), step])
        if paths
        else (step)
    )


def _after_build_refused(situation: Situation) -> Phrase:
    step = phrase(
        "Comment {} to try again; if that fails too, show this to your Headgate administrator.",
        MERGE,
    )
    return phrases.joined([said(situation), step])


def _after_merge_refused(situation: Situation) -> Phrase:
    words = situation.detail.text.lower()
    cause = next((cause for needle, cause in _USUAL_CAUSES if needle in words), "")
    usual = Phrase((f"Usual cause: {cause}.",)) if cause else Phrase()
    step = phrase("Nothing was merged. Remove the cause, then comment {} again.", MERGE)
    return phrases.joined([said(situation), usual, step])


def _after_not_ready(situation: Situation) -> Phrase:
    missing = phrase("It could not enter until {}.", readiness.goals(situation.wanted))
    step = phrase("Comment {} to queue it again.", MERGE)
    return phrases.joined([missing if situation.wanted else Phrase(), step])


def _after_never_started(_: Situation) -> Phrase:
    return phrase(
        "CI must run on {} and report exactly this name. Then comment {} again.",
        TEST_BRANCHES,
        MERGE,
    )


_NEXT: dict[tuple[EntryState, Reason], Text] = {
    (EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED): _after("Fix it, push"),
    (EntryState.FAILED, Reason.INTERACTION): _after_interaction,
    (EntryState.FAILED, Reason.RUN_TIMED_OUT): _again(
        "If the checks take that long, a maintainer can raise the testing timeout of the queue; "
        "comment {} to queue it again."
    ),
    (EntryState.FAILED, Reason.CONFLICT_TARGET): _after_conflict,
    (EntryState.FAILED, Reason.REBASE_DIFFERS): _after("Rebase it yourself, push"),
    (EntryState.FAILED, Reason.BUILD_REFUSED): _after_build_refused,
    (EntryState.FAILED, Reason.MERGE_REFUSED): _after_merge_refused,
    (EntryState.CANCELLED, Reason.USER_REQUESTED): _again(),
    (EntryState.CANCELLED, Reason.ADMIN_REQUESTED): _again(),
    (EntryState.CANCELLED, Reason.API_REQUESTED): _again(),
    (EntryState.CANCELLED, Reason.LABEL_REMOVED): _again(
        "Put the label back or comment {} to queue it again."
    ),
    (EntryState.CANCELLED, Reason.PR_CLOSED): _after("Reopen it"),
    (EntryState.CANCELLED, Reason.HEAD_CHANGED): _again("Comment {} to queue the new commits."),
    (EntryState.CANCELLED, Reason.BASE_CHANGED): _again("Comment {} to queue it for its new base."),
    (EntryState.CANCELLED, Reason.CONVERTED_TO_DRAFT): _after("Mark it ready for review"),
    (EntryState.CANCELLED, Reason.NOT_READY_TIMEOUT): _after_not_ready,
    (EntryState.CANCELLED, Reason.AUTHORIZATION_LOST): _again(
        "A person with write access can comment {} to queue it again."
    ),
    (EntryState.CANCELLED, Reason.FLAKY_RETRIES_SPENT): _again(),
    (EntryState.CANCELLED, Reason.CI_INTERRUPTED): _again(),
    (EntryState.CANCELLED, Reason.INFRASTRUCTURE): _again(),
    (EntryState.CANCELLED, Reason.CHECK_NEVER_STARTED): _after_never_started,
    (EntryState.CANCELLED, Reason.TEST_BRANCH_TAMPERED): lambda _: phrase(
        "Find out what deletes {}, then comment {} again.", TEST_BRANCHES, MERGE
    ),
}
"""What to do next; missing codes need no action."""

CauseText = Callable[[str, Phrase], Phrase]
"""From the target branch and the pull requests concerned (empty: not known)."""


def verdict(cause: Cause, target: str, prs: Sequence[int] = ()) -> Phrase:
    """Return the verdict about the pull request as one sentence."""
    return CAUSES[cause](target, phrases.pulls(prs))


def cause_message(cause: Cause, target: str, prs: Sequence[int] = ()) -> str:
    """Return the verdict as plain text."""
    return markdown.plain(verdict(cause, target, prs))


def _fixed_cause(words: str) -> CauseText:
    return lambda _, __: phrase(words)


CAUSES: dict[Cause, CauseText] = {
    Cause.QUARANTINED_ONLY: _fixed_cause(
        "Only quarantined tests failed, so the run counts as passed."
    ),
    Cause.INFRA: _fixed_cause("The CI machines failed, not the code."),
    Cause.INTERRUPTED: _fixed_cause("CI was stopped before it gave a result."),
    Cause.NEVER_STARTED: _fixed_cause("A required check never started."),
    Cause.BASE_RED: lambda target, _: phrase("{} fails the same way.", target),
    Cause.KNOWN_FLAKY: _fixed_cause(
        "This looks like flaky tests, not like your change; the retries are used up."
    ),
    Cause.NO_EVIDENCE: _fixed_cause("Checks were skipped, so the change is untested."),
    Cause.TIMEOUT: _fixed_cause("The checks did not finish in time."),
    Cause.AHEAD_FAULT: lambda _, prs: phrase(
        "The cause is {}, not this PR.", prs if prs.parts else phrase("ahead of it")
    ),
    Cause.INTERACTION: lambda _, prs: phrase(
        "It fails only together with {}.", prs if prs.parts else phrase("what is ahead of it")
    ),
    Cause.PR_FAULT: lambda target, _: phrase(
        "Everything ahead of it had passed, so the cause is probably in this PR, or in how it fits "
        "{}.",
        target,
    ),
}
"""Every cause."""
