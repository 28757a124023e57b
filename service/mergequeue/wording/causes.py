"""Why a test run did not succeed: one text per verdict cause (ENGINE.md 6, UX.md 3.5)."""

from collections.abc import Callable, Sequence

from service.mergequeue.engine.reasons import Cause
from service.text import markdown, phrases
from service.text.phrases import Phrase, phrase

Text = Callable[[str, Phrase], Phrase]
"""From the target branch and the pull requests concerned (empty: not known)."""


def verdict(cause: Cause, target: str, prs: Sequence[int] = ()) -> Phrase:
    """What the verdict says about the pull request, as one sentence."""
    return CAUSES[cause](target, phrases.pulls(prs))


def message(cause: Cause, target: str, prs: Sequence[int] = ()) -> str:
    """The same as plain text."""
    return markdown.plain(verdict(cause, target, prs))


def _fixed(words: str) -> Text:
    return lambda _, __: phrase(words)


CAUSES: dict[Cause, Text] = {
    Cause.QUARANTINED_ONLY: _fixed("Only quarantined tests failed, which is forgiven."),
    Cause.INFRA: _fixed("The CI machines failed, not the code."),
    Cause.INTERRUPTED: _fixed("CI was stopped before it gave a result."),
    Cause.NEVER_STARTED: _fixed("A required check never started."),
    Cause.BASE_RED: lambda target, _: phrase("{} fails the same way.", target),
    Cause.KNOWN_FLAKY: _fixed(
        "This looks like flaky tests, not like your change; the retries are used up."
    ),
    Cause.NO_EVIDENCE: _fixed("Checks were skipped, so nothing shows that the change works."),
    Cause.TIMEOUT: _fixed("The checks did not finish in time."),
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
