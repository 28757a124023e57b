"""Boxes in the status comment and buttons on the check run (docs/design/comments.md 7)."""

from collections.abc import Iterator

from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.wording import endings
from service.mergequeue.wording.situation import PullRequestText
from service.provider import controls
from service.provider.controls import Control
from service.provider.values import Button

TEXTS: dict[Control, tuple[str, str, str]] = {
    Control.CANCEL: (
        "Remove from the queue",
        "Remove from queue",
        "Take this PR out of the merge queue",
    ),
    Control.RETRY: ("Restart tests", "Restart tests", "Run the required checks once more"),
    Control.REQUEUE: ("Queue again", "Queue again", "Put this PR back in the merge queue"),
    Control.SOONER: ("Test it sooner (priority high)", "Test sooner", "Give this PR priority high"),
}
"""The label of the box; label (20 characters) and description (40) of the button."""

_RETRIED = frozenset({EntryState.TESTING, EntryState.PENDING_FAILURE})
_WAITS = frozenset({EntryState.NOT_READY, EntryState.PENDING})


def boxes(view: PullRequestText) -> str:
    """Return the boxes of the present state as a list; empty if commands are turned off."""
    return "\n".join(controls.box(each, TEXTS[each][0]) for each in _shown(view))


def buttons(view: PullRequestText) -> tuple[Button, ...]:
    """Return the buttons of the present state, at most three."""
    return tuple(Button(each.value, *TEXTS[each][1:]) for each in _shown(view))


def _shown(view: PullRequestText) -> Iterator[Control]:
    if view.queue.config.commands_enabled:
        yield from possible(view)


def possible(view: PullRequestText) -> Iterator[Control]:
    """Yield what a person can do about a submission in its present state."""
    entry, state = view.entry, view.entry.state
    if state not in FINAL:
        yield Control.CANCEL
    if state in _RETRIED:
        yield Control.RETRY
    if entry.facts.is_fork:
        # Only a comment admits the head of a fork (docs/design/security.md 4).
        return
    if state in _WAITS and entry.priority > controls.SOONER:
        yield Control.SOONER
    ending = endings.ending_of(state, entry.reason)
    if state is not EntryState.MERGED and ending is not None and ending.may_return:
        yield Control.REQUEUE
