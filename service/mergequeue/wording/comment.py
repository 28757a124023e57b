"""The status comment and the failure comment of a pull request (UX.md 3.2, 3.3)."""

from urllib.parse import quote

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import bodies, endings, headings, history
from service.mergequeue.wording.view import PullRequestText
from service.text import markdown, phrases
from service.text.phrases import Phrase, phrase
from service.vocabulary import Actor, ActorKind

COMMENT_CHARACTERS_MAX = 60_000
"""GitHub takes 65,536 (GITHUB.md 6.2)."""

# Reasons to leave that nobody who follows the pull request has brought about himself.
_ANNOUNCED = frozenset(
    {
        Reason.NOT_READY_TIMEOUT,
        Reason.AUTHORIZATION_LOST,
        Reason.FLAKY_RETRIES_SPENT,
        Reason.CI_INTERRUPTED,
        Reason.INFRASTRUCTURE,
        Reason.CHECK_NEVER_STARTED,
        Reason.TEST_BRANCH_TAMPERED,
    }
)


def status_marker(branch: str) -> str:
    """The hidden first line by which the status comment of a queue is found again."""
    # quote leaves "-" and "~" alone; two hyphens would end the HTML comment.
    name = quote(branch, safe="/", errors="replace").replace("-", "%2D").replace("~", "%7E")
    return f"<!-- headgate:status v=1 queue={name} -->"


def status_comment(view: PullRequestText) -> str:
    """The comment that is kept up to date; at most 60,000 characters, oldest history cut."""
    glyph = headings.GLYPHS[view.entry.state]
    heading = markdown.markdown(headings.heading(view), view.links)
    top = f"{status_marker(view.queue.branch)}\n### {glyph} {heading}\n\n{bodies.body(view)}"
    footer = markdown.markdown(phrase("{} · Headgate {}", "/merge help", version(view)), view.links)
    bottom = f"<sub>{footer}</sub>"
    room = COMMENT_CHARACTERS_MAX - len(top) - len(bottom) - len(markdown.folded("History", "")) - 4
    past = _newest(history.lines(view), room)
    pieces = [top, markdown.folded("History", past), bottom] if past else [top, bottom]
    return "\n\n".join(pieces)


def failure_comment(view: PullRequestText) -> str:
    """The new comment when the queue let a pull request go, since edits notify nobody.

    What happened, what the verdict means, what to do.
    """
    situation = view.situation
    what = markdown.markdown(phrases.unlinked(endings.why(situation)), view.links)
    head = markdown.markdown(_address(view.entry.submitted_by), view.links)
    target = markdown.code(view.queue.branch)
    if view.entry.state is EntryState.FAILED:
        first = f"{head}{target} did not take this PR: **{what}**."
    else:
        first = f"{head}This PR left the queue for {target}: **{what}**."
    logs = bodies.logs(view)
    meaning = bodies.verdict(view)
    step = endings.next_step(situation)
    rest = [markdown.markdown(each, view.links) for each in (meaning, step)]
    return "\n\n".join(each for each in (first, logs, bodies.tests(view), *rest) if each)


def is_announced(view: PullRequestText) -> bool:
    """Whether leaving gets a comment of its own: it failed, or nobody meant it to leave."""
    entry = view.entry
    if entry.state is EntryState.FAILED:
        return True
    return entry.state is EntryState.CANCELLED and entry.reason in _ANNOUNCED


def version(view: PullRequestText) -> Phrase:
    """Our own version, as words of our own."""
    return Phrase((view.version,))


def _address(submitter: Actor) -> Phrase:
    if submitter.kind is not ActorKind.PERSON:
        return Phrase()
    return phrases.mention(submitter.login) + Phrase((" ",))


def _newest(lines: list[str], room: int) -> str:
    shown: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    return "\n".join(reversed(shown))
