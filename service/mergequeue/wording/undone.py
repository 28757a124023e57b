"""Say which merged work a pull request would take back, to its author and to the landing's.

See docs/design/undone-work.md 6.
"""

from service.landed_work import LandedWork
from service.mergequeue.engine.config import UndoneWork
from service.mergequeue.engine.state import undone
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording.situation import PullRequestText
from service.text import markdown, phrases
from service.text.phrases import Code, Phrase, phrase

LANDINGS_SHOWN_MAX = 5
_LANDS = (EntryState.PENDING, EntryState.TESTING, EntryState.TESTS_PASSED, EntryState.MERGED)


def details(view: PullRequestText) -> str:
    """Return the landings that it would take back, each with its lines; empty if there are none."""
    config = view.queue.config.undone_work
    works = undone.undeclared(view.entry)[:LANDINGS_SHOWN_MAX]
    if not works or config is UndoneWork.OFF:
        return ""
    if view.entry.state is EntryState.NOT_READY or view.entry.held_by:
        return "\n\n".join(_landing(one, view) for one in works)
    if config is UndoneWork.WARN and view.entry.state in _LANDS:
        verb = "takes" if view.entry.state is EntryState.MERGED else "would take"
        names = phrases.listed([name(one) for one in works], LANDINGS_SHOWN_MAX)
        warning = phrase("⚠️ It " + verb + " back {}, and does not say so.", names)
        return _written(warning, view)
    return ""


def name(work: LandedWork) -> Phrase:
    """Return a landing by number, title, author and commit, as far as they are known."""
    commit = phrases.commit(work.commit)
    if work.number is None:
        return phrase("commit {} by {} ({})", commit, Code(work.author), Code(work.title))
    pull = phrases.pulls([work.number])
    return phrase("{} by {} ({}, commit {})", pull, Code(work.author), Code(work.title), commit)


def declaration(work: LandedWork) -> Code:
    """Return the command by which somebody says that a landing is taken back on purpose."""
    named = work.commit[:10] if work.number is None else f"#{work.number}"
    return Code(f"/merge --undoes {named}")


def landing_comment(view: PullRequestText, work: LandedWork) -> str:
    """Return the comment on the pull request whose merged work another one would take back."""
    entry = view.entry
    pull, author = phrases.pulls([entry.pr]), Code(entry.facts.author)
    first = phrase(
        "{} by {} would take back work that landed on {} with this pull request (commit {}).",
        *(pull, author, Code(view.queue.branch), phrases.commit(work.commit)),
    )
    rest = phrase(
        "It waits until its author rebases it, or says by {} that this is meant. Nothing is to be "
        "done here.",
        declaration(work),
    )
    what = _lost(work, view)
    return "\n\n".join((_written(phrases.joined([first, rest]), view), what))


def _landing(work: LandedWork, view: PullRequestText) -> str:
    return f"It would take back {_written(name(work), view)}. {_lost(work, view)}"


def _lost(work: LandedWork, view: PullRequestText) -> str:
    """Return how much of a landing would be gone, where, and some of the lines."""
    paths = phrases.names(work.paths)
    if not work.lines:
        text = phrase("Files as they were before: {}.", paths)
    else:
        lines = phrases.counted(work.lines, "line of it", "lines of it")
        text = phrase("Gone would be {}, in {}", lines, paths)
        text += Phrase((":",)) if work.shown else Phrase((".",))
    shown = "\n".join(f"- {markdown.code(line)}" for line in work.shown if line)
    return f"{_written(text, view)}\n\n{shown}".strip() if work.lines else _written(text, view)


def _written(text: Phrase, view: PullRequestText) -> str:
    return markdown.markdown(text, view.links)
