"""Why a pull request was set aside after its tests, and what brings it back (ENGINE.md 6)."""

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.settling import SKIPPED_ALL
from service.mergequeue.wording import endings
from service.mergequeue.wording.endings import MERGE, TEST_BRANCHES, Text, checks
from service.mergequeue.wording.situation import Situation
from service.text import phrases
from service.text.phrases import Code, Phrase, phrase

DRAFT_GUARD = Code("if: github.event.pull_request.draft == false")


def clause(situation: Situation) -> Phrase:
    """Return what happened as a clause; empty for other reasons."""
    text = _CLAUSES.get(situation.reason)
    return text(situation) if text else Phrase()


def step(situation: Situation) -> Phrase:
    """Return what somebody can do about it, in whole sentences."""
    text = _STEPS.get(situation.reason)
    return text(situation) if text else Phrase()


def _skipped(situation: Situation) -> Phrase:
    names = checks(situation, "every required check")
    were = " were" if len(situation.detail.checks) > 1 else " was"
    if situation.detail.text == SKIPPED_ALL:
        return phrase(
            "{}" + were + " skipped on the test branch and on the PR itself, so no required check "
            "has tested it",
            names,
        )
    return phrase("{}" + were + " skipped on the test branch, but not on the PR itself", names)


def _run_them(situation: Situation) -> Phrase:
    if situation.detail.text == SKIPPED_ALL:
        first = phrase("Require a check that runs for every PR.")
    elif situation.config is not None and situation.config.create_prs_for_testing_branches:
        first = phrase(
            "A workflow that skips draft PRs ({}) skips the test branch too, which is a draft PR: "
            "a maintainer turns {} off, or removes that condition.",
            DRAFT_GUARD,
            Code("createPrsForTestingBranches"),
        )
    else:
        first = phrase(
            "A condition or filter of the workflow left it out: a maintainer lets it run on {}.",
            TEST_BRANCHES,
        )
    again = phrase("Headgate then tests it again. If it does not, comment {}.", MERGE)
    return phrases.joined([first, again])


_CLAUSES: dict[Reason, Text] = {
    Reason.NO_EVIDENCE: _skipped,
    Reason.CI_INTERRUPTED: endings.CANCELLED[Reason.CI_INTERRUPTED],
    Reason.INFRASTRUCTURE: endings.CANCELLED[Reason.INFRASTRUCTURE],
}

_STEPS: dict[Reason, Text] = {
    Reason.NO_EVIDENCE: _run_them,
    Reason.CI_INTERRUPTED: lambda _: phrase("Headgate tests it again by itself."),
    Reason.INFRASTRUCTURE: lambda _: phrase("Headgate tests it again by itself."),
}
