"""What has to happen next for an entry: one text per kind of news (ENGINE.md 16)."""

from collections.abc import Callable, Sequence

from service.mergequeue.engine.conditions import Next, NextEvent
from service.mergequeue.wording import readiness
from service.mergequeue.wording.situation import Wanted
from service.text import markdown, phrases
from service.text.phrases import Phrase, phrase


def next_message(following: NextEvent | None, wanted: Sequence[Wanted] = ()) -> str:
    """What has to happen next, as a plain sentence (API.md 4.3, `next.what`)."""
    return markdown.plain(what_next(following, wanted))


def what_next(following: NextEvent | None, wanted: Sequence[Wanted] = ()) -> Phrase:
    """What has to happen next, as a sentence; empty when nothing has to.

    `wanted` is what the pull request still needs: news of it is told by name.
    """
    if following is None:
        return Phrase()
    if following.what is Next.FACTS_CHANGE and wanted:
        return phrases.sentence(readiness.steps(wanted))
    return NEXT[following.what](following)


def _then(words: str) -> Callable[[NextEvent], Phrase]:
    return lambda _: phrase(words)


def _then_prs(one: str, several: str, nobody: str) -> Callable[[NextEvent], Phrase]:
    def then(following: NextEvent) -> Phrase:
        if not following.prs:
            return phrase(nobody)
        words = one if len(following.prs) == 1 else several
        return phrase(words, phrases.pulls(following.prs))

    return then


NEXT: dict[Next, Callable[[NextEvent], Phrase]] = {
    Next.FACTS_CHANGE: _then("A condition that is still open is met."),
    Next.QUEUE_RESUMES: _then("Somebody lets the queue run again."),
    Next.MODE_CHANGES: _then("The tests that run end, and the queue changes its mode."),
    Next.HOLD_LIFTED: _then("The hold on the queue is lifted."),
    Next.CONFLICT_CLEARS: _then_prs(
        "{} is merged or leaves the queue.",
        "One of {} is merged or leaves the queue.",
        "The PR in conflict is merged or leaves the queue.",
    ),
    Next.RUN_STARTS: _then_prs(
        "The test run of {} starts.", "The test runs of {} start.", "A test run ahead starts."
    ),
    Next.BATCH_FILLS: _then("The batch fills up, or its longest wait is over."),
    Next.SLOT_FREES: _then("A test run ends."),
    Next.BRANCH_BUILT: _then("The test branch is made."),
    Next.CHECK_REPORTS: _then("CI reports a required check."),
    Next.EVIDENCE_ARRIVES: _then("The test results of the failure arrive."),
    Next.AHEAD_DECIDED: _then_prs(
        "{} passes, fails or leaves the queue.",
        "{} pass, fail or leave the queue.",
        "What is ahead is decided.",
    ),
    Next.SUCCESSOR_ENDS: _then_prs(
        "The test run of {} ends.", "The test runs of {} end.", "A test run on top of it ends."
    ),
    Next.PROBE_ENDS: _then("A test run of the search for the cause ends."),
    Next.CONFIRMATION_ENDS: _then("The second test run ends."),
    Next.LANDING_ENDS: _then_prs(
        "{} is merged or leaves the queue.",
        "{} are merged or leave the queue.",
        "The merge that is under way ends.",
    ),
    Next.RETRY: _then("Headgate tries again by itself."),
}
"""Every kind of next event."""
