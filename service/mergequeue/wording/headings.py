"""The one line that says where a pull request stands (UX.md 3.2)."""

from typing import assert_never

from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.wording import conditions, endings
from service.mergequeue.wording.view import PullRequestText
from service.text import markdown, phrases, times
from service.text.phrases import Phrase, phrase

TITLE_CHARACTERS_MAX = 70

_SEPARATOR = " · "

GLYPHS = {
    EntryState.NOT_READY: "⏳",
    EntryState.PENDING: "🕒",
    EntryState.TESTING: "🧪",
    EntryState.TESTS_PASSED: "✅",
    EntryState.PENDING_FAILURE: "🔎",
    EntryState.MERGED: "🟣",
    EntryState.FAILED: "❌",
    EntryState.CANCELLED: "🚫",
}


def heading(view: PullRequestText) -> Phrase:
    """State, place and time left, without its glyph."""
    return phrases.joined(_pieces(view), _SEPARATOR)


def title(view: PullRequestText) -> str:
    """The heading of a check run: plain, at most 70 characters."""
    if view.entry.state is EntryState.NOT_READY:
        text = markdown.plain(phrase("Waiting: {}", conditions.open_in_brief(view)))
    else:
        text = markdown.plain(heading(view))
    if len(text) <= TITLE_CHARACTERS_MAX:
        return text
    return text[: TITLE_CHARACTERS_MAX - 1].rstrip(" ,·") + "…"


def summary(view: PullRequestText) -> str:
    """State, place and time left as a plain sentence (API.md 4.3, `summary`)."""
    return markdown.plain(phrases.sentence(phrases.joined(_pieces(view), ", ")))


def place(position: int | None, length: int) -> Phrase:
    """`3rd of 7`; nothing for an entry without a place."""
    return Phrase() if position is None else phrase(times.ordinal(position) + " of {}", length)


def has_restarted(view: PullRequestText) -> bool:
    """Whether its tests have begun before."""
    return any(view.entry.restarts.values())


def _pieces(view: PullRequestText) -> list[Phrase]:
    state, target = view.entry.state, view.queue.branch
    match state:
        case EntryState.NOT_READY:
            return [phrase("Waiting to enter the queue for {}", target)]
        case EntryState.PENDING:
            return _pending(view)
        case EntryState.TESTING:
            return [_testing(view), place(view.position, view.length), _left(view)]
        case EntryState.TESTS_PASSED:
            return [phrase("Tests passed"), _before_landing(view)]
        case EntryState.PENDING_FAILURE:
            return [_failed(view)]
        case EntryState.MERGED:
            return [phrases.capitalized(endings.why(view.situation))]
        case EntryState.FAILED:
            why = phrases.unlinked(phrases.capitalized(endings.why(view.situation)))
            return [why, phrase("removed from the queue")]
        case EntryState.CANCELLED:
            return [phrases.unlinked(phrases.capitalized(endings.removed(view.situation)))]
        case _:
            assert_never(state)


def _pending(view: PullRequestText) -> list[Phrase]:
    if view.entry.held_by:
        ahead = phrases.pulls(view.entry.held_by, "or")
        return [phrase("On hold"), phrase("conflicts with {}", ahead)]
    word = Phrase((conditions.stopped_word(view),)) if conditions.stopped_word(view) else Phrase()
    first = "Waiting to be tested again" if has_restarted(view) else "In the queue"
    return [phrase(first), place(view.position, view.length), word]


def _testing(view: PullRequestText) -> Phrase:
    if view.run is not None and view.run.kind is RunKind.SCREEN:
        return phrase("Testing alone first")
    return phrase("Testing again" if has_restarted(view) else "Testing")


def _failed(view: PullRequestText) -> Phrase:
    search = view.search
    if search is None or len(search.entries) == 1:
        return phrase("Failed, finding the cause")
    return phrase("A batch of {} failed, splitting it", len(search.entries))


def _left(view: PullRequestText) -> Phrase:
    return Phrase((times.remaining(view.left, view.now),)) if view.left else Phrase()


def _before_landing(view: PullRequestText) -> Phrase:
    word, ahead = conditions.stopped_word(view), conditions.awaited(view)
    if word:
        return Phrase((word,))
    if ahead:
        return phrase("waiting for {}", phrases.pulls(ahead))
    if view.entry.unmet:
        return phrase("waiting: {}", conditions.open_in_brief(view))
    return phrase("about to merge")
