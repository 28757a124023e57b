"""Sentences about reports that do not count: of another App or account, skipped, or queued.

Skipped checks on test branches: docs/design/skipped-checks.md.
"""

from collections.abc import Iterable, Sequence

from service.check_reports import QUEUED
from service.mergequeue.engine.model import Named
from service.mergequeue.engine.planning.settling import JUDGES_HEAD, NEVER_RAN, SKIPPED_ALL
from service.mergequeue.engine.reported import RAN_WITHIN
from service.mergequeue.wording.names import MERGE, TEST_BRANCHES
from service.mergequeue.wording.situation import Situation
from service.text import phrases
from service.text.phrases import Code, Page, Phrase, phrase
from service.vocabulary import ELSEWHERE, CheckKind, Foreign, RequiredName

SETTING = Code("statusReporters")

_DRAFT_GUARD = Code("if: github.event.pull_request.draft == false")

_NEUTRAL = "neutral"
"""The provider's word for a check that ran and took no side."""


def sentences(checks: Iterable[Named]) -> list[Phrase]:
    """Return which checks others have reported, and what makes them count, a sentence each."""
    return [
        clause(each) + phrase(". {}", _remedy(each.foreign))
        for each in checks
        if each.foreign is not None
    ]


def clause(check: Named) -> Phrase:
    """Return "`unit` was reported by a commit status of bob; it comes from ..."."""
    foreign = check.foreign
    if foreign is None:
        return Phrase()
    return phrase("{} {}", Code(check.name), reported(foreign))


def reported(foreign: Foreign) -> Phrase:
    """Return the same without the name of the check."""
    by = _report(foreign.kind, foreign.app_id, foreign.author)
    binding = foreign.wanted.binding
    if binding is not None and not binding.on:
        words = "was reported by {}; no check run of an App has reported it, here or anywhere else"
        return phrase(words, by)
    return phrase("was reported by {}; it comes from {}", by, _reporter_of(foreign.wanted))


def _reporter_of(required: RequiredName) -> Phrase:
    """Return whose reports count for a required name."""
    by = "" if required.binding is None else required.binding.by
    if required.kind is None and required.source_id is not None:
        return phrase("App " + required.source_id)
    if required.kind is None:
        return phrase("any reporter")
    return _report(required.kind, required.source_id, by)


def _report(kind: CheckKind, app_id: str | None, by: str) -> Phrase:
    if kind is CheckKind.STATUS:
        return phrase("a commit status of {}", phrases.login(by) if by else "an unknown account")
    if app_id is None:
        return phrase("a check run of an App")
    if not by:
        return phrase("the check run of App " + app_id)
    return phrase("the check run of {} (App " + app_id + ")", by)


def _remedy(foreign: Foreign | None) -> Phrase:
    if foreign is not None and foreign.kind is CheckKind.STATUS:
        return phrase(
            "If that status is meant, an admin sets {}; {} shows both.",
            SETTING,
            Code("headgate doctor"),
        )
    return phrase(
        "If the check has moved, an admin chooses its App in the branch's rules or sets {}.",
        SETTING,
    )


def never_started_clause(situation: Situation) -> Phrase:
    """Return which required checks no machine of CI began, as a clause."""
    if queued := _queued(situation):
        pages = phrases.pages(queued)
        return phrase("{} had not begun when the time for the tests was over", pages)
    return phrase("{} never reported", _checks(situation, "a required check"))


def start_step(situation: Situation) -> Phrase:
    """Return what makes these checks start, in whole sentences."""
    if foreign := sentences(situation.detail.checks):
        return phrases.joined(foreign[: phrases.NAMES_SHOWN_MAX])
    if _queued(situation):
        return phrase(
            "Look in CI at what these checks wait for (a machine, an approval); if its machines "
            "are busy, add some, or let a maintainer raise {}.",
            Code("testingTimeoutMinutes"),
        )
    return phrase(
        "Let CI run on {} and report exactly this name; an admin finds the cause with {}.",
        TEST_BRANCHES,
        Code("headgate doctor"),
    )


def _queued(situation: Situation) -> list[tuple[str, str]]:
    """Return the checks of the evidence that are still queued in CI, with their pages."""
    return [(each.name, each.url) for each in situation.detail.checks if each.raw in QUEUED]


def skip_clause(situation: Situation) -> Phrase:
    """Return why its skipped checks do not count, as a clause."""
    names = _checks(situation, "every required check")
    if situation.detail.text == JUDGES_HEAD:
        return phrase("{} passed on the PR itself and failed on the test branch", names)
    if _are_neutral(situation):
        return phrase(
            "{} ended as {} on the test branch, which says neither that it passed nor that it "
            "failed",
            names,
            Code(_NEUTRAL),
        )
    were = " were" if len(situation.detail.checks) > 1 else " was"
    if situation.detail.text == SKIPPED_ALL:
        return phrase(
            "{}" + were + " skipped on the test branch and on the PR itself, so no required check "
            "has tested it",
            names,
        )
    if situation.detail.text == NEVER_RAN:
        return _never_ran(situation.detail.checks)
    return phrase("{}" + were + " skipped on the test branch, but not on the PR itself", names)


def _are_neutral(situation: Situation) -> bool:
    return {check.raw for check in situation.detail.checks} == {_NEUTRAL}


def _never_ran(skipped: Sequence[Named]) -> Phrase:
    """Return why these skips do not count, first as the workflow files tell."""
    clauses = [
        phrase("{} was skipped: {}", Page(Code(each.name), each.url), _where_it_runs(each.why))
        for each in skipped
        if each.why
    ]
    rest = [(each.name, each.url) for each in skipped if not each.why]
    if rest:
        words = "{} " + ("were" if len(rest) > 1 else "was") + " skipped on the test branch and on "
        words += "the PR itself, and no PR that landed in the last {} days shows that it can run"
        clauses.append(phrase(words, phrases.pages(rest), RAN_WITHIN.days))
    return phrases.joined(clauses, "; ")


def _where_it_runs(why: str) -> Phrase:
    """Return what the workflow files say of a check that never runs on a test branch."""
    if why == ELSEWHERE:
        return phrase("the condition of its job excludes test branches")
    return phrase("its job runs only on {}", Code(why))


def skip_step(situation: Situation) -> Phrase:
    """Return what makes the skipped checks run, in whole sentences."""
    if situation.detail.text == JUDGES_HEAD:
        return phrase(
            "It seems to judge the PR (title, labels, reviews) and not its tree, so no PR is to "
            "blame. An admin adds {} to {}; Headgate then asks it of the PR alone. If it tests the "
            "tree, fix it, push, and comment {}.",
            _checks(situation, "the check"),
            Code("headOnlyStatuses"),
            MERGE,
        )
    if _are_neutral(situation):
        return phrase(
            "Let the check end as {}, or as failed if it did fail, on {}. Then comment {}.",
            Code("success"),
            TEST_BRANCHES,
            MERGE,
        )
    if situation.detail.text == SKIPPED_ALL:
        first = phrase("Require a check that runs for every PR.")
    elif situation.detail.text == NEVER_RAN:
        return _let_it_run(situation.detail.checks)
    elif situation.config is not None and situation.config.create_prs_for_testing_branches:
        first = phrase(
            "A workflow that skips draft PRs ({}) skips the test branch too, which is a draft PR: "
            "a maintainer turns {} off, or removes that condition.",
            _DRAFT_GUARD,
            Code("createPrsForTestingBranches"),
        )
    else:
        first = phrase(
            "A condition or filter of the workflow excludes it: a maintainer makes it run on {}.",
            TEST_BRANCHES,
        )
    again = phrase("Headgate then tests it again. If it does not, comment {}.", MERGE)
    return phrases.joined([first, again])


def _let_it_run(skipped: Sequence[Named]) -> Phrase:
    optional = phrase(
        "a maintainer lets the job also run on {}, or names the check in {}.",
        TEST_BRANCHES,
        Code("optionalStatuses"),
    )
    if all(each.why for each in skipped):
        return phrase("To mend it, {}", optional)
    return phrase(
        "Headgate tests it again as soon as a PR has landed on which the check ran. If it never "
        "runs there, {}",
        optional,
    )


def _checks(situation: Situation, none: str) -> Phrase:
    named = [(each.name, each.url) for each in situation.detail.checks]
    return phrases.pages(named) if named else phrase(none)
