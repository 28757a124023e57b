"""Why a pull request is not merged yet, as `/explainPullRequest` shows it."""

from service.mergequeue.api import responses
from service.mergequeue.api.models.answers import pull_requests as answers
from service.mergequeue.api.models.answers.runs import IncompleteReport
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.engine.suspicion import Fate, Suspicion
from service.mergequeue.operations.views import ExplainView
from service.mergequeue.wording import conditions, endings, notices, reasons, suspicions
from service.mergequeue.wording.failed_tests import FailedTest, Standing
from service.text import markdown, phrases

SAMPLES_MIN = 5
"""Runs that have to have succeeded before a time left is shown (docs/design/comments.md 5)."""


def explanation(view: ExplainView, queue: MergeQueue) -> answers.Explanation:
    """Return the explanation; its conditions stand in the engine's order."""
    shown = view.pull_request
    entry, eta = shown.entry, shown.eta
    return answers.Explanation.of(
        view,
        pr_number=entry.pr,
        state=entry.state,
        reason=entry.reason,
        summary=summary(view),
        conditions=[_condition(each, queue) for each in view.explained.conditions],
        next=_next(view),
        required_statuses=list(dict.fromkeys(each.name for each in view.required.names)),
        required_statuses_source=view.required.source,
        suspicion=_suspicion(view.explained.suspicion),
        suspects=_suspects(view),
        failures=_failures(view),
        required_checks=responses.required_checks(view.text.checked),
        page=notices.page_of(view.text),
        eta=eta,
        eta_unknown_reason=None if eta is not None else eta_unknown_because(view, queue),
    )


def _next(view: ExplainView) -> answers.NextNews | None:
    """Return what changes the first open condition; after a failure what has to be done."""
    following, known = view.explained.next, responses.situation_of(view.pull_request)
    if following is not None:
        what = conditions.next_message(following, known.unmet)
        return answers.NextNews(what=what, at=following.at, pull_requests=list(following.prs))
    step = markdown.plain(endings.next_step(known)) if known.state in FINAL else ""
    return answers.NextNews(what=step, at=None, pull_requests=[]) if step else None


def _failures(view: ExplainView) -> answers.FailuresShown | None:
    found = notices.failures_of(view.text)
    if found is None:
        return None
    return answers.FailuresShown(
        text=found.text,
        checks=[
            answers.FailedCheckShown(
                name=one.name, url=one.url or None, because=one.because or None
            )
            for one in found.checks
        ],
        tests=[_failed_test(one) for one in found.tests.shown],
        failed_tests=found.tests.failed,
        excused_tests=found.tests.excused,
        incomplete_reports=[
            IncompleteReport(name=name, reasons=list(lacks)) for name, lacks in found.tests.gaps
        ],
    )


def _failed_test(test: FailedTest) -> answers.FailedTestShown:
    return answers.FailedTestShown(
        id=test.id,
        name=test.name,
        file=test.file or None,
        line=test.line,
        message=test.message,
        trace=list(test.trace),
        known_as=test.standing.value,
        quarantined=test.standing is Standing.EXCUSED,
        new_failure_text=test.is_new_text,
        fails_on=test.fails_on or None,
        log=test.log or None,
        page=test.page or None,
    )


def _condition(condition: Condition, queue: MergeQueue) -> answers.ConditionShown:
    text = conditions.message(condition, queue)
    return answers.ConditionShown.of(condition, text=text, pull_requests=condition.prs)


def _suspicion(believed: Suspicion | None) -> answers.SuspicionShown | None:
    if believed is None:
        return None
    together = [
        answers.FailedTogetherShown(
            test_run_id=one.run,
            others=[answers.OtherSuspect.of(other, pr_number=other.pr) for other in one.others],
            others_more=one.more,
        )
        for one in believed.newest_together
    ]
    return answers.SuspicionShown(
        percent=believed.percent,
        text=suspicions.message(believed),
        failures_alone=believed.alone,
        failures_together=believed.together,
        newest_together=together,
    )


_SEARCHED = (
    ConditionCode.BISECTION_DONE,
    ConditionCode.CAUSE_AHEAD,
    ConditionCode.SUSPECTS_DECIDED,
)


def _suspects(view: ExplainView) -> list[int]:
    """Return who may have caused the failure: by an open search, or by what is believed."""
    entry, explained = view.pull_request.entry, view.explained
    if entry.state in FINAL:
        return []
    found: set[int] = set()
    for each in explained.conditions:
        if each.code in _SEARCHED and not each.met:
            # Of a search the first `count` are proven, and only the first `total` can have failed.
            is_search = each.code is ConditionCode.BISECTION_DONE
            found |= set(each.prs[each.count : each.total] if is_search else each.prs)
        if each.code is ConditionCode.CONFIRMED and not each.met:
            found |= set(each.prs or (entry.pr,))
    if explained.suspicion is not None:
        others = (one for run in explained.suspicion.newest_together for one in run.others)
        found |= {entry.pr, *(one.pr for one in others if one.fate is Fate.UNDECIDED)}
    return sorted(found)


_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def summary(view: ExplainView) -> str:
    """Return where it stands, in one sentence; after its end also what to do about it."""
    shown = view.pull_request
    entry, position = shown.entry, shown.position
    if entry.state in FINAL:
        known = responses.situation_of(shown)
        ending = phrases.joined(
            [phrases.sentence(reasons.explanation(known)), endings.next_step(known)]
        )
        return markdown.plain(ending)
    if entry.state is EntryState.PENDING and position is not None:
        return f"In the queue, {ordinal(position)} of {shown.length}."
    return reasons.sentence(responses.situation_of(shown))


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else _ORDINALS.get(number % 10, 'th')}"


def eta_unknown_because(view: ExplainView, queue: MergeQueue) -> str:
    """Return why no time left is shown."""
    state = view.pull_request.entry.state
    if view.pull_request.failing is not None:
        return "A required check failed."
    if state in FINAL:
        return "It has left the queue."
    if state is EntryState.NOT_READY:
        return "It is not ready yet."
    if state is EntryState.PENDING_FAILURE:
        return "Its tests failed, and the cause is not known yet."
    if queue.state is QueueState.PAUSED or queue.holds:
        return "The queue stands still."
    return f"Fewer than {SAMPLES_MIN} runs so far."
