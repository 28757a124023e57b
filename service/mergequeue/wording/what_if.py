"""Describe what commands about a pull request would do, in sentences."""

from collections.abc import Iterator
from datetime import datetime

from service.errors import InvariantBroken
from service.mergequeue.engine.explaining import previews
from service.mergequeue.engine.explaining.previews import Preview
from service.mergequeue.engine.inputs import Cancel, Submit
from service.mergequeue.engine.model import PRIORITY_NAMES
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.wording.situation import PullRequestText
from service.text import phrases
from service.text.phrases import Phrase, phrase
from service.vocabulary import SYSTEM

NO_CHANGE = phrase("Nothing changes for other pull requests.")


def rows(text: PullRequestText, now: datetime) -> tuple[tuple[str, Phrase], ...]:
    """Return what a person could do and what would follow, as the engine decides on a copy.

    Empty for a queue whose state contradicts itself: there the command would fail as well.
    """
    try:
        return tuple(_rows(text, now))
    except InvariantBroken:
        return ()


def _rows(text: PullRequestText, now: datetime) -> Iterator[tuple[str, Phrase]]:
    entry, queue = text.entry, text.queue
    removal = previews.of_command(queue, Cancel(entry.pr, Reason.USER_REQUESTED, SYSTEM), now)
    if isinstance(removal, Refused):
        return
    yield "Remove it", _sentences(removal, phrase("It leaves the queue."))
    for name in ("urgent", "high"):
        priority = PRIORITY_NAMES[name]
        command = Submit(entry.facts, SYSTEM, priority=priority)
        raised = previews.of_command(queue, command, now)
        if priority < entry.priority and isinstance(raised, Preview):
            is_ahead = entry.pr in raised.moved_up
            moved = "It moves up." if is_ahead else "It keeps its place."
            yield f"Set priority {name}", _sentences(raised, phrase(moved))


def _sentences(preview: Preview, first: Phrase) -> Phrase:
    runs = len(preview.interrupted)
    up = [pr for pr in preview.moved_up if pr != preview.pr]
    said = [
        phrases.counted(runs, "test run is stopped.", "test runs are stopped.")
        if runs
        else Phrase(),
        phrase("Tested again: {}.", phrases.pulls(preview.restarted))
        if preview.restarted
        else Phrase(),
        phrase("Move up: {}.", phrases.pulls(up)) if up else Phrase(),
        phrase("Move back: {}.", phrases.pulls(preview.moved_back))
        if preview.moved_back
        else Phrase(),
    ]
    found = [each for each in said if each.parts]
    return phrases.joined([first, *(found or [NO_CHANGE])])
