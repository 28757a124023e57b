"""The status comment and the failure comment of a pull request (docs/design/comments.md 5).

Boxes in the status comment and buttons on the check run: section 7 of that page.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Named
from service.mergequeue.engine.reasons import SUBMITTED, Reason
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.reasons.record import Ender
from service.mergequeue.wording import (
    aftermath,
    bodies,
    checked_names,
    conditions,
    endings,
    failed_tests,
    history,
    rule_notes,
)
from service.mergequeue.wording.failed_tests import FailedTests
from service.mergequeue.wording.situation import PullRequestText
from service.provider import controls
from service.provider.controls import Control
from service.provider.values import (
    Button,
    CheckReport,
    CheckReportStatus,
)
from service.text import markdown, phrases
from service.text.phrases import Phrase, phrase
from service.vocabulary import Actor, ActorKind

COMMENT_CHARACTERS_MAX = 60_000
"""GitHub takes 65,536 (docs/design/provider.md 14)."""

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


@dataclass(frozen=True, slots=True)
class Failures:
    """The checks and tests that failed; `text` says in sentences how the cause was found."""

    text: str
    checks: tuple[Named, ...]
    tests: FailedTests


ABOVE = "See the status comment above."
"""Where the comment that notifies people points to."""


def status_marker(branch: str) -> str:
    """The hidden first line by which the status comment of a queue is found again."""
    # quote leaves "-" and "~" alone; two hyphens would end the HTML comment.
    name = quote(branch, safe="/", errors="replace").replace("-", "%2D").replace("~", "%7E")
    return f"<!-- headgate:status v=1 queue={name} -->"


def says_end(body: str) -> bool:
    """Return whether a status comment says that its submission left the queue unmerged."""
    ends = (f"### {bodies.GLYPHS[state]} " for state in (EntryState.FAILED, EntryState.CANCELLED))
    return "".join(body.splitlines()[1:2]).startswith(tuple(ends))


def status_comment(view: PullRequestText) -> str:
    """The comment that is kept up to date; at most 60,000 characters, oldest history cut.

    Where the queue has a check run, that shows the progress of the checks, and the comment does
    not: each result would be an edit.
    """
    glyph = bodies.GLYPHS[view.entry.state]
    heading = markdown.markdown(bodies.heading(view), view.links)
    has_check = view.queue.config.status_check_enabled
    special = _special_lines(view)
    # Lines of their own say more than the sentence of the body.
    told = replace(view, checked=()) if special else view
    body = bodies.body(told, check_name(view.queue.branch) if has_check else None)
    top = f"{status_marker(view.queue.branch)}\n### {glyph} {heading}\n\n{body}{special}"
    footer = markdown.markdown(phrase("{} · Headgate {}", "/merge help", version(view)), view.links)
    if view.links.pages is not None:
        footer = f"[Live page]({page_of(view)}) · {footer}"
    boxes = _boxes_of(view)
    bottom = f"{boxes}\n\n<sub>{footer}</sub>" if boxes else f"<sub>{footer}</sub>"
    room = COMMENT_CHARACTERS_MAX - len(top) - len(bottom) - len(markdown.folded("History", "")) - 4
    past = _newest(history.lines(view), room)
    pieces = [top, markdown.folded("History", past), bottom] if past else [top, bottom]
    return "\n\n".join(pieces)


def _special_lines(view: PullRequestText) -> str:
    """Return a line for each required check that it passed in a special way."""
    if view.entry.state not in (EntryState.TESTS_PASSED, EntryState.MERGED):
        return ""
    lines = checked_names.special_lines(view.checked, view.links)
    return f"\n\n{lines}" if lines else ""


def failure_comment(view: PullRequestText, *, is_above: bool) -> str:
    """Return the new comment for a pull request that failed; edits do not notify people.

    `is_above`: the status comment shows it, so this one has only what failed. Else it has what
    happened, what the verdict means, what to do.
    """
    situation = view.situation
    what = markdown.markdown(phrases.unlinked(endings.why(situation)), view.links)
    head = markdown.markdown(_address(view.entry.submitted_by), view.links)
    target = markdown.code(view.queue.branch)
    if view.entry.state is EntryState.FAILED:
        first = f"{head}This PR was not merged into {target}: **{what}**."
    else:
        first = f"{head}This PR left the queue for {target}: **{what}**."
    if is_above:
        shown = failed_tests.assertions(view.tests) if bodies.tests(view) else ""
        return "\n\n".join(each for each in (f"{first} {ABOVE}", shown) if each)
    logs = bodies.logs(view)
    meaning = phrases.joined([aftermath.how_found(view), bodies.verdict(view)])
    step = endings.next_step(situation)
    rest = [markdown.markdown(each, view.links) for each in (meaning, step)]
    return "\n\n".join(each for each in (first, logs, bodies.tests(view), *rest) if each)


def is_announced(view: PullRequestText) -> bool:
    """Return whether leaving gets a comment of its own: it failed, or nobody meant it to leave."""
    entry = view.entry
    if entry.state is EntryState.FAILED:
        return True
    ending = endings.ending_of(entry.state, entry.reason)
    return ending is not None and ending.is_announced


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


SUMMARY_CHARACTERS_MAX = 65_000

TARGETS_SHOWN_MAX = 20
"""Impacted targets by name (docs/design/comments.md 5)."""

_STATUS = {
    EntryState.NOT_READY: CheckReportStatus.QUEUED,
    EntryState.PENDING: CheckReportStatus.QUEUED,
    EntryState.TESTING: CheckReportStatus.IN_PROGRESS,
    EntryState.TESTS_PASSED: CheckReportStatus.IN_PROGRESS,
    EntryState.PENDING_FAILURE: CheckReportStatus.IN_PROGRESS,
    EntryState.MERGED: CheckReportStatus.SUCCESS,
    EntryState.FAILED: CheckReportStatus.FAILURE,
    EntryState.CANCELLED: CheckReportStatus.NEUTRAL,
}

_LABELS = {
    EntryState.NOT_READY: "headgate:waiting",
    EntryState.PENDING: "headgate:queued",
    EntryState.TESTING: "headgate:testing",
    EntryState.TESTS_PASSED: "headgate:passed",
    EntryState.PENDING_FAILURE: "headgate:testing",
    EntryState.FAILED: "headgate:failed",
}

LABELS = frozenset(_LABELS.values())
"""Every label of a state."""


def label_of(state: EntryState) -> str | None:
    """Return the label of a state, None for that of what was merged or cancelled."""
    return _LABELS.get(state)


def check_report(view: PullRequestText) -> CheckReport:
    """Return the present check run; the caller fills in `known_id`."""
    return CheckReport(
        sha=view.entry.head,
        name=check_name(view.queue.branch),
        external_id=view.entry.id,
        status=_check_status(view),
        title=bodies.title(view),
        summary=_check_summary(view),
        url=page_of(view),
        buttons=buttons(view),
    )


def page_of(view: PullRequestText) -> str | None:
    """The address of our page of the pull request."""
    pages = view.links.pages
    return None if pages is None else f"{pages}/pull/{view.entry.pr}"


def check_name(branch: str) -> str:
    """The name of our check run for the queue of this branch."""
    return f"Headgate ({branch})"


def _check_status(view: PullRequestText) -> CheckReportStatus:
    entry = view.entry
    if entry.state is EntryState.MERGED and entry.reason is Reason.MERGED_BY_HAND:
        return CheckReportStatus.NEUTRAL
    if entry.state is EntryState.CANCELLED and (_is_by_a_person(view) or _is_required(view)):
        return CheckReportStatus.CANCELLED
    return _STATUS[entry.state]


def _is_required(view: PullRequestText) -> bool:
    """Return whether rules require our own check, for which a neutral one is as good as passed."""
    required = view.queue.required
    return required is not None and rule_notes.SELF_REQUIRED in required.notes


def _is_by_a_person(view: PullRequestText) -> bool:
    asked = view.entry.reason in SUBMITTED and view.situation.by.kind is ActorKind.PERSON
    ending = view.entry.reason.record.cancelled
    return asked or (ending is not None and ending.by is Ender.PERSON)


def _check_summary(view: PullRequestText) -> str:
    table = checked_names.whole_table(view.evidence, view.links)
    pieces = [bodies.body(view), table]
    if view.entry.state not in FINAL:
        pieces.append(_markdown(_required_line(view), view))
        pieces.append(_markdown(_impacted(view), view))
        following = _markdown(conditions.what_next(view.explained.next, view.situation.unmet), view)
        pieces.append(f"**What happens next:** {following}" if following else "")
    return "\n\n".join(each for each in pieces if each)[:SUMMARY_CHARACTERS_MAX]


def _required_line(view: PullRequestText) -> Phrase:
    if view.entry.state is EntryState.NOT_READY:
        return Phrase()  # its body names them already
    return phrases.sentence(bodies.required(view))


def _impacted(view: PullRequestText) -> Phrase:
    """Return the impacted targets, if they decide about lanes."""
    touched = view.entry.touches
    if view.queue.config.mode is not Mode.PARALLEL or touched is None:
        return Phrase()
    if touched.everything:
        return phrase("Impacted targets: all.")
    names = [phrase("{}", name) for name in sorted(touched.names)]
    listed = phrases.listed(names, TARGETS_SHOWN_MAX) if names else phrase("none")
    return phrase("Impacted targets: {}.", listed)


def _markdown(text: Phrase, view: PullRequestText) -> str:
    return markdown.markdown(text, view.links)


def failures_of(view: PullRequestText) -> Failures | None:
    """Return what failed; None if no check and no test did, or if it does not matter any more."""
    failing = view.situation.failing
    checks = failing.checks if failing is not None else bodies.failed_checks(view)
    tests = view.tests if bodies.tests(view) else FailedTests()
    if not checks and not tests.failed:
        return None
    killed = failed_tests.killed_runners(tests.killed)
    found = phrases.joined([aftermath.how_found(view), bodies.verdict(view), *killed])
    return Failures(markdown.plain(found), checks, tests)


def _boxes_of(view: PullRequestText) -> str:
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
