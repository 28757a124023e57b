"""The page of one pull request: why it is not merged yet, and what happened to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.dashboard import marks, page_of_queue
from service.dashboard.marks import Mark
from service.dashboard.page_of_queue import LeftRow
from service.mergequeue.api import explanation, responses
from service.mergequeue.engine import outputs
from service.mergequeue.engine.checked import CheckedName
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.model import PRIORITY_NAMES, Entry, MergeQueue
from service.mergequeue.engine.outputs import Event, Recorded
from service.mergequeue.engine.reasons import NOT_READY_ORDER
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations.page_of_pull_request import PageOfPullRequest
from service.mergequeue.reasons.record import WhoMustAct
from service.mergequeue.wording import (
    aftermath,
    bodies,
    checked_names,
    conditions,
    endings,
    failed_tests,
    history,
    notices,
    reasons,
    suspicions,
    what_if,
)
from service.mergequeue.wording.situation import PullRequestText
from service.text import phrases, times
from service.text.phrases import Phrase, phrase


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A required check; `more` says why it counts although it did not simply pass."""

    check: CheckedName
    mark: Mark
    more: Phrase
    ran_on: Phrase
    reported_by: Phrase


def _rows_of(table: Sequence[CheckedName]) -> tuple[CheckedRow, ...]:
    """Return the rows, in the order of the table."""
    return tuple(
        CheckedRow(
            check=one,
            mark=marks.of_checked(one),
            more=checked_names.details(one),
            ran_on=checked_names.ran_on(one),
            reported_by=checked_names.reported_by(one),
        )
        for one in table
    )


EVENTS_MAX = 100
"""Events of the timeline, the newest."""

NEIGHBORS_MAX = 10
"""Pull requests ahead and behind that are named."""

_BEFORE = {reason.value for reason in NOT_READY_ORDER}
_BY_CI = frozenset({ConditionCode.STATUS_PASSED, ConditionCode.EVIDENCE_RECEIVED})
_STARTED = Mark("testing", "testing", "test")
_LANDING = Mark("landing", "merged", "done")
_SEARCH = Mark("search", "cause", "odd")
_OTHER = Mark("event", "todo", "wait")
_SUBMITTED = Mark("submitted", "entering", "wait")


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition of the checklist; `is_now`: the first open one."""

    clause: Phrase
    is_met: bool
    mark: Mark
    is_now: bool
    who: str
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event of the timeline; `by` is empty where Headgate acted by itself."""

    at: datetime
    mark: Mark
    clause: Phrase
    by: str
    run: str | None


@dataclass(frozen=True, slots=True)
class PullRequestPage:
    """Everything on the page; `groups` of the checklist are those with conditions."""

    page: PageOfPullRequest
    mark: Mark
    heading: Phrase
    details: Phrase
    suspicion: Phrase
    next_step: str
    who: str
    groups: tuple[tuple[str, tuple[ConditionRow, ...]], ...]
    events: tuple[EventRow, ...]
    events_more: int
    left: str
    no_left: str
    ended: LeftRow | None
    spent: tuple[tuple[str, str], ...]
    controls: tuple[str, ...]
    what_if: tuple[tuple[str, Phrase], ...]
    checked: tuple[CheckedRow, ...]
    checked_summary: Phrase
    priorities: tuple[str, ...] = tuple(PRIORITY_NAMES)
    trace_lines: int = failed_tests.TRACE_LINES

    @property
    def text(self) -> PullRequestText:
        """The submission with its queue."""
        return self.page.text

    @property
    def ahead(self) -> tuple[int, ...]:
        """The nearest pull requests ahead."""
        return self.page.explained.ahead[-NEIGHBORS_MAX:]

    @property
    def behind(self) -> tuple[int, ...]:
        """The nearest pull requests behind."""
        return self.page.explained.behind[:NEIGHBORS_MAX]

    @property
    def tests(self) -> tuple[tuple[failed_tests.FailedTest, Phrase], ...]:
        """Failed tests of its last run, each with what is known of it in words."""
        return tuple((one, failed_tests.known_of(one)) for one in self.text.tests.shown)

    @property
    def killed(self) -> tuple[Phrase, ...]:
        """A sentence for each test runner of its last run that was killed."""
        return tuple(failed_tests.killed_runners(self.text.tests.killed))


def made_of(page: PageOfPullRequest, now: datetime) -> PullRequestPage:
    """Return the page of this submission."""
    text, entry = page.text, page.text.entry
    explained = page.explained.explained
    is_final = entry.state in FINAL
    shown = text.history[-EVENTS_MAX:]
    following = explained.next
    unmet = responses.situation_of(page.explained.pull_request).unmet
    return PullRequestPage(
        page=page,
        mark=marks.of_entry(entry, is_failing=text.situation.failing is not None),
        heading=bodies.heading(text),
        details=_details(text),
        suspicion=suspicions.sentence(explained.suspicion),
        next_step="" if following is None else conditions.next_message(following, unmet),
        who=_who(page),
        groups=() if is_final else _groups(explained.conditions, text.queue, entry),
        events=tuple(_event(each, text) for each in reversed(shown)),
        events_more=len(text.history) - len(shown),
        left="" if text.left is None or entry.held_by else times.remaining(text.left, now),
        no_left="" if text.left else explanation.eta_unknown_because(page.explained, text.queue),
        ended=page_of_queue.left_row(page.left, text.queue) if is_final else None,
        spent=_spent(text) if is_final else (),
        controls=tuple(each.value for each in notices.possible(text)),
        what_if=() if is_final else what_if.rows(text, now),
        checked=_rows_of(text.evidence),
        checked_summary=phrases.sentence(checked_names.summary(text.checked)),
    )


def _details(text: PullRequestText) -> Phrase:
    """Return the reason in a sentence, what stops it, the verdict, and what to do."""
    situation = text.situation
    if text.entry.state in FINAL:
        return phrases.joined([bodies.verdict(text), endings.next_step(situation)])
    said = [
        phrases.sentence(reasons.explanation(situation)),
        reasons.aside_step(situation),
        conditions.stopped(text),
    ]
    return phrases.joined(said)


def _who(page: PageOfPullRequest) -> str:
    entry = page.text.entry
    who = responses.acting_of(page.explained.pull_request).who
    if who is not WhoMustAct.NOBODY:
        return page_of_queue.who_acts(who, entry)
    acting = [
        one.who_must_act
        for one in page.explained.explained.conditions
        if not one.met and one.who_must_act is not WhoMustAct.NOBODY
    ]
    return page_of_queue.who_acts(acting[0], entry) if acting else ""


def _groups(
    found: Sequence[Condition], queue: MergeQueue, entry: Entry
) -> tuple[tuple[str, tuple[ConditionRow, ...]], ...]:
    first = next((one for one in found if not one.met), None)
    before = [one for one in found if one.code.value in _BEFORE]
    inside = [one for one in found if one.code.value not in _BEFORE]
    groups = (("Before the queue", before), ("In the queue", inside))
    return tuple(
        (name, tuple(_condition(one, queue, entry, is_now=one is first) for one in group))
        for name, group in groups
        if group
    )


def _condition(one: Condition, queue: MergeQueue, entry: Entry, *, is_now: bool) -> ConditionRow:
    who = page_of_queue.who_acts(one.who_must_act, entry)
    if one.who_must_act is WhoMustAct.NOBODY and one.code in _BY_CI:
        who = "CI"
    clause = conditions.clause(one, queue)
    return ConditionRow(
        clause=phrases.capitalized(clause) if one.met else phrase("Waits until {}", clause),
        is_met=one.met,
        mark=marks.CONDITIONS[one.standing],
        is_now=is_now,
        who="" if one.met else who,
        since=one.since,
        until=None if one.met else one.at,
    )


def _event(recorded: Recorded, text: PullRequestText) -> EventRow:
    said = history.clause(recorded, text.queue.branch, text.queue.config, text.history, text.tables)
    return EventRow(
        at=recorded.at,
        mark=_mark_of(recorded.event),
        clause=phrases.capitalized(said),
        by="" if isinstance(recorded.event, outputs.EntrySubmitted) else recorded.actor.login,
        run=getattr(recorded.event, "run", None),
    )


def _mark_of(event: Event) -> Mark:
    match event:
        case outputs.EntryMoved():
            return marks.ENTRIES[event.state]
        case outputs.EntrySubmitted():
            return _SUBMITTED
        case outputs.RunFinished():
            return marks.of_status(event.status)
        case outputs.RunStarted() | outputs.RunBuilt() | outputs.RunRetried():
            return _STARTED
        case outputs.BisectionOpened() | outputs.BisectionNarrowed() | outputs.BisectionClosed():
            return _SEARCH
        case outputs.LandingStarted() | outputs.TipMoved():
            return _LANDING
        case _:
            return _OTHER


def _spent(text: PullRequestText) -> tuple[tuple[str, str], ...]:
    spent = aftermath.time_spent(text.history, text.entry.submitted_at, text.pauses)
    names = {
        "to enter": (EntryState.NOT_READY,),
        "waiting": (EntryState.PENDING,),
        "testing": (EntryState.TESTING, EntryState.PENDING_FAILURE),
        "waiting to merge": (EntryState.TESTS_PASSED,),
    }
    sums = {name: sum((spent.of[each] for each in of), timedelta()) for name, of in names.items()}
    sums["paused"] = spent.paused
    return tuple((name, times.duration(each)) for name, each in sums.items() if each)
