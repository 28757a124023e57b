"""The conditions that an entry waits for, one text per condition code, and what comes next.

A text is the condition as a clause that is true once it is met; while it is open, what is the case
instead stands behind it in parentheses. Lists put ✓ or ○ before it. Why a risky pull request is
tested alone first or is not: docs/design/testing.md 11.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from service.mergequeue.engine.checked import Ended
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining.conditions import (
    MISSING,
    OWN,
    REPEATED,
    THROTTLED,
    UNANSWERED,
    Condition,
    ConditionCode,
    Next,
    NextEvent,
)
from service.mergequeue.engine.explaining.risks import Why
from service.mergequeue.engine.model import Hold, MergeQueue
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.reasons import BREAKER_HOLDS, NEEDS, HoldReason, Reason
from service.mergequeue.engine.state.holds import stops_landings
from service.mergequeue.engine.states import LANDS, EntryState
from service.mergequeue.reasons.record import Listed, WhoMustAct
from service.mergequeue.wording import checked_names, foreseen, holds, readiness, reporters
from service.mergequeue.wording.situation import PullRequestText, UnmetCondition
from service.text import markdown, phrases
from service.text.phrases import Code, Page, Phrase, phrase
from service.vocabulary import CheckOutcome

Text = tuple[str, str] | Callable[[Condition, MergeQueue], Phrase]
"""Templates for a met condition and for one that waits for pull requests, or a function."""

_ADMITTED = (
    f"it enters the line at once only while {100 * constants.ADMITTED_FREE_MIN:g} % of the test "
    f"slots are free and it is expected to disturb at most {constants.ADMITTED_DISTURBED_MAX:g} PR "
    f"by failing, or at most {constants.ADMITTED_FAILURES_MAX:g} failures are expected of all PRs "
    "under test"
)

_IN_THE_LINE: dict[Why, str] = {
    Why.IDLE_LINE: (
        f"no other PR waited for the line, and at most {constants.ADMITTED_FAILURES_MAX:g} "
        "failures were expected of all PRs under test"
    ),
    Why.URGENT: "it is urgent",
    Why.STACKED: "its head contains the PRs below it in its stack",
}
"""Why a risky pull request is not tested alone first."""


def message(condition: Condition, queue: MergeQueue) -> str:
    """The condition as a plain sentence."""
    return markdown.plain(phrases.sentence(clause(condition, queue)))


def clause(condition: Condition, queue: MergeQueue) -> Phrase:
    """Return the condition; while it is open, with the present situation in parentheses."""
    if isinstance(condition.code, Reason):
        return _ready(condition, condition.code, queue)
    text = CONDITIONS[condition.code]
    if not isinstance(text, tuple):
        return text(condition, queue)
    met, still_open = text
    words = met if condition.met or not condition.prs else still_open
    return phrases.filled(words, lambda name: _FIELDS[name](condition.prs))


def lines(view: PullRequestText) -> list[tuple[bool, Phrase]]:
    """Return the rows of a checklist: whether each is met, and its clause."""
    found: list[tuple[bool, Phrase]] = []
    told: set[Reason] = set()
    for each in view.explained.conditions:
        if isinstance(each.code, Reason) and not each.met:
            if each.code in told:
                continue
            told.add(each.code)
            unmet = [one for one in view.situation.unmet if one.code is each.code]
            found.extend((False, readiness.goal(one)) for one in unmet)
        elif isinstance(each.code, ConditionCode) or NEEDS[each.code].listed is Listed.ALWAYS:
            found.append((each.met, clause(each, view.queue)))
    return found


def first_open(view: PullRequestText) -> Phrase:
    """The first thing that is waited for; empty when nothing is."""
    waits = _open(view)
    return clause(waits[0], view.queue) if waits else Phrase()


def open_in_brief(view: PullRequestText) -> Phrase:
    """Return what keeps it from entering, in a few words each."""
    waits = [readiness.brief(each) for each in view.situation.unmet]
    return phrases.listed(waits, len(waits)) if waits else phrase("its turn to enter")


def awaited(view: PullRequestText) -> tuple[int, ...]:
    """Return the pull requests ahead that must be decided before this one, in order, each once."""
    waits = [pr for each in _open(view) if each.code in _AHEAD for pr in each.prs]
    return tuple(dict.fromkeys(waits))


def successors(view: PullRequestText) -> tuple[int, ...]:
    """Pull requests tested on top of it whose pass would still clear it."""
    codes = {ConditionCode.SUCCESSORS_DECIDED}
    return tuple(pr for each in _open(view) if each.code in codes for pr in each.prs)


def latest_start(view: PullRequestText) -> datetime | None:
    """Return when its batch starts even if not full; None if it waits for something else first."""
    waits = _open(view)
    return waits[0].at if waits and waits[0].code is ConditionCode.BATCH_COMPLETE else None


def stopped_word(view: PullRequestText) -> str:
    """Return a heading's word for a queue that is stopped for this entry; empty if it is not."""
    codes = {each.code for each in _open(view)}
    if codes & {ConditionCode.QUEUE_RUNNING, ConditionCode.QUEUE_LANDS}:
        return holds.STATE_WORDS[view.queue.state]
    return "on hold" if _stopping(view) else ""


def stopped(view: PullRequestText) -> Phrase:
    """Return what stops the queue for this entry, in sentences; empty if it is not stopped.

    For an entry under test: what keeps it from being merged once it has passed.
    """
    if view.entry.state is EntryState.TESTING:
        return _landing_stopped(view)
    codes = {each.code for each in _open(view)}
    state = Phrase()
    if codes & {ConditionCode.QUEUE_RUNNING, ConditionCode.QUEUE_LANDS}:
        state = holds.state_text(view.queue, view.now)
    held = holds.texts(_stopping(view), view.queue.branch, view.now)
    return phrases.joined([state, held])


def _landing_stopped(view: PullRequestText) -> Phrase:
    state = Phrase() if view.queue.state in LANDS else holds.state_text(view.queue, view.now)
    found = stops_landings(view.queue)
    return phrases.joined([state, holds.texts(found, view.queue.branch, view.now)])


def _open(view: PullRequestText) -> list[Condition]:
    return [each for each in view.explained.conditions if not each.met]


def _stopping(view: PullRequestText) -> list[Hold]:
    unmet = {each.name for each in _open(view) if each.code is ConditionCode.NO_HOLD}
    return [hold for hold in view.queue.holds if hold.id in unmet]


def _ready(condition: Condition, code: Reason, queue: MergeQueue) -> Phrase:
    state = " ".join(map(str, condition.prs)) if code is Reason.STACKED else ""
    until = condition.at if code is Reason.NOT_BEFORE else None
    if code is Reason.WAITS_FOR_RULE:
        state = condition.word
        until = condition.at if condition.who_must_act is WhoMustAct.NOBODY else None
    unmet = UnmetCondition(code, queue.branch, condition.name, state, until=until)
    return readiness.met(unmet) if condition.met else readiness.goal(unmet)


def _still_ready(condition: Condition, queue: MergeQueue) -> Phrase:
    if condition.met or not condition.word:
        return phrase("it is still ready to be merged")
    goal = readiness.goal(UnmetCondition(Reason(condition.word), queue.branch, condition.name))
    if not condition.prs:
        return goal
    other = phrases.pulls(condition.prs)
    return phrase("{}, which goes first or together with it, is ready again: {}", other, goal)


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


def _no_hold(condition: Condition, _: MergeQueue) -> Phrase:
    if condition.met:
        return phrase("the queue is not on hold")
    if not condition.word:
        return phrase("Headgate has read the branch and its rules")
    words = Phrase((f"the hold “{condition.word.replace('_', ' ')}” on the queue ends",))
    if HoldReason(condition.word) not in BREAKER_HOLDS:
        return words
    return _but(words, condition, _tries(condition))


def _tries(condition: Condition) -> Phrase:
    """Return which pull requests are tested to end the hold, and when the next test begins."""
    found = []
    if condition.prs:
        are = phrases.are(condition.prs)
        found.append(phrase(f"{{}} {are} being tested now", phrases.few(condition.prs)))
    if condition.at is not None:
        at = phrases.moment(condition.at, condition.at)
        found.append(phrase("the next test begins at {}", at))
    return phrases.joined(found, "; ")


def _turn(condition: Condition, queue: MergeQueue) -> Phrase:
    before = condition.count or len(condition.prs)
    if queue.config.mode is Mode.PARALLEL and condition.prs:
        verbs = ("shares", "goes") if len(condition.prs) == 1 else ("share", "go")
        words = f"{{}} {verbs[0]} impacted targets with it and {verbs[1]} first"
        first = phrase(words, phrases.few(condition.prs))
    else:
        first = phrases.counted(before, "PR goes first", "PRs go first")
    return _but(phrase("it is its turn"), condition, first if before else Phrase())


def _share(condition: Condition, _: MergeQueue) -> Phrase:
    """The share in words: "your share: 3 of 8 slots, next turn in about 4 min"."""
    share = phrase("your share: {} of {} slots", condition.count or 0, condition.total or 0)
    if condition.word == "0":
        share += phrase(", next turn now")
    elif condition.word:
        share += phrase(", next turn in about {} min", int(condition.word))
    return phrase("it is its submitter's turn ({})", share)


def _few_runs(condition: Condition, _: MergeQueue) -> Phrase:
    words = phrase("at most {} test runs are under way", condition.total or 0)
    why = "{} are; this PR impacts every target, so a failure in any of them restarts its tests"
    return _but(words, condition, phrase(why, condition.count or 0))


def _few_on_all(condition: Condition, _: MergeQueue) -> Phrase:
    number = condition.total or 0
    words = phrase("fewer than {} PRs are tested on {}", number, phrases.few(condition.prs))
    why = "{} are; it impacts every target, so its failure would restart their tests"
    return _but(words, condition, phrase(why, condition.count or 0))


def _line_passes(condition: Condition, _: MergeQueue) -> Phrase:
    words = phrase("everything ahead passes with a chance of {} %", condition.total or 0)
    why = "it is {} % now; this PR is tested alone until then, or until it passes"
    return _but(words, condition, phrase(why, condition.count or 0))


def _batch(condition: Condition, _: MergeQueue) -> Phrase:
    if condition.met and (condition.count or 0) < (condition.total or 0):
        return phrase("its batch does not wait for more PRs")
    so_far = phrase("{} of {} so far", condition.count or 0, condition.total or 0)
    if condition.prs:
        so_far += phrase(", with {}", phrases.few(condition.prs))
    return _but(phrase("its batch is complete"), condition, so_far)


def _startable(condition: Condition, queue: MergeQueue) -> Phrase:
    late = phrase(f"{{}} {phrases.are(condition.prs)} not yet", phrases.few(condition.prs))
    shares = " that shares impacted targets with it"
    which = shares if queue.config.mode is Mode.PARALLEL else ""
    words = phrase("everything ahead" + which + " is being tested")
    return _but(words, condition, late if condition.prs else Phrase())


def _slot(condition: Condition, _: MergeQueue) -> Phrase:
    used = Phrase()
    if condition.total is not None:
        used = phrase("{} of {} in use", condition.count or 0, condition.total)
    if condition.prs:
        used += phrase(" by {}", phrases.few(condition.prs))
    return _but(phrase("a test slot is free"), condition, used)


def _built(condition: Condition, _: MergeQueue) -> Phrase:
    return _but(phrase("the test branch is created"), condition, _limit(condition))


def _limit(condition: Condition) -> Phrase:
    """That the provider's limit makes it wait, and until when; empty where it does not."""
    if condition.word != THROTTLED or condition.at is None:
        return Phrase()
    return phrase(
        "GitHub's rate limit is used up; the next try is at {}",
        phrases.moment(condition.at, condition.at),
    )


def _status(condition: Condition, _: MergeQueue) -> Phrase:
    name: Code | Page = Code(condition.name)
    if condition.url:
        name = Page(Code(condition.name), condition.url)
    outcome = None if condition.word in ("", MISSING) else CheckOutcome(condition.word)
    if condition.met and outcome in _MET_OTHERWISE:
        return phrase("check {} " + checked_names.ENDINGS[_MET_OTHERWISE[outcome]], name)
    now_so = Phrase((checked_names.OUTCOMES[outcome],))
    if condition.doom is not None:
        now_so = phrase("it {}", foreseen.clause(condition.doom))
    if condition.foreign is not None:
        now_so = phrase("{} {}", Code(condition.name), reporters.reported(condition.foreign))
    return _but(phrase("check {} passes", name), condition, now_so)


_MET_OTHERWISE: Mapping[CheckOutcome | None, Ended] = {
    CheckOutcome.SKIPPED: Ended.SKIPPED,
    CheckOutcome.FAILED: Ended.EXCUSED,
}
"""The end of a required check that counts although it did not pass."""


def _successors(condition: Condition, _: MergeQueue) -> Phrase:
    if condition.met or not condition.prs:
        return phrase("no remaining test run on top of it can clear it")
    are = phrases.are(condition.prs)
    words = phrase(f"{{}}, tested on top of it, {are} decided", phrases.few(condition.prs))
    levels = Phrase()
    if condition.total is not None and condition.total > 1:
        levels = phrase("; {} of {} levels failed", condition.count or 0, condition.total)
    return words + phrase(" (a pass clears this PR too{})", levels)


def _search(condition: Condition, _: MergeQueue) -> Phrase:
    proven, failing = condition.count or 0, condition.total or len(condition.prs)
    suspects = condition.prs[proven:failing]
    if not suspects:
        return phrase("the cause is found")
    if condition.met:
        return phrase("the search for the cause has only {} left", phrases.pulls(suspects))
    where = [phrase("among {}", phrases.few(suspects))]
    if proven:
        where.append(phrase("{} passed", phrases.few(condition.prs[:proven])))
    if condition.runs:
        runs = phrases.counted(condition.runs, "test run", "test runs")
        where.append(phrase("{} under way", runs))
    return phrase("the cause is found ({})", phrases.joined(where, "; "))


def _confirmed(condition: Condition, _: MergeQueue) -> Phrase:
    whose = phrase(" of {}", phrases.pulls(condition.prs)) if condition.prs else Phrase()
    if condition.word != REPEATED:
        return phrase("a second test run has confirmed or cleared the failure") + whose
    share = condition.count or 100
    part = phrase(" (about {} % of the time of a test)", share) if share < 100 else Phrase()
    again = phrase("a second run of the failed checks alone{}", part)
    return again + phrase(" has confirmed or cleared the failure") + whose


def _landing_free(condition: Condition, _: MergeQueue) -> Phrase:
    if not condition.met and condition.word == OWN:
        return phrase("its merge, which is under way, is done")
    if not condition.met and condition.word == THROTTLED:
        return _but(phrase("its merge is done"), condition, _limit(condition))
    if not condition.met and condition.word == UNANSWERED:
        return _but(phrase("the merge under way is done"), condition, _takeover(condition))
    now_so = Phrase()
    if condition.prs:
        now_so = phrase(f"{{}} {phrases.are(condition.prs)}", phrases.pulls(condition.prs))
    return _but(phrase("no other PR is being merged"), condition, now_so)


def _takeover(condition: Condition) -> Phrase:
    """That the instance that merges stopped answering, and when another takes over."""
    stopped = phrase(
        "the Headgate instance that merges {} stopped answering", phrases.few(condition.prs)
    )
    if condition.at is None:
        return stopped
    at = phrases.moment(condition.at, condition.at)
    return stopped + phrase("; another one takes over at {}", at)


def _others_merge(condition: Condition, _: MergeQueue) -> Phrase:
    words = phrase("others merge it, because this queue is in shadow and merges nothing")
    if condition.since is None:
        return words
    at = phrases.moment(condition.since, condition.since)
    return words + phrase(" (it would have merged this PR at {})", at)


_FIELDS: dict[str, Callable[[Sequence[int]], Phrase]] = {
    "prs": phrases.pulls,
    "any_pr": lambda prs: phrases.pulls(prs, "or"),
    "are": lambda prs: Phrase((phrases.are(prs),)),
}

_RESULTS_ARE_IN = "the results of the failed tests have arrived"


def _alone_first(condition: Condition, _: MergeQueue) -> Phrase:
    """Return where a risky pull request is tested, alone first or in the line, and why."""
    why = Why(condition.word or Why.RISKY)
    if why is Why.ALONE_TOO:
        return phrase(
            "it is tested in the line and alone at the same time (the history of the queue does "
            "not say yet which PRs will fail)"
        )
    chance = phrase("it fails with a chance of {} %", condition.count or 0)
    if why in _IN_THE_LINE:
        words = "it is tested in the line at once ({}, but " + _IN_THE_LINE[why] + ")"
        return phrase(words, chance)
    alone = phrase("it is tested alone first")
    if why is Why.HAS_FAILED:
        alone = phrase("it is tested alone until it passes or is rejected")
    reason = phrase("{}, above the limit of {} %", chance, condition.total or 0)
    if why is Why.OTHERS_WAIT:
        verb = "waits" if len(condition.prs) == 1 else "wait"
        reason += phrase(f", and {{}} {verb} for the line", phrases.few(condition.prs))
    elif why is Why.LINE_BUSY:
        reason += phrase(", and " + _ADMITTED)
    elif why is Why.HAS_FAILED:
        reason = phrase("a test run with it failed")
    if condition.prs and why is not Why.OTHERS_WAIT:
        alone = phrase("it is tested with {}, apart from the line", phrases.few(condition.prs))
    return alone + phrase(" ({})", reason)


def _followers(condition: Condition, _: MergeQueue) -> Phrase:
    """Return the runs that a failed group waits for in the line, and why it waits."""
    if condition.met or not condition.prs:
        return phrase("no test run on top of it is awaited")
    are = phrases.are(condition.prs)
    words = phrase(f"{{}}, tested on top of it, {are} decided", phrases.few(condition.prs))
    why = "a pass clears this PR too; its failure is real with a chance of {} %, and waiting costs "
    why += "less than restarting their tests"
    return words + phrase(f" ({why})", condition.count or 0)


CONDITIONS: dict[ConditionCode, Text] = {
    ConditionCode.QUEUE_RUNNING: _running,
    ConditionCode.NO_HOLD: _no_hold,
    ConditionCode.NO_CONFLICT_AHEAD: (
        "no PR ahead is known to be in conflict with it",
        "the conflict with {any_pr} is gone",
    ),
    ConditionCode.ITS_TURN: _turn,
    ConditionCode.FAIR_SHARE: _share,
    ConditionCode.FEW_RUNS: _few_runs,
    ConditionCode.FEW_ON_ALL: _few_on_all,
    ConditionCode.LINE_PASSES: _line_passes,
    ConditionCode.BATCH_COMPLETE: _batch,
    ConditionCode.BASE_STARTABLE: _startable,
    ConditionCode.FREE_SLOT: _slot,
    ConditionCode.ALONE_FIRST: _alone_first,
    ConditionCode.BRANCH_BUILT: _built,
    ConditionCode.STATUS_PASSED: _status,
    ConditionCode.EVIDENCE_RECEIVED: (_RESULTS_ARE_IN, _RESULTS_ARE_IN),
    ConditionCode.AHEAD_DECIDED: (
        "everything ahead is decided",
        "{prs} ahead {are} decided",
    ),
    ConditionCode.SUCCESSORS_DECIDED: _successors,
    ConditionCode.CAUSE_AHEAD: (
        "no PR ahead has caused its failure",
        "{prs} ahead {are} decided (the failed tests point there, and not to this PR)",
    ),
    ConditionCode.SUSPECTS_DECIDED: (
        "no PR ahead may have caused its failure",
        "{prs} ahead {are} decided (the failed tests show that the cause is there or in this PR)",
    ),
    ConditionCode.FOLLOWERS_AWAITED: _followers,
    ConditionCode.BISECTION_DONE: _search,
    ConditionCode.CONFIRMED: _confirmed,
    ConditionCode.QUEUE_LANDS: _lands,
    ConditionCode.AHEAD_LANDED: (
        "everything ahead is merged",
        "{prs} ahead {are} merged or gone",
    ),
    ConditionCode.STILL_READY: _still_ready,
    ConditionCode.LANDING_FREE: _landing_free,
    ConditionCode.OTHERS_MERGE: _others_merge,
}
"""Every condition but those of readiness."""

_AHEAD = frozenset({ConditionCode.AHEAD_DECIDED, ConditionCode.AHEAD_LANDED})


def next_message(following: NextEvent | None, unmet: Sequence[UnmetCondition] = ()) -> str:
    """Return what has to happen next, as a plain sentence of the API's `next.what`."""
    return markdown.plain(what_next(following, unmet))


def what_next(following: NextEvent | None, unmet: Sequence[UnmetCondition] = ()) -> Phrase:
    """Return what has to happen next, as a sentence; empty if there is no next event.

    `unmet` is what the pull request still needs: news of it is told by name.
    """
    if following is None:
        return Phrase()
    if following.what is Next.FACTS_CHANGE and unmet:
        return phrases.sentence(readiness.steps(unmet))
    words = NEXT[following.what]
    if isinstance(words, tuple):
        words = words[min(len(following.prs), 2)]
    fields = {"prs": phrases.pulls(following.prs), "resume": phrase("{}", "/merge resume")}
    return phrases.filled(words, fields.get)


NEXT: dict[Next, str | tuple[str, str, str]] = {
    Next.FACTS_CHANGE: "An open condition is met.",
    Next.QUEUE_RESUMES: "A maintainer resumes the queue ({resume}).",
    Next.MODE_CHANGES: "The running tests end, and the queue changes its mode.",
    Next.HOLD_LIFTED: "The hold on the queue ends.",
    Next.CONFLICT_CLEARS: (
        "The PR in conflict is merged or leaves the queue.",
        "{prs} is merged or leaves the queue.",
        "One of {prs} is merged or leaves the queue.",
    ),
    Next.RUN_STARTS: (
        "A test run ahead starts.",
        "The test run of {prs} starts.",
        "The test runs of {prs} start.",
    ),
    Next.BATCH_FILLS: "The batch fills up, or its maximum wait ends.",
    Next.SLOT_FREES: "A test run ends.",
    Next.BRANCH_BUILT: "Headgate creates the test branch.",
    Next.CHECK_REPORTS: "CI reports a required check.",
    Next.FAILURE_COUNTS: "The failed check counts, unless CI reports it anew.",
    Next.EVIDENCE_ARRIVES: "The test results of the failure arrive.",
    Next.AHEAD_DECIDED: (
        "The PRs ahead are decided.",
        "{prs} passes, fails or leaves the queue.",
        "{prs} pass, fail or leave the queue.",
    ),
    Next.SUCCESSOR_ENDS: (
        "A test run on top of it ends.",
        "The test run of {prs} ends.",
        "The test runs of {prs} end.",
    ),
    Next.PROBE_ENDS: "A test run of the search for the cause ends.",
    Next.CONFIRMATION_ENDS: "The second test run ends.",
    Next.LANDING_ENDS: (
        "The merge that is under way ends.",
        "{prs} is merged or leaves the queue.",
        "{prs} are merged or leave the queue.",
    ),
    Next.OTHERS_MERGE: "The other queue or a person merges it.",
    Next.RETRY: "Headgate retries automatically.",
}
"""Every kind of next event; of three texts by how many pull requests it is about: 0, 1, more."""
