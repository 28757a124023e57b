"""What an entry still waits for: one text per condition code (ENGINE.md 16).

A text is the condition as a clause that is true once it is met; while it is open, what is
the case instead stands behind it in parentheses. Lists put ✓ or ○ before it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from service.mergequeue import verdict
from service.mergequeue.explain import Condition, ConditionCode, Next, NextEvent
from service.mergequeue.model import MergeQueue, Run
from service.mergequeue.reasons import Reason
from service.mergequeue.states import EntryState
from service.vocabulary import CheckOutcome
from service.wording import holds, markdown, phrases, readiness, times
from service.wording.phrases import Code, Page, Phrase, phrase
from service.wording.situation import Wanted
from service.wording.view import PullRequestText

Text = Callable[[Condition, MergeQueue], Phrase]


@dataclass(frozen=True, slots=True)
class RequiredCheck:
    """One row of the table of required checks: the name with its page, and what it says."""

    check: Phrase
    result: Phrase


def message(condition: Condition, queue: MergeQueue) -> str:
    """The condition as a plain sentence (API.md 4.3, `conditions[].text`)."""
    return markdown.plain(phrases.sentence(clause(condition, queue)))


def clause(condition: Condition, queue: MergeQueue) -> Phrase:
    """The condition, and while it is open what is the case instead."""
    return CONDITIONS[condition.code](condition, queue)


def next_message(following: NextEvent | None) -> str:
    """What has to happen next, as a plain sentence (API.md 4.3, `next.what`)."""
    return markdown.plain(what_next(following))


def what_next(following: NextEvent | None) -> Phrase:
    """What has to happen next, as a sentence; empty when nothing has to."""
    return NEXT[following.what](following) if following else Phrase()


def shown(view: PullRequestText) -> list[Condition]:
    """The conditions that a list shows: all that are open, and what was met before them."""
    return list(view.explained.conditions)


def first_open(view: PullRequestText) -> Phrase:
    """The first thing that is waited for; empty when nothing is."""
    waits = [each for each in view.explained.conditions if not each.met]
    return clause(waits[0], view.queue) if waits else Phrase()


def open_in_brief(view: PullRequestText) -> Phrase:
    """What keeps it from entering, in a few words each."""
    waits = [
        readiness.brief(_wanted(each, view.queue))
        for each in view.explained.conditions
        if not each.met and each.code in _READINESS
    ]
    return phrases.listed(waits, len(waits)) if waits else phrase("its turn to enter")


def awaited(view: PullRequestText) -> tuple[int, ...]:
    """Pull requests ahead that are to be decided before this one, in order, each once."""
    waits = [
        pr
        for each in view.explained.conditions
        if not each.met and each.code in _AHEAD
        for pr in each.prs
    ]
    return tuple(dict.fromkeys(waits))


def required_checks(run: Run) -> list[RequiredCheck]:
    """Each required check of the run with what its report says now."""
    found = []
    for one in verdict.standings_of(run):
        name = Code(one.required.name)
        check = Phrase((Page(name, one.named.url) if one.named.url else name,))
        result = f"{_GLYPHS[one.outcome]} {OUTCOMES[one.outcome]}"
        found.append(RequiredCheck(check, Phrase((result,))))
    return found


def _wanted(condition: Condition, queue: MergeQueue) -> Wanted:
    code = _READINESS[condition.code]
    return Wanted(code, queue.branch, condition.name, condition.word)


def _ready(condition: Condition, queue: MergeQueue) -> Phrase:
    return readiness.goal(_wanted(condition, queue))


def _but(words: Phrase, condition: Condition, now_so: Phrase) -> Phrase:
    if condition.met or not now_so.parts:
        return words
    return words + phrase(" ({})", now_so)


def _running(condition: Condition, queue: MergeQueue) -> Phrase:
    return _but(phrase("the queue is running"), condition, _state_of(queue))


def _lands(condition: Condition, queue: MergeQueue) -> Phrase:
    return _but(phrase("the queue merges what has passed"), condition, _state_of(queue))


def _state_of(queue: MergeQueue) -> Phrase:
    return Phrase((f"it is {holds.STATE_NOW[queue.state]}",))


def _no_hold(condition: Condition, queue: MergeQueue) -> Phrase:
    if condition.met:
        return phrase("nothing holds the queue")
    held = [hold for hold in queue.holds if hold.id == condition.name]
    reason = held[0].reason.value if held else condition.name
    return phrase("the hold {} is lifted", reason)


def _no_conflict_ahead(condition: Condition, _: MergeQueue) -> Phrase:
    if condition.met or not condition.prs:
        return phrase("no conflict with a PR ahead")
    return phrase("no conflict with {}", phrases.pulls(condition.prs))


def _turn(condition: Condition, _: MergeQueue) -> Phrase:
    before = condition.count or len(condition.prs)
    first = phrases.counted(before, "PR goes first", "PRs go first")
    return _but(phrase("it is its turn"), condition, first if before else Phrase())


def _startable(condition: Condition, _: MergeQueue) -> Phrase:
    are = "is" if len(condition.prs) == 1 else "are"
    late = phrase("{} " + are + " not yet", phrases.pulls(condition.prs))
    words = phrase("everything ahead is being tested")
    return _but(words, condition, late if condition.prs else Phrase())


def _slot(condition: Condition, _: MergeQueue) -> Phrase:
    used = Phrase()
    if condition.total is not None:
        used = phrase("{} of {} in use", condition.count or 0, condition.total)
    if condition.prs:
        used += phrase(" by {}", phrases.pulls(condition.prs))
    return _but(phrase("a test slot is free"), condition, used)


def _status(condition: Condition, _: MergeQueue) -> Phrase:
    name: Code | Page = Code(condition.name)
    if condition.url:
        name = Page(Code(condition.name), condition.url)
    word = Phrase((condition.word,)) if condition.word in _WORDS else Phrase()
    return _but(phrase("check {} passes", name), condition, word)


def _decided(condition: Condition, _: MergeQueue) -> Phrase:
    if condition.met or not condition.prs:
        return phrase("everything ahead is decided")
    are = "is" if len(condition.prs) == 1 else "are"
    return phrase("{} ahead " + are + " decided", phrases.pulls(condition.prs))


def _ahead_landed(condition: Condition, _: MergeQueue) -> Phrase:
    if condition.met or not condition.prs:
        return phrase("everything ahead is merged")
    are = "is" if len(condition.prs) == 1 else "are"
    return phrase("{} ahead " + are + " merged or gone", phrases.pulls(condition.prs))


def _landing_free(condition: Condition, _: MergeQueue) -> Phrase:
    now_so = phrase("{} is", phrases.pulls(condition.prs)) if condition.prs else Phrase()
    return _but(phrase("no other PR is being merged"), condition, now_so)


def _fixed(words: str) -> Text:
    return lambda _, __: phrase(words)


_READINESS: dict[ConditionCode, Reason] = {
    code: Reason(code.value) for code in ConditionCode if code.value in set(readiness.GOALS)
}

CONDITIONS: dict[ConditionCode, Text] = {
    **dict.fromkeys(_READINESS, _ready),
    ConditionCode.QUEUE_RUNNING: _running,
    ConditionCode.NO_HOLD: _no_hold,
    ConditionCode.NO_CONFLICT_AHEAD: _no_conflict_ahead,
    ConditionCode.ITS_TURN: _turn,
    ConditionCode.BASE_STARTABLE: _startable,
    ConditionCode.FREE_SLOT: _slot,
    ConditionCode.BRANCH_BUILT: _fixed("the test branch is made"),
    ConditionCode.STATUS_PASSED: _status,
    ConditionCode.EVIDENCE_RECEIVED: _fixed("the test results of the failure are in"),
    ConditionCode.AHEAD_DECIDED: _decided,
    ConditionCode.QUEUE_LANDS: _lands,
    ConditionCode.AHEAD_LANDED: _ahead_landed,
    ConditionCode.STILL_READY: _fixed("it is still ready to be merged"),
    ConditionCode.LANDING_FREE: _landing_free,
}
"""Every condition."""

_AHEAD = frozenset({ConditionCode.AHEAD_DECIDED, ConditionCode.AHEAD_LANDED})

NEXT: dict[Next, Callable[[NextEvent], Phrase]] = {}
"""Every kind of next event."""

OUTCOMES: dict[CheckOutcome | None, str] = {
    None: "not reported yet",
    CheckOutcome.RUNNING: "running",
    CheckOutcome.PASSED: "passed",
    CheckOutcome.FAILED: "failed",
    CheckOutcome.INTERRUPTED: "stopped without a result",
    CheckOutcome.BLOCKED: "waits for somebody's approval",
    CheckOutcome.UNKNOWN: "says something that Headgate does not know",
}
"""What a report says, None for no report."""

_GLYPHS: dict[CheckOutcome | None, str] = {
    None: "○",
    CheckOutcome.RUNNING: "⏳",
    CheckOutcome.PASSED: "✓",
    CheckOutcome.FAILED: "✗",
    CheckOutcome.INTERRUPTED: "⚠️",
    CheckOutcome.BLOCKED: "⏸",
    CheckOutcome.UNKNOWN: "⚠️",
}
