"""The body of the status comment and of the check run's summary, and their headings."""

from typing import assert_never

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Named, Run
from service.mergequeue.engine.outputs import EntryMoved, Recorded
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase
from service.mergequeue.reasons.testing import FAILED
from service.mergequeue.wording import (
    aftermath,
    checked_names,
    conditions,
    endings,
    failed_tests,
    foreseen,
    history,
    holds,
    readiness,
    reasons,
    undone,
)
from service.mergequeue.wording.situation import PullRequestText, situation_after
from service.text import markdown, phrases, times
from service.text.phrases import Code, Phrase, phrase

_MET, _OPEN = "✓", "○"


def body(view: PullRequestText, check_run: str | None = None) -> str:
    """The body for the entry's state, as Markdown paragraphs.

    `check_run` is the name of the one that shows the result of each check, None if this text does.
    """
    state = view.entry.state
    match state:
        case EntryState.NOT_READY:
            paragraphs = _not_ready(view)
        case EntryState.PENDING:
            paragraphs = _pending(view)
        case EntryState.TESTING:
            paragraphs = _testing(view, check_run)
        case EntryState.TESTS_PASSED:
            paragraphs = _passed(view)
        case EntryState.PENDING_FAILURE:
            paragraphs = [_undecided(view), _held(view), logs(view)]
        case EntryState.MERGED:
            paragraphs = _merged(view)
        case EntryState.FAILED | EntryState.CANCELLED:
            step = endings.next_step(view.situation)
            cause = phrases.joined([aftermath.how_found(view), verdict(view)])
            paragraphs = [logs(view), _written(cause, view), _written(step, view)]
        case _:
            assert_never(state)
    return "\n\n".join(each for each in (*paragraphs, undone.details(view), tests(view)) if each)


def tests(view: PullRequestText) -> str:
    """Return the failed tests of its run, if they matter in its present state."""
    entry = view.entry
    if entry.state not in _TESTED and not (
        entry.reason.record.mark or entry.reason is Reason.LANDED
    ):
        return ""
    return failed_tests.section(view.tests, view.links, view.now)


def failed_checks(view: PullRequestText) -> tuple[Named, ...]:
    """Return the checks because of which it failed or left; empty if none was the reason."""
    return view.entry.detail.checks if view.entry.reason.record.mark else ()


def logs(view: PullRequestText) -> str:
    """Return the checks in the evidence, each with its result and log; at most five."""
    checks, mark = failed_checks(view), view.entry.reason.record.mark
    if not checks or mark is None:
        return ""
    glyph, did = mark
    lines = [
        f"- {glyph} {markdown.code(each.name)}{_did(each, did, view)}"
        f"{markdown.log(each.url, view.links)}{_after(each, did, view)}"
        for each in checks[: phrases.NAMES_SHOWN_MAX]
    ]
    if len(checks) > len(lines):
        lines.append(f"- and {len(checks) - len(lines)} more")
    return "\n".join(lines)


def _did(check: Named, words: str, view: PullRequestText) -> str:
    if check.doom is not None:
        return f" {_written(foreseen.clause(check.doom), view)}"
    if check.because and words == FAILED[1]:
        return f" was skipped because {markdown.code(check.because)} failed"
    return words


def _after(check: Named, words: str, view: PullRequestText) -> str:
    """Return which jobs had failed before a check, with their logs; empty if none had."""
    if check.after is None or words != FAILED[1]:
        return ""
    return f" after {_written(foreseen.jobs(check.after), view)} had failed"


def verdict(view: PullRequestText) -> Phrase:
    """Return what the verdict on the run says about this pull request; empty without one."""
    cause = view.run.cause if view.run else None
    if view.entry.state is not EntryState.FAILED or cause is None:
        return Phrase()
    if view.entry.reason is Reason.INTERACTION:
        cause = Cause.INTERACTION
    if cause is Cause.PR_FAULT and view.run is not None and not view.run.base_prs:
        return phrase(endings.ALONE, view.queue.branch)
    return endings.verdict(cause, view.queue.branch, view.entry.detail.prs)


def checklist(view: PullRequestText) -> str:
    """The conditions of the present state, met and open."""
    return "\n".join(
        f"- {_MET if is_met else _OPEN} {_written(clause, view)}"
        for is_met, clause in conditions.lines(view)
    )


def required(view: PullRequestText) -> Phrase:
    """`required checks: lint and test (branch protection)`."""
    known = view.queue.required
    if known is None or not known.names:
        return Phrase()
    names = phrases.names([each.name for each in known.names])
    return phrase("required checks: {} ({})", names, phrases.source(known.source))


_TESTED = (EntryState.TESTING, EntryState.TESTS_PASSED, EntryState.PENDING_FAILURE)


def _written(text: Phrase, view: PullRequestText) -> str:
    return markdown.markdown(text, view.links)


def _submitted(view: PullRequestText) -> Phrase:
    entry = view.entry
    at = times.clock_time(entry.submitted_at, view.now)
    who = phrases.actor(entry.submitted_by)
    said = phrase("Queued by {} at " + at + " for {}.", who, phrases.commit(entry.head))
    if not entry.priority_rule:
        return said
    name = history.priority_name(entry.priority)
    return said + phrase(f" Its priority is {name}, by rule {{}}.", entry.priority_rule)


def _as_of(view: PullRequestText, what: str) -> Phrase:
    if view.position is None:
        return Phrase()
    return Phrase((f"{what} as of {times.clock_time(view.now, view.now)}.",))


def _held(view: PullRequestText) -> str:
    still = conditions.stopped(view)
    if not still.parts:
        return ""
    return _written(still + phrase(" PRs keep their order."), view)


def _unready(view: PullRequestText) -> str:
    unmet = view.situation.unmet
    if not unmet:
        return ""
    before = phrase("⚠️ It cannot be merged until {}.", readiness.goals(unmet))
    return _written(before, view)


def _not_ready(view: PullRequestText) -> list[str]:
    situation = view.situation
    happened = phrases.sentence(reasons.aside_clause(situation))
    return [
        _written(phrases.joined([happened, reasons.aside_step(situation)]), view),
        "It enters the queue automatically as soon as:",
        checklist(view),
        _written(phrases.sentence(required(view)), view),
        _written(holds.standstill(view.queue, view.now), view),
        _written(_submitted(view), view),
    ]


def _pending(view: PullRequestText) -> list[str]:
    entry = view.entry
    facts = phrases.joined([_submitted(view), _as_of(view, "Place")])
    if entry.held_by:
        return [_written(_conflict(view), view), _held(view), _written(facts, view)]
    again = reasons.restart(view.situation)
    first = _written(again, view) if _has_restarted(view) else ""
    held = _held(view)
    return [first, held or _written(_start(view), view), _written(facts, view)]


def _conflict(view: PullRequestText) -> Phrase:
    ahead, paths = view.entry.held_by, view.entry.detail.paths
    if view.entry.reason is Reason.UNDOES_AHEAD:
        words = (
            "{} {} ahead, and this PR would take back its work. It waits until that has merged or "
            "left the queue. Rebase it then, or comment {} if it is meant."
        )
        options = " ".join(f"--undoes #{number}" for number in ahead)
        are = phrases.are(ahead)
        return phrase(words, phrases.pulls(ahead), are, Code(f"/merge {options}"))
    if len(ahead) == 1:
        one = phrases.pulls(ahead)
        what = phrase("{} is ahead", one)
    else:
        words = "It conflicts with one of {}, which are ahead; GitHub does not say which one"
        what, one = phrase(words, phrases.pulls(ahead)), phrase("that one")
    if paths:
        what += phrase("; both change {}", phrases.names(paths))
    rest = (
        ". If {} merges, this PR needs a rebase; if {} leaves the queue, this PR continues "
        "automatically."
    )
    return what + phrase(rest, one, one)


def _start(view: PullRequestText) -> Phrase:
    waits = conditions.first_open(view)
    until = conditions.latest_start(view)
    late = f", at {times.clock_time(until, view.now)} at the latest" if until else ""
    start = (
        phrase("Testing starts as soon as {}" + late + ".", waits)
        if waits.parts
        else phrase("Testing starts now.")
    )
    if view.left is None:
        return start
    if view.left.overdue:
        left = Phrase((f"{times.remaining(view.left, view.now)}.",))
    else:
        left = Phrase((f"Expected to be merged in {times.span(view.left, view.now)}.",))
    return phrases.joined([start, left])


def _testing(view: PullRequestText, check_run: str | None) -> list[str]:
    run = view.run
    if run is None:
        return [_written(phrases.sentence(reasons.explanation(view.situation)), view)]
    progress = _progress(view, run) if check_run is None else _awaited(view, run, check_run)
    noted = [f"⚠️ {_written(each, view)}" for each in checked_names.of_run(run, view.now)]
    return [
        _failing(view),
        _written(_restarted(view), view),
        _written(_tested(view, run), view),
        _held(view),
        progress,
        *noted,
        _unready(view),
    ]


def _failing(view: PullRequestText) -> str:
    """Return what has failed, before that counts; empty if nothing has."""
    found = view.situation.failing
    return f"❌ {_written(phrases.sentence(reasons.failing(found)), view)}" if found else ""


def _progress(view: PullRequestText, run: Run) -> str:
    if run.phase is RunPhase.BUILDING:
        return _delay(view, run) or "Headgate is creating the test branch."
    return checked_names.progress_table(run, view.links)


def _awaited(view: PullRequestText, run: Run, check_run: str) -> str:
    """Return which checks are awaited; it changes only if the build is delayed."""
    delay = _delay(view, run)
    if delay or not run.required:
        return delay
    names = phrases.names([each.name for each in run.required])
    words = "Required checks: {}, with their results in the check run {}."
    return _written(phrase(words, names, check_run), view)


def _delay(view: PullRequestText, run: Run) -> str:
    """Return why the test branch is not created yet; empty if nothing delays it."""
    if run.phase is not RunPhase.BUILDING:
        return ""
    limits = [one for one in view.queue.holds if one.reason is HoldReason.PROVIDER_LIMIT]
    return _written(holds.texts(limits, view.queue.branch, view.now), view) if limits else ""


def _tested(view: PullRequestText, run: Run) -> Phrase:
    under = phrases.stacked(view.queue.branch, run.base_prs)
    base = phrase("{} on top of {}", phrases.commit(view.entry.head), under)
    others = [pr for pr in run.prs if pr != view.entry.pr]
    if others:
        base += phrase(", together with {}", phrases.pulls(others))
    what = "Place and time" if view.left else "Place"
    return phrases.joined([base + phrase("."), _apart(view, run), _as_of(view, what)])


def _apart(view: PullRequestText, run: Run) -> Phrase:
    """Say what follows unless a check failed, and why the test leaves out some or all ahead."""
    if run.kind is RunKind.SCREEN:
        return phrase("It takes its place in the queue when it passes; no other PR waits for it.")
    stops = " and the queue continues" if conditions.stopped(view).parts else ""
    merges = Phrase((f"It merges automatically if the checks pass{stops}.",))
    if view.situation.failing is not None:
        merges = Phrase()
    if run.config.mode is not Mode.PARALLEL:
        return merges
    left_out = phrase("PRs ahead that share no impacted targets with it are left out.")
    return phrases.joined([left_out, merges])


def _restarted(view: PullRequestText) -> Phrase:
    for recorded in reversed(view.history):
        moved = recorded.event
        if isinstance(moved, EntryMoved) and moved.state is EntryState.PENDING:
            return _again(recorded, moved, view)
    return Phrase()


def _again(recorded: Recorded, moved: EntryMoved, view: PullRequestText) -> Phrase:
    why = reasons.because(situation_after(moved, recorded.actor, view.queue.branch))
    if not why.parts or not _has_restarted(view):
        return Phrase()
    at = times.clock_time(recorded.at, view.now)
    return phrase("Restarted at " + at + " because {}.", why)


def _passed(view: PullRequestText) -> list[str]:
    how = phrases.sentence(reasons.explanation(view.situation))
    ahead, held = conditions.awaited(view), _held(view)
    if ahead:
        leave = "merges or leaves" if len(ahead) == 1 else "have merged or left"
        words = f"It merges{{}} automatically after {{}} {leave} the queue."
        when = phrase(words, _with_unit(view), phrases.pulls(ahead))
    elif view.entry.unmet:
        when = Phrase()
    elif held:
        when = phrase("It merges{} automatically when the queue continues.", _with_unit(view))
    else:
        when = phrase("It merges next{}, automatically.", _with_unit(view))
    facts = phrases.joined([how, when, _as_of(view, "Place")])
    return [_written(facts, view), held, _unready(view)]


def _with_unit(view: PullRequestText) -> Phrase:
    return phrase(" together with {}", phrases.pulls(view.unit)) if view.unit else Phrase()


def _undecided(view: PullRequestText) -> str:
    what = phrases.unlinked(phrases.capitalized(reasons.failure(view.situation)))
    ahead, behind, search = conditions.awaited(view), conditions.successors(view), view.search
    if search is not None and len(search.entries) > 1:
        prs = phrases.pulls([member.pr for member in search.entries])
        far = history.search_progress(search, view.entry.pr)
        rest = phrase(" in the batch of {}. {}", prs, far)
    elif not ahead and behind:
        rest = phrase(
            ". Tests of {} together with this PR are still running. If they pass, this PR counts "
            "as passed too.",
            phrases.pulls(behind),
        )
    elif not ahead:
        rest = phrase(". Headgate is finding out whether this PR is the cause.")
    else:
        it = "it is" if len(ahead) == 1 else "one of them is"
        rest = phrase(
            f". {{}} ahead {phrases.are(ahead)} still being tested. If {it} the cause, this PR is "
            "tested again automatically.",
            phrases.pulls(ahead),
        )
    nothing = phrase("You do not need to do anything.")
    return _written(phrases.joined([what + rest, nothing, _as_of(view, "Place")]), view)


def _merged(view: PullRequestText) -> list[str]:
    note = _written(phrases.sentence(endings.note(view.situation)), view)
    ending = view.entry.reason.record.merged
    if ending is not None and ending.is_only_seen:
        return [note]
    return [note, _written(aftermath.proof(view), view), aftermath.duration(view)]


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
    """State, place and time left as a plain sentence."""
    return markdown.plain(phrases.sentence(phrases.joined(_pieces(view), ", ")))


def place(position: int | None, length: int) -> Phrase:
    """`3rd of 7`; nothing for an entry without a place."""
    return Phrase() if position is None else phrase(times.ordinal(position) + " of {}", length)


def _has_restarted(view: PullRequestText) -> bool:
    """Return whether its tests have begun before."""
    return any(view.entry.restarts.values())


def _pieces(view: PullRequestText) -> list[Phrase]:
    state, target = view.entry.state, view.queue.branch
    at = place(view.position, view.length)
    match state:
        case EntryState.NOT_READY:
            return [phrase("Waiting to enter the queue for {}", target)]
        case EntryState.PENDING:
            return _pending_heading(view)
        case EntryState.TESTING:
            return _testing_pieces(view)
        case EntryState.TESTS_PASSED:
            return [phrase("Tests passed"), at, _before_landing(view)]
        case EntryState.PENDING_FAILURE:
            return [_failed_heading(view), at]
        case EntryState.MERGED:
            return [phrases.capitalized(endings.why(view.situation))]
        case EntryState.FAILED:
            why = phrases.unlinked(phrases.capitalized(endings.why(view.situation)))
            return [why, phrase("removed from the queue")]
        case EntryState.CANCELLED:
            return [phrases.unlinked(phrases.capitalized(endings.removed(view.situation)))]
        case _:
            assert_never(state)


def _pending_heading(view: PullRequestText) -> list[Phrase]:
    at = place(view.position, view.length)
    if view.entry.held_by:
        ahead = phrases.pulls(view.entry.held_by, "or")
        is_undoing = view.entry.reason is Reason.UNDOES_AHEAD
        does = "would take back {}" if is_undoing else "conflicts with {}"
        return [phrase("On hold"), at, phrase(does, ahead)]
    word = Phrase((conditions.stopped_word(view),)) if conditions.stopped_word(view) else Phrase()
    first = "Waiting to be tested again" if _has_restarted(view) else "In the queue"
    return [phrase(first), at, word]


def _testing_pieces(view: PullRequestText) -> list[Phrase]:
    at, found = place(view.position, view.length), view.situation.failing
    if found is None:
        return [_testing_heading(view), at, _time_left(view)]
    failed = phrases.unlinked(reasons.failing_checks(found))
    return [failed, at, reasons.awaited(found)]


def _testing_heading(view: PullRequestText) -> Phrase:
    if view.run is not None and view.run.kind is RunKind.SCREEN:
        return phrase("Testing alone first")
    if view.run is not None and _delay(view, view.run):
        return phrase("Waiting to start tests")
    return phrase("Testing again" if _has_restarted(view) else "Testing")


def _failed_heading(view: PullRequestText) -> Phrase:
    search = view.search
    if search is None or len(search.entries) == 1:
        return phrase("Failed, finding the cause")
    return phrase("A batch of {} failed, splitting it", len(search.entries))


def _time_left(view: PullRequestText) -> Phrase:
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
