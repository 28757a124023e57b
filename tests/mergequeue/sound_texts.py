"""Whatever the engine says of a pull request has its text, and every text is clean."""

from collections.abc import Iterator

from service.mergequeue.wording import (
    bodies,
    conditions,
    history,
    notices,
    reasons,
    replies,
    suspicions,
)
from service.mergequeue.wording.situation import PullRequestText
from tests.mergequeue.scenario import Play, Step
from tests.wording import hygiene


def check_step(step: Step) -> None:
    """Check all texts about all submissions after one input."""
    for view in step.views:
        faults = [fault for text in texts(view) for fault in hygiene.faults(text, ("alice",))]
        assert not faults, (step.part, view.entry.pr, faults)
        said = list(sentences(view))
        assert all(each.endswith(".") and each[0] != " " for each in said), said


def check_history(play: Play) -> None:
    """Check that each event of the journal is a sentence."""
    told = [history.message(each, "main") for each in play.listener.heard]
    assert told or all(part.startswith("submit") for part in play.parts)
    assert all(each.endswith(".") for each in told)


def texts(view: PullRequestText) -> Iterator[str]:
    """Everything that is written about a pull request, in Markdown."""
    yield notices.status_comment(view)
    yield notices.check_report(view).summary
    yield replies.status(view).text or ""
    if notices.is_announced(view):
        yield notices.failure_comment(view, is_above=True)
        yield notices.failure_comment(view, is_above=False)


def sentences(view: PullRequestText) -> Iterator[str]:
    """Everything that the API says in words."""
    yield reasons.message(view.entry, view.queue)
    yield bodies.summary(view)
    yield from (conditions.message(one, view.queue) for one in view.explained.conditions)
    if view.explained.next is not None:
        yield conditions.next_message(view.explained.next)
    if view.explained.suspicion is not None:
        yield suspicions.message(view.explained.suspicion)
