"""Why a pull request left the queue, why a run failed, and what to do next."""

import re
from collections.abc import Callable, Sequence

from service.mergequeue.engine.model import Named
from service.mergequeue.engine.reasons import SUBMITTED, Cause, Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import readiness, reporters
from service.mergequeue.wording.situation import Situation
from service.text import phrases, times
from service.text.phrases import Argument, Code, Page, Phrase, phrase

Text = str | Callable[[Situation], Phrase]
"""A template with the fields of `FIELDS`, or a function where the words depend on more."""

MERGE = Code("/merge")
TEST_BRANCHES = Code("headgate/merge/**")

NO_REASON_GIVEN = "taken out by "
"""The queue's own text for a removal without a reason."""

CLAUSES_SHOWN_MAX = 3

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
    tables = {EntryState.FAILED: FAILED, EntryState.MERGED: MERGED}
    return written(tables.get(situation.state, CANCELLED)[situation.reason], situation)


def written(text: Text, situation: Situation) -> Phrase:
    """Return a text of a catalog for this situation."""
    if isinstance(text, str):
        return phrases.filled(text, lambda name, words: FIELDS[name](situation, words))
    return text(situation)


def removed(situation: Situation) -> Phrase:
    """`removed by alice`, `removed: it became a draft`."""
    by_request = situation.reason in SUBMITTED
    return phrase("removed {}" if by_request else "removed: {}", why(situation))


def next_step(situation: Situation) -> Phrase:
    """Return what to do about it, in whole sentences; empty if there is nothing to do."""
    return written(_NEXT.get((situation.state, situation.reason), ""), situation)


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


def _status_failed(situation: Situation) -> Phrase:
    named = situation.detail.checks
    itself = [(each.name, each.url) for each in named if each.because is None]
    clauses = [phrase("{} failed", phrases.pages(itself))] if itself else []
    skipped = [each for each in named if each.because is not None]
    clauses += [phrase("{} {}", Code(each.name), skipped_because(each)) for each in skipped]
    shown = phrases.joined(clauses[:CLAUSES_SHOWN_MAX], "; ")
    return shown if named else phrase("a required check failed")


def skipped_because(check: Named) -> Phrase:
    """Return what CI did with a check that was skipped and does not pass."""
    if not check.because:
        return phrase("was skipped or neutral, which counts as failed")
    job = Code(check.because)
    return phrase("was skipped because {} failed", Page(job, check.url) if check.url else job)


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


def _not_ready(situation: Situation) -> Phrase:
    if situation.config is None:
        return phrase("not ready for too long")
    hours = situation.config.not_ready_timeout_hours
    return Phrase((f"not ready for {hours:g} h",))


def _waited(situation: Situation) -> str:
    """Return how long one waited for CI that has left because of it; empty for any other."""
    hours = situation.config.not_ready_timeout_hours if situation.config else 0
    has_left = situation.state is EntryState.CANCELLED
    return f"{hours:g} h" if has_left and hours else ""


def _tries(situation: Situation) -> str:
    """Return how often it was tried; of one that has left, for how long."""
    waited = _waited(situation)
    if waited:
        return f"for {waited}"
    return times.times(situation.config.auto_retry_limit + 1) if situation.config else "again"


def _interrupted(situation: Situation) -> Phrase:
    stopped = checks(situation, "its checks")
    return phrase(f"CI stopped {{}} {_tries(situation)}{_NOT_YOUR_CHANGE}", stopped)


def _infrastructure(situation: Situation) -> Phrase:
    if situation.detail.text:
        return phrase("every test attempt failed while the queue was on hold")
    return phrase(f"CI failed {_tries(situation)} without a test result{_NOT_YOUR_CHANGE}")


_NOT_YOUR_CHANGE = "; your change is not at fault"


def _landed(situation: Situation) -> Phrase:
    clause = phrase("merged into {}", situation.target)
    sha = situation.detail.sha
    return clause + phrase(" as {}", phrases.short(sha)) if sha else clause


def _with_detail(words: str, more: str) -> Text:
    """The words; with more of them if the detail has a text."""
    return lambda situation: written(words + more if situation.detail.text else words, situation)


FIELDS: dict[str, Callable[[Situation, str], Argument]] = {
    "target": lambda situation, _: situation.target,
    "text": lambda situation, words: situation.detail.text or phrase(words),
    "checks": checks,
    "prs": prs,
    "any_pr": lambda situation, words: (
        phrases.pulls(situation.detail.prs, "or") if situation.detail.prs else phrase(words)
    ),
    "by": lambda situation, _: by(situation),
    "submitter": lambda situation, _: phrases.actor(situation.submitted_by),
    "merge": lambda _, __: MERGE,
    "test_branches": lambda _, __: TEST_BRANCHES,
}
"""What a template may name; the words after `|` stand in for checks or pull requests not known."""

FAILED: dict[Reason, Text] = {
    Reason.REQUIRED_STATUS_FAILED: _status_failed,
    Reason.INTERACTION: "passes alone, fails together with {prs|a PR ahead}",
    Reason.RUN_TIMED_OUT: _timed_out,
    Reason.CONFLICT_TARGET: "conflict with {target}",
    Reason.REBASE_DIFFERS: "GitHub cannot rebase it onto {target}",
    Reason.BUILD_REFUSED: "GitHub refused the test branch",
    Reason.MERGE_REFUSED: "tests passed, but GitHub refused the merge",
}
"""Codes of FAILED (docs/design/engine.md 4)."""

CANCELLED: dict[Reason, Text] = {
    Reason.USER_REQUESTED: _requested,
    Reason.ADMIN_REQUESTED: _requested,
    Reason.API_REQUESTED: _requested,
    Reason.LABEL_REMOVED: "{by} removed the label",
    Reason.PR_CLOSED: "the PR was closed",
    Reason.MERGED_INTO_OTHER_BRANCH: "it was merged into {text|another branch}",
    Reason.HEAD_CHANGED: _pushed,
    Reason.BASE_CHANGED: _with_detail("the base branch changed", " to {text}"),
    Reason.CONVERTED_TO_DRAFT: "it became a draft",
    Reason.NOT_READY_TIMEOUT: _not_ready,
    Reason.AUTHORIZATION_LOST: "{submitter} lost the right to queue it",
    Reason.FLAKY_RETRIES_SPENT: "only known flaky tests failed, and the retries are used up",
    Reason.CI_INTERRUPTED: _interrupted,
    Reason.INFRASTRUCTURE: _infrastructure,
    Reason.CHECK_NEVER_STARTED: "{checks|a required check} never reported",
    Reason.TEST_BRANCH_TAMPERED: "somebody else deleted its test branch three times",
    Reason.PR_GONE: "the PR no longer exists",
}
"""Codes of CANCELLED."""

MERGED: dict[Reason, Text] = {
    Reason.LANDED: _landed,
    Reason.LANDED_DIRECTLY: _landed,
    Reason.MERGED_BY_HAND: lambda situation: written(
        "merged outside the queue" + (" by {by}" if situation.by.login else ""), situation
    ),
    Reason.ALREADY_CONTAINED: "already in {target}",
}
"""Codes of MERGED."""


def _after_conflict(situation: Situation) -> Phrase:
    step = phrase("Rebase or merge {}, push, then comment {} again.", situation.target, MERGE)
    if situation.rested_on:
        command = Code(f"git rebase --onto origin/{situation.target} origin/{situation.rested_on}")
        words = "The PR below it landed as new commits. Run {}, push, then comment {} again."
        step = phrase(words, command, MERGE)
    paths = situation.detail.paths
    named = phrase("In conflict: {}.", phrases.names(paths)) if paths else Phrase()
    return phrases.joined([named, step])


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
    missing = phrase("It was waiting until {}.", readiness.goals(situation.wanted))
    step = phrase("Comment {} to queue it again.", MERGE)
    return phrases.joined([missing if situation.wanted else Phrase(), step])


def _after_timeout(_: Situation) -> Phrase:
    return phrase(
        "Comment {} to queue it again. If the checks need more time, a maintainer first raises the "
        "setting {} of the queue.",
        MERGE,
        Code("testingTimeoutMinutes"),
    )


def _after_silence(situation: Situation) -> Phrase:
    foreign = reporters.sentences(situation.detail.checks)
    if foreign:
        again = phrase("Then comment {} again.", MERGE)
        return phrases.joined([*foreign[: phrases.NAMES_SHOWN_MAX], again])
    return phrase(
        "Let CI run on {} and report exactly this name, then comment {} again. An admin finds the "
        "cause with {}.",
        TEST_BRANCHES,
        MERGE,
        Code("headgate doctor"),
    )


_AGAIN = "Comment {merge} to queue it again."

_NEXT: dict[tuple[EntryState, Reason], Text] = {
    (EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED): "Fix it, push, then comment {merge} again.",
    (EntryState.FAILED, Reason.INTERACTION): (
        "Make it work together with {prs|the PRs ahead}, push, then comment {merge} again."
    ),
    (EntryState.FAILED, Reason.RUN_TIMED_OUT): _after_timeout,
    (EntryState.FAILED, Reason.CONFLICT_TARGET): _after_conflict,
    (EntryState.FAILED, Reason.REBASE_DIFFERS): (
        "Rebase it yourself, push, then comment {merge} again."
    ),
    (EntryState.FAILED, Reason.BUILD_REFUSED): _after_build_refused,
    (EntryState.FAILED, Reason.MERGE_REFUSED): _after_merge_refused,
    (EntryState.CANCELLED, Reason.USER_REQUESTED): _AGAIN,
    (EntryState.CANCELLED, Reason.ADMIN_REQUESTED): _AGAIN,
    (EntryState.CANCELLED, Reason.API_REQUESTED): _AGAIN,
    (EntryState.CANCELLED, Reason.LABEL_REMOVED): (
        "Put the label back or comment {merge} to queue it again."
    ),
    (EntryState.CANCELLED, Reason.PR_CLOSED): "Reopen it, then comment {merge} again.",
    (EntryState.CANCELLED, Reason.HEAD_CHANGED): "Comment {merge} to queue the new commits.",
    (EntryState.CANCELLED, Reason.BASE_CHANGED): "Comment {merge} to queue it for its new base.",
    (EntryState.CANCELLED, Reason.CONVERTED_TO_DRAFT): (
        "Mark it ready for review, then comment {merge} again."
    ),
    (EntryState.CANCELLED, Reason.NOT_READY_TIMEOUT): _after_not_ready,
    (EntryState.CANCELLED, Reason.AUTHORIZATION_LOST): (
        "A person with write access can comment {merge} to queue it again."
    ),
    (EntryState.CANCELLED, Reason.FLAKY_RETRIES_SPENT): _AGAIN,
    (EntryState.CANCELLED, Reason.CI_INTERRUPTED): _AGAIN,
    (EntryState.CANCELLED, Reason.INFRASTRUCTURE): _AGAIN,
    (EntryState.CANCELLED, Reason.CHECK_NEVER_STARTED): _after_silence,
    (EntryState.CANCELLED, Reason.TEST_BRANCH_TAMPERED): (
        "Find out what deletes {test_branches}, then comment {merge} again."
    ),
}
"""What to do next; missing codes need no action."""


ALONE = "No other PR was in its base, so the cause is probably in this PR or in how it fits {}."
"""The verdict `pr_fault` about a pull request that was tested directly on its target."""


def verdict(cause: Cause, target: str, prs: Sequence[int] = ()) -> Phrase:
    """Return the verdict about the pull request as one sentence."""
    words = CAUSES[cause]
    pulls = phrases.pulls(prs)
    return phrases.filled(
        words, lambda name, none: target if name == "target" else pulls if prs else phrase(none)
    )


CAUSES: dict[Cause, str] = {
    Cause.QUARANTINED_ONLY: "Only quarantined tests failed, so the run counts as passed.",
    Cause.INFRA: "The CI machines failed, not the code.",
    Cause.INTERRUPTED: "CI was stopped before it gave a result.",
    Cause.NEVER_STARTED: "A required check never started.",
    Cause.BASE_RED: "{target} fails the same way.",
    Cause.REPEATED_FAILURE: "Unrelated PRs fail the same way, so no PR is blamed for it.",
    Cause.KNOWN_FLAKY: (
        "This looks like flaky tests, not like your change; the retries are used up."
    ),
    Cause.NO_EVIDENCE: "Checks were skipped, so the change is untested.",
    Cause.TIMEOUT: "The checks did not finish in time.",
    Cause.AHEAD_FAULT: "The cause is {prs|a PR ahead}, not this PR.",
    Cause.INTERACTION: "It fails only together with {prs|the PRs ahead}.",
    Cause.PR_FAULT: (
        "All PRs ahead passed, so the cause is probably in this PR or in its combination with "
        "{target}."
    ),
}
"""The verdict about the pull request for every cause."""
