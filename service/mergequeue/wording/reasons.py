"""Why an entry is in its state: one sentence per code.

Texts of the final states are in endings.py, of refusals in refusals.py; a test holds the
three against the closed list of codes, both ways.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from service.mergequeue.engine.culprits.failing import Failing
from service.mergequeue.engine.model import Entry, MergeQueue, Named
from service.mergequeue.engine.planning.settling import JUDGES_HEAD, NEVER_RAN, SKIPPED_ALL
from service.mergequeue.engine.reasons import SUBMITTED, Reason
from service.mergequeue.engine.reported import RAN_WITHIN
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import checked_names, endings, readiness
from service.mergequeue.wording.endings import MERGE, TEST_BRANCHES, Text, checks
from service.mergequeue.wording.situation import Situation, Wanted, situation_of
from service.text import markdown, phrases
from service.text.phrases import Code, Page, Phrase, phrase
from service.vocabulary import ELSEWHERE


def message(entry: Entry, queue: MergeQueue) -> str:
    """The sentence of the entry's present state and reason."""
    return sentence(situation_of(entry, queue))


def sentence(situation: Situation) -> str:
    """State and reason in one plain sentence."""
    return markdown.plain(phrases.sentence(explanation(situation)))


def explanation(situation: Situation) -> Phrase:
    """State and reason in one clause, as a phrase."""
    match situation.state:
        case EntryState.NOT_READY:
            return _not_ready(situation)
        case EntryState.PENDING:
            return _pending(situation)
        case EntryState.TESTING:
            return _testing(situation)
        case EntryState.TESTS_PASSED:
            return _found(situation, PASSED)
        case EntryState.PENDING_FAILURE:
            return _found(situation, PENDING_FAILURE)
        case EntryState.FAILED | EntryState.MERGED:
            return endings.why(situation)
        case EntryState.CANCELLED:
            return endings.removed(situation)
        case _:
            assert_never(situation.state)


def because(situation: Situation) -> Phrase:
    """Return why its tests restart, as the clause after "because"; empty at the first start."""
    if situation.reason in _NOT_AGAIN:
        return Phrase()
    return _found(situation, PENDING)


def _not_ready(situation: Situation) -> Phrase:
    wanted = situation.wanted
    if not wanted and situation.reason in readiness.GOALS:
        wanted = (Wanted(situation.reason, situation.target),)
    waits = phrase("waits until {}", readiness.goals(wanted)) if wanted else Phrase()
    if situation.reason in readiness.GOALS:
        return phrases.joined([aside_clause(situation), waits], "; ")
    return phrases.joined([_found(situation, SUBMISSION), waits], "; ")


def _pending(situation: Situation) -> Phrase:
    clause = _found(situation, PENDING)
    if situation.reason in _NOT_AGAIN:
        return clause
    if situation.reason is Reason.CONFLICT_AHEAD:
        return phrase("on hold because {}", clause)
    return phrase("to be tested again because {}", clause)


def _testing(situation: Situation) -> Phrase:
    found = situation.failing
    return _found(situation, TESTING) if found is None else failing(found)


def failing(found: Failing) -> Phrase:
    """Return what failed in a run that is not decided yet, and what is awaited."""
    return phrase("{} failed; {}", failing_checks(found), awaited(found))


def failing_checks(found: Failing) -> Phrase:
    """Return the failed checks of a run that is not decided yet."""
    return phrases.pages([(each.name, each.url) for each in found.checks])


def awaited(found: Failing) -> Phrase:
    """Return what a run with a failed check waits for, and how long at most."""
    what = "test results" if found.for_results else "a newer attempt"
    return phrase(f"waiting up to {found.wait.total_seconds():.0f} s for {what}")


def restart(situation: Situation) -> Phrase:
    """Return why a pull request waits to be tested again, as a sentence."""
    clause = _found(situation, PENDING)
    if situation.reason in _NOT_AGAIN:
        return phrases.sentence(clause)
    return phrase("It is tested again because {}.", clause)


def _found(situation: Situation, table: Mapping[Reason, Text]) -> Phrase:
    reason = situation.reason
    return endings.written(table.get(reason) or ANY[reason], situation)


def _moved(situation: Situation) -> Phrase:
    sha = situation.detail.sha
    if situation.detail.text and not sha:
        # A landing stopped: it would not have been the tested change any more.
        return phrase("it must be tested together with what has landed since")
    to = phrase(" to {}", phrases.short(sha)) if sha else Phrase()
    return phrase("{} moved{} outside the queue", situation.target, to)


def failure(situation: Situation) -> Phrase:
    """Return what failed in the test run, before the culprit is known."""
    if situation.reason is Reason.RUN_TIMED_OUT:
        return endings.written(endings.FAILED[Reason.RUN_TIMED_OUT], situation)
    return phrase("{} failed", checks(situation, "a required check"))


def _failure(situation: Situation) -> Phrase:
    return phrase("{}; {}", failure(situation), _undecided(situation))


def _undecided(situation: Situation) -> Phrase:
    ahead = situation.detail.prs
    if not ahead:
        return phrase("Headgate is searching for the cause")
    return phrase(f"waiting for {{}}, which {phrases.are(ahead)} ahead", phrases.pulls(ahead))


def _with_prs(words: str, none: str) -> Text:
    """The words if the detail names pull requests, else others."""
    return lambda situation: endings.written(words if situation.detail.prs else none, situation)


def _submitted(situation: Situation) -> Phrase:
    who = situation.submitted_by if situation.submitted_by.login else situation.by
    return phrase("queued by {}", phrases.actor(who)) if who.login else phrase("queued")


SUBMISSION: dict[Reason, Text] = dict.fromkeys(SUBMITTED, _submitted)
"""Codes of a submission (docs/design/engine.md 4)."""

PENDING: dict[Reason, Text] = {
    Reason.NOW_READY: "ready, and waiting for its turn",
    Reason.RESTARTED_BY_USER: "{by} asked for a restart",
    Reason.RESTARTED_BY_API: "a restart was requested through the API",
    Reason.TARGET_MOVED: _moved,
    Reason.AHEAD_FAILED: "{prs|a PR ahead} failed",
    Reason.AHEAD_CANCELLED: "{prs|a PR ahead} left the queue",
    Reason.AHEAD_MERGED_BY_HAND: "somebody merged {prs|a PR ahead} outside the queue",
    Reason.AHEAD_OUT: "the queue continues without {prs|a PR ahead} for now",
    Reason.AHEAD_RETURNED: "{prs|a PR} came back ahead of it",
    Reason.AHEAD_CHANGED: _with_prs(
        "the order or the impacted targets changed, and it builds on {prs} now",
        "the order or the impacted targets changed",
    ),
    Reason.INTERRUPTED_BY_URGENT: "{prs|another PR} went ahead as urgent",
    Reason.BISECTION_REQUIRED: _with_prs("{prs} made its batch fail", "its batch was split"),
    Reason.BISECTION_PASSED: (
        "it passed in the search for the cause, and others went ahead meanwhile"
    ),
    Reason.SCREEN_PASSED: "its tests passed alone, and it waits for its turn",
    Reason.SCREEN_FAILED: "its tests failed, and another run has to show whether it is the cause",
    Reason.BATCH_MEMBER_LEFT: "{prs|another PR} left the batch",
    Reason.BATCH_TAKEN_APART: (
        "its batch failed for a reason outside its PRs; it is tested alone now"
    ),
    Reason.BASE_RED: "{target} itself fails",
    Reason.CONFLICT_AHEAD: "it conflicts with {any_pr|a PR ahead}",
    # One of those it may conflict with has landed or left; the next build decides.
    Reason.CONFLICT_CLEARED: "{any_pr|a PR ahead}, with which it conflicted, is decided",
    Reason.RETRY_ON_NEW_BRANCH: "CI gave no result for {checks|a required check}",
    Reason.TEST_BRANCH_LOST: "its test branch was lost",
    Reason.BUILD_RETRY: "its test branch could not be created",
    Reason.LANDING_STOPPED: "the merge was stopped",
    Reason.REQUIRED_STATUS_ADDED: "{checks|another check} became required",
    Reason.MODE_SWITCHED: "the queue changed its mode",
}
"""Codes of PENDING, as clauses after "because" (docs/design/comments.md 5)."""

TESTING: dict[Reason, Text] = {
    Reason.TEST_STARTED: "its required checks run on a test branch",
    Reason.REQUIRED_STATUS_ADDED: "waits for {checks|another check}, which became required",
}
"""Codes of TESTING."""


def _checked(without: str) -> Text:
    """Return how the required checks ended, or these words while that is not known."""

    def text(situation: Situation) -> Phrase:
        said = checked_names.summary(situation.checked)
        return said if said.parts else endings.written(without, situation)

    return text


def _but_specials(words: str) -> Text:
    """The words, and each check that did not simply pass."""

    def text(situation: Situation) -> Phrase:
        specials = checked_names.specials(situation.checked)
        return phrases.joined([endings.written(words, situation), *specials], "; ")

    return text


def _own_checks(situation: Situation) -> Phrase:
    why = phrase("its own head contains the newest {} and needed no test run", situation.target)
    return phrases.joined([why, checked_names.summary(situation.checked)], ": ")


PASSED: dict[Reason, Text] = {
    Reason.RUN_PASSED: _checked("its test run passed"),
    Reason.PASSED_EXCUSED: _checked("only quarantined tests failed, so the run counts as passed"),
    Reason.SUCCESSOR_PASSED: _but_specials(
        "the tests of {prs|a PR behind it}, which contain it, passed"
    ),
    Reason.RESULT_REUSED: "the same code passed before, and that result is reused",
    Reason.OWN_CHECKS_PASSED: _own_checks,
    Reason.LATE_SUCCESS: _checked("its test run passes now"),
    Reason.BISECTION_PASSED: _but_specials("it passed in the search for the cause of a failure"),
}
"""Codes of TESTS_PASSED: what they say of checks comes from the table of the run."""

PENDING_FAILURE: dict[Reason, Text] = {
    Reason.CHECK_FAILED: _failure,
    Reason.RUN_TIMED_OUT: _failure,
}
"""Codes of PENDING_FAILURE."""

ANY: dict[Reason, Text] = {
    **endings.CANCELLED,
    **endings.FAILED,
    **endings.MERGED,
    **PENDING_FAILURE,
    **PASSED,
    **TESTING,
    **PENDING,
}
"""Every code once, for one that stands in another state than usual."""

_NOT_AGAIN = frozenset({Reason.NOW_READY, Reason.SCREEN_PASSED})
"""Codes of PENDING after which no tests begin again: they are yet to begin."""

DRAFT_GUARD = Code("if: github.event.pull_request.draft == false")


NEUTRAL = "neutral"
"""The provider's word for a check that ran and took no side."""


def aside_clause(situation: Situation) -> Phrase:
    """Return why the entry was set aside after its tests; empty for other reasons."""
    return endings.written(_ASIDE_CLAUSES.get(situation.reason, ""), situation)


def aside_step(situation: Situation) -> Phrase:
    """Return what somebody can do about an entry set aside, in whole sentences."""
    return endings.written(_ASIDE_STEPS.get(situation.reason, ""), situation)


def _skipped(situation: Situation) -> Phrase:
    names = checks(situation, "every required check")
    if situation.detail.text == JUDGES_HEAD:
        return phrase("{} passed on the PR itself and failed on the test branch", names)
    if _are_neutral(situation):
        return phrase(
            "{} ended as {} on the test branch, which says neither that it passed nor that it "
            "failed",
            names,
            Code(NEUTRAL),
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
    return {check.raw for check in situation.detail.checks} == {NEUTRAL}


def _never_ran(skipped: Sequence[Named]) -> Phrase:
    """Return why these skips do not count, first as the workflow files tell."""
    clauses = [
        phrase("{} was skipped: {}", Page(Code(each.name), each.url), where_it_runs(each.why))
        for each in skipped
        if each.why
    ]
    rest = [(each.name, each.url) for each in skipped if not each.why]
    if rest:
        words = "{} " + ("were" if len(rest) > 1 else "was") + " skipped on the test branch and on "
        words += "the PR itself, and no PR that landed in the last {} days shows that it can run"
        clauses.append(phrase(words, phrases.pages(rest), RAN_WITHIN.days))
    return phrases.joined(clauses, "; ")


def where_it_runs(why: str) -> Phrase:
    """Return what the workflow files say of a check that never runs on a test branch."""
    if why == ELSEWHERE:
        return phrase("the condition of its job excludes test branches")
    return phrase("its job runs only on {}", Code(why))


def _run_them(situation: Situation) -> Phrase:
    if situation.detail.text == JUDGES_HEAD:
        return phrase(
            "It seems to judge the PR (title, labels, reviews) and not its tree, so no PR is to "
            "blame. An admin adds {} to {}; Headgate then asks it of the PR alone. If it tests the "
            "tree, fix it, push, and comment {}.",
            checks(situation, "the check"),
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
            DRAFT_GUARD,
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


_ASIDE_CLAUSES: dict[Reason, Text] = {
    Reason.NO_EVIDENCE: _skipped,
    Reason.CI_INTERRUPTED: endings.CANCELLED[Reason.CI_INTERRUPTED],
    Reason.INFRASTRUCTURE: endings.CANCELLED[Reason.INFRASTRUCTURE],
}

_ASIDE_STEPS: dict[Reason, Text] = {
    Reason.NO_EVIDENCE: _run_them,
    Reason.CI_INTERRUPTED: "Headgate tests it again automatically.",
    Reason.INFRASTRUCTURE: "Headgate tests it again automatically.",
}
