"""Our own check run on the head of a pull request (UX.md 3.4)."""

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.reasons import SUBMITTED, Reason
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.wording import bodies, headings, upcoming
from service.mergequeue.wording.view import PullRequestText
from service.provider.values import (
    CheckReport,
    CheckReportStatus,
)
from service.text import markdown, phrases
from service.text.phrases import Phrase, phrase
from service.vocabulary import ActorKind

SUMMARY_CHARACTERS_MAX = 65_000

TARGETS_SHOWN_MAX = 20
"""Impacted targets by name (UX.md 3.4)."""

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

# What only a person does, even where nobody knows who it was.
_BY_A_PERSON = frozenset(
    {
        Reason.LABEL_REMOVED,
        Reason.PR_CLOSED,
        Reason.HEAD_CHANGED,
        Reason.BASE_CHANGED,
        Reason.CONVERTED_TO_DRAFT,
    }
)


def check_report(view: PullRequestText) -> CheckReport:
    """The check run as it should stand now; `known_id` is the caller's to fill in."""
    pages = view.links.pages
    return CheckReport(
        sha=view.entry.head,
        name=check_name(view.queue.branch),
        external_id=view.entry.id,
        status=_status(view),
        title=headings.title(view),
        summary=_summary(view),
        url=None if pages is None else f"{pages}/pull/{view.entry.pr}",
    )


def check_name(branch: str) -> str:
    """The name of our check run for the queue of this branch."""
    return f"Headgate ({branch})"


def _status(view: PullRequestText) -> CheckReportStatus:
    entry = view.entry
    if entry.state is EntryState.MERGED and entry.reason is Reason.MERGED_BY_HAND:
        return CheckReportStatus.NEUTRAL
    if entry.state is EntryState.CANCELLED and _is_by_a_person(view):
        return CheckReportStatus.CANCELLED
    return _STATUS[entry.state]


def _is_by_a_person(view: PullRequestText) -> bool:
    asked = view.entry.reason in SUBMITTED and view.situation.by.kind is ActorKind.PERSON
    return asked or view.entry.reason in _BY_A_PERSON


def _summary(view: PullRequestText) -> str:
    pieces = [bodies.body(view)]
    if view.entry.state not in FINAL:
        pieces.append(_written(_required(view), view))
        pieces.append(_written(_impacted(view), view))
        following = _written(upcoming.what_next(view.explained.next, view.situation.wanted), view)
        pieces.append(f"**What happens next:** {following}" if following else "")
    return "\n\n".join(each for each in pieces if each)[:SUMMARY_CHARACTERS_MAX]


def _required(view: PullRequestText) -> Phrase:
    if view.entry.state is EntryState.NOT_READY:
        return Phrase()  # its body names them already
    return phrases.sentence(bodies.required(view))


def _impacted(view: PullRequestText) -> Phrase:
    """What it touches, where that decides whom it meets."""
    touched = view.entry.touches
    if view.queue.config.mode is not Mode.PARALLEL or touched is None:
        return Phrase()
    if touched.everything:
        return phrase("Impacted targets: all.")
    names = [phrase("{}", name) for name in sorted(touched.names)]
    listed = phrases.listed(names, TARGETS_SHOWN_MAX) if names else phrase("none")
    return phrase("Impacted targets: {}.", listed)


def _written(text: Phrase, view: PullRequestText) -> str:
    return markdown.markdown(text, view.links)
