"""Why a pull request is not merged yet, as `/explainPullRequest` shows it."""

from service import troubles
from service.http.models.answers.troubles import TroubleShown
from service.mergequeue.api import next_steps, responses
from service.mergequeue.api.models.answers import pull_requests as answers
from service.mergequeue.api.models.answers.conflicts import ConflictOf
from service.mergequeue.engine.explaining.conditions import Condition
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.engine.suspicion import Suspicion
from service.mergequeue.operations.views import ExplainView
from service.mergequeue.wording import conditions, endings, notices, reasons, suspicions
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
        troubles=TroubleShown.each(view.troubles, view.text.now),
        conditions=[_condition(each, queue) for each in view.explained.conditions],
        next=_next(view),
        required_statuses=list(dict.fromkeys(each.name for each in view.required.names)),
        required_statuses_source=view.required.source,
        suspicion=_suspicion(view.explained.suspicion),
        suspects=view.step.suspects,
        failures=next_steps.failures(view.step.failures),
        next_step=next_steps.shown(view.step),
        required_checks=responses.required_checks(view.text.checked),
        conflicts=_conflicts(view),
        page=notices.page_of(view.text),
        eta=eta,
        eta_unknown_reason=None if eta is not None else eta_unknown_because(view, queue),
    )


def _conflicts(view: ExplainView) -> list[ConflictOf]:
    foreseen, number = view.conflicts, view.pull_request.entry.pr
    if foreseen is None:
        return []
    order = foreseen.order_of(number)
    text = "" if order is None else order.text
    return [
        ConflictOf(pr_number=one.other(number) or 0, paths=[*one.paths], text=text)
        for one in foreseen.of(number)
    ]


def _next(view: ExplainView) -> answers.NextNews | None:
    """Return what changes the first open condition; after a failure what has to be done."""
    following, known = view.explained.next, responses.situation_of(view.pull_request)
    if following is not None:
        what = conditions.next_message(following, known.unmet)
        return answers.NextNews(what=what, at=following.at, pull_requests=list(following.prs))
    step = markdown.plain(endings.next_step(known)) if known.state in FINAL else ""
    return answers.NextNews(what=step, at=None, pull_requests=[]) if step else None


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


_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def summary(view: ExplainView) -> str:
    """Return where it stands, in one sentence; after its end also what to do about it.

    Before it what keeps the process from working, if anything does.
    """
    return " ".join(
        filter(None, [troubles.sentences(view.troubles, view.text.now), _place_of(view)])
    )


def _place_of(view: ExplainView) -> str:
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
