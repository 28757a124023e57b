"""Events of the journal in words: lines of a comment's history, messages of the timeline."""

from collections.abc import Sequence
from typing import assert_never

from service.mergequeue.engine import outputs
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import LandingStopCode
from service.mergequeue.engine.model import PRIORITY_NAMES, Bisection
from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    PlacedWhy,
    Recorded,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.mergequeue.wording import endings, holds, reasons
from service.mergequeue.wording.situation import (
    NO_TABLES,
    PullRequestText,
    Situation,
    Tables,
    situation_after,
)
from service.text import markdown, phrases, times
from service.text.phrases import Phrase, phrase
from service.vocabulary import Channel

LINES_MAX = 200
"""Lines of history in one comment, the newest."""

_CHANNELS = {
    Channel.COMMENT: "comment",
    Channel.CHECKBOX: "checkbox",
    Channel.LABEL: "label",
    Channel.RULE: "rule",
    Channel.BUTTON: "button",
    Channel.DASHBOARD: "dashboard",
    Channel.API: "API",
    Channel.SYSTEM: "Headgate",
}

_PLACED = {
    PlacedWhy.BATCH: "moved next to the other PRs of its batch",
    PlacedWhy.PROVEN: "moved ahead because its tests passed",
    PlacedWhy.SCREENED: "moved ahead of PRs that are tested alone first",
    PlacedWhy.IMPACTS_ALL: "moved next to another PR that impacts every target",
    PlacedWhy.URGENT: "went ahead as urgent",
    PlacedWhy.REJOIN: "rejoined the queue behind the PRs that are being tested",
    PlacedWhy.MENDS: "went first because it mends the branch",
    PlacedWhy.RETURNED: "moved ahead of newer PRs that restart as well",
}


def message(
    recorded: Recorded,
    target: str,
    history: Sequence[Recorded] = (),
    checked: Tables = NO_TABLES,
) -> str:
    """Return the event as a plain sentence, the API's timeline `message`.

    `history` is what happened before it: the steps of a search name pull requests by it. `checked`
    has the required checks of runs.
    """
    said = clause(recorded, target, history=history, checked=checked)
    return markdown.plain(phrases.sentence(said))


def lines(view: PullRequestText) -> list[str]:
    """The history of a submission as list items, oldest first; the newest 200."""
    shown = [each for each in view.history if _is_shown(each, view.history)]
    return [_line(each, view) for each in shown[-LINES_MAX:]]


def clause(
    recorded: Recorded,
    target: str,
    config: QueueConfig | None = None,
    history: Sequence[Recorded] = (),
    checked: Tables = NO_TABLES,
) -> Phrase:
    """Return the event as a clause; with `config`, it mentions the limits involved.

    Without the table of a run in `checked`, that a run passed names no check.
    """
    event = recorded.event
    match event:
        case (
            outputs.EntrySubmitted()
            | outputs.EntryMoved()
            | outputs.EntryUpdated()
            | outputs.EntryPlaced()
        ):
            return _of_entry(recorded, event, (target, config, checked))
        case (
            outputs.RunStarted()
            | outputs.RunBuilt()
            | outputs.RunRetried()
            | outputs.RunFinished()
            | outputs.RunRetired()
        ):
            return _of_run(event, target)
        case outputs.BisectionOpened() | outputs.BisectionNarrowed() | outputs.BisectionClosed():
            return _search_clause(event, history)
        case (
            outputs.LandingStarted()
            | outputs.LandingHalted()
            | outputs.LandingMismatched()
            | outputs.TipMoved()
        ):
            return _of_landing(event, target)
        case _:
            return _of_queue(event, target)


def priority_name(value: int) -> str:
    """`high` for a named priority, else the number."""
    named = {number: name for name, number in PRIORITY_NAMES.items()}
    return named.get(value, str(value))


EntryEvent = (
    outputs.EntrySubmitted | outputs.EntryMoved | outputs.EntryUpdated | outputs.EntryPlaced
)


def _of_entry(
    recorded: Recorded, event: EntryEvent, context: tuple[str, QueueConfig | None, Tables]
) -> Phrase:
    match event:
        case outputs.EntrySubmitted():
            who = phrase("queued by {}", phrases.actor(recorded.actor))
            return who + Phrase((f" ({_CHANNELS[recorded.actor.channel]})",))
        case outputs.EntryMoved():
            return reasons.explanation(situation_after(event, recorded.actor, *context))
        case outputs.EntryUpdated():
            batch = ", alone in its test run" if event.no_batch else ""
            touches = _touches(event.targets) if event.targets is not None else ""
            return Phrase((f"priority {priority_name(event.priority)}{batch}{touches}",))
        case outputs.EntryPlaced():
            return phrase(_PLACED[event.why])
        case _:
            assert_never(event)


def _touches(touched: Targets) -> str:
    if touched.everything:
        return ", impacts all targets"
    count = len(touched.names)
    return f", {count} impacted target{'' if count == 1 else 's'}"


RunEvent = (
    outputs.RunStarted
    | outputs.RunBuilt
    | outputs.RunRetried
    | outputs.RunFinished
    | outputs.RunRetired
)


def _of_run(event: RunEvent, target: str) -> Phrase:
    match event:
        case outputs.RunStarted():
            return _started(event, target)
        case outputs.RunBuilt() if event.repeats is not None:
            return phrase("only its failed checks run again, at {}", phrases.commit(event.sha))
        case outputs.RunBuilt():
            return phrase("test branch created at {}", phrases.commit(event.sha))
        case outputs.RunRetried():
            why = endings.verdict(event.cause, target)
            return phrase("checks run once more (attempt {}). {}", event.attempt, why)
        case outputs.RunFinished():
            return _finished(event)
        case outputs.RunRetired() if event.keeps_branch:
            return phrase("test run ended, another one uses its test branch")
        case outputs.RunRetired():
            return phrase("test run ended, test branch deleted")
        case _:
            assert_never(event)


def _started(event: outputs.RunStarted, target: str) -> Phrase:
    if event.kind is RunKind.DIRECT:
        return phrase("no test run is needed: its own checks count")
    if event.kind is RunKind.TIP:
        return phrase("testing of {} itself started", target)
    alone = len(event.prs) == 1
    together = phrase(" of {} together", phrases.pulls(event.prs))
    under = phrases.stacked(target, event.base_prs)
    begun = phrase("testing{} started on top of {}", Phrase() if alone else together, under)
    return begun + phrase(purpose(event.kind))


_WHY_STARTED = {
    RunKind.PROBE: ", to find the cause of the failure",
    RunKind.CONFIRMATION: " once more, to be sure of the failure",
    RunKind.HEDGE: " as well, without a PR ahead that may fail",
    RunKind.SECOND_LOOK: " a second time in advance, in case the first run fails",
    RunKind.EARLY_LOOK: " alone as well, to know sooner whether it fails",
    RunKind.WITNESS: " with a PR that failed, to see whether it fails again",
    RunKind.SCREEN: " alone, before it joins the others",
    RunKind.TIP: ", whose tree no test run had",
    RunKind.TRY: " to see whether tests pass again",
}
"""The purpose of each special kind of test run."""


def purpose(kind: RunKind) -> str:
    """Return why such a run begins, as the end of a sentence; empty for a usual one."""
    return _WHY_STARTED.get(kind, "")


def _finished(event: outputs.RunFinished) -> Phrase:
    match event.status:
        case RunStatus.SUCCEEDED:
            return phrase("test run passed")
        case RunStatus.CANCELLED:
            return phrase("test run stopped without a verdict")
        case RunStatus.IN_PROGRESS:
            return phrase("test run continues: another check became required")
        case RunStatus.FAILED:
            failed = phrases.names(event.failed)
            return (
                phrase("test run failed: {}", failed)
                if event.failed
                else (phrase("test run failed"))
            )
        case _:
            assert_never(event.status)


_NOT_REFUSED = frozenset({LandingStopCode.STALE, LandingStopCode.UNAVAILABLE})
"""Landings that our own look just before the call stopped, or a provider that was too slow."""

LandingEvent = (
    outputs.LandingStarted | outputs.LandingHalted | outputs.LandingMismatched | outputs.TipMoved
)


def _of_landing(event: LandingEvent, target: str) -> Phrase:
    match event:
        case outputs.LandingStarted():
            return phrase("merging into {} began", target)
        case outputs.LandingHalted():
            said = phrase(": {}", event.text) if event.text else Phrase()
            waits = event.code in _NOT_REFUSED
            return phrase("the merge waits" if waits else "the merge did not happen") + said
        case outputs.LandingMismatched():
            return phrase("what landed on {} is not what was tested: {}", target, event.evidence)
        case outputs.TipMoved():
            moved = phrase("{} moved to {}", target, phrases.commit(event.sha))
            return moved if event.landed else moved + phrase(" outside the queue")
        case _:
            assert_never(event)


QueueEvent = (
    outputs.HoldPlaced
    | outputs.HoldReleased
    | outputs.QueueStateChanged
    | outputs.ModeChanged
    | outputs.QueueConfigured
    | outputs.QueueDrained
    | outputs.QueueDeleted
    | outputs.RequiredStatusesChanged
)


def _of_queue(event: QueueEvent, target: str) -> Phrase:
    match event:
        case outputs.HoldPlaced() | outputs.HoldReleased():
            verb = "held" if isinstance(event, outputs.HoldPlaced) else "released"
            why = phrase(": {}", event.text) if event.text else Phrase()
            return phrase("queue for {} " + verb + " ({})", target, event.reason.value) + why
        case outputs.QueueStateChanged():
            why = phrase(": {}", event.reason) if event.reason else Phrase()
            return phrase("queue for {} " + holds.STATE_VERBS[event.state], target) + why
        case outputs.ModeChanged():
            return phrase(f"queue for {{}} runs in {event.mode.value.lower()} mode", target)
        case outputs.QueueConfigured():
            return phrase("settings changed: {}", phrases.names(event.changed))
        case outputs.QueueDrained():
            return phrase("queue for {} is drained", target)
        case outputs.QueueDeleted():
            return phrase("queue for {} deleted", target)
        case outputs.RequiredStatusesChanged():
            required = phrases.names(event.names) if event.names else phrase("none")
            return phrase("required checks: {}", required)
        case _:
            assert_never(event)


def _is_shown(recorded: Recorded, history: Sequence[Recorded]) -> bool:
    """Return whether a comment shows it: what happened to the pull request, each thing once."""
    event = recorded.event
    if isinstance(event, outputs.RunStarted):
        return event.kind is not RunKind.DIRECT
    if isinstance(event, SearchEvent):
        return _is_search_shown(event, history)
    if not isinstance(event, outputs.EntryMoved):
        return isinstance(event, _SHOWN)
    if event.reason is Reason.TEST_STARTED:
        begun = {each.event.run for each in history if isinstance(each.event, outputs.RunStarted)}
        return event.run not in begun
    if event.state is EntryState.PENDING_FAILURE:
        return not _is_decided_at_once(recorded, history)
    return True


def _is_decided_at_once(failed: Recorded, history: Sequence[Recorded]) -> bool:
    return any(
        isinstance(each.event, outputs.EntryMoved)
        and each.at == failed.at
        and each.event.origin is EntryState.PENDING_FAILURE
        for each in history
    )


_SHOWN = (
    outputs.EntrySubmitted
    | outputs.EntryUpdated
    | outputs.EntryPlaced
    | outputs.RunRetried
    | outputs.LandingHalted
)


def _line(recorded: Recorded, view: PullRequestText) -> str:
    happened = clause(recorded, view.queue.branch, view.queue.config, view.history, view.tables)
    text = markdown.markdown(happened, view.links)
    return f"- `{times.second_of(recorded.at, view.now)}` {text}"


SearchEvent = BisectionOpened | BisectionNarrowed | BisectionClosed


def _search_clause(event: SearchEvent, history: Sequence[Recorded] = ()) -> Phrase:
    """Return one step; it names pull requests if `history` has the start of the search."""
    match event:
        case BisectionOpened():
            if len(event.prs) == 1:
                return phrase(
                    "Headgate is searching for the cause of the failure of {}",
                    phrases.pulls(event.prs),
                )
            return phrase("the search for the cause began among {}", phrases.pulls(event.prs))
        case BisectionNarrowed():
            return _narrowed(event, _searched(event, history))
        case BisectionClosed():
            return _closed(event)
        case _:
            assert_never(event)


def _is_search_shown(event: SearchEvent, history: Sequence[Recorded]) -> bool:
    """Return whether a comment shows it: the failure of one by itself is told by its test runs."""
    prs = event.prs if isinstance(event, BisectionOpened) else _searched(event, history)
    return len(prs) > 1


def search_progress(search: Bisection, pr: int) -> Phrase:
    """Return the progress of a search among several, in sentences for the pull request."""
    prs = tuple(member.pr for member in search.entries)
    proven, suspects = prs[: search.lo], prs[search.lo : search.hi]
    pieces = []
    if proven:
        pieces.append(phrase("{} passed.", phrases.pulls(proven)))
    if suspects == (pr,):
        pieces.append(phrase("Only this PR can be the cause; its tests run once more."))
    elif len(suspects) == 1:
        words = "Only {} can be the cause; its tests run once more."
        pieces.append(phrase(words, phrases.pulls(suspects)))
    elif len(suspects) < len(prs):
        pieces.append(phrase("The cause is among {}.", phrases.pulls(suspects)))
    else:
        pieces.append(phrase("Headgate is searching for the cause."))
    cuts = [phrases.pulls(prs[:cut]) for cut in sorted(search.probes) if cut != search.hi]
    if cuts and len(suspects) > 1:
        pieces.append(phrase("Under test when this was written: {}.", phrases.joined(cuts, "; ")))
    if pr in prs[search.hi :]:
        pieces.append(phrase("This PR is tested again after that."))
    return phrases.joined(pieces)


def _searched(
    event: BisectionNarrowed | BisectionClosed, history: Sequence[Recorded]
) -> tuple[int, ...]:
    """Return the pull requests of the search, in order; empty if its start is unknown."""
    for recorded in history:
        begun = recorded.event
        if isinstance(begun, BisectionOpened) and begun.bisection == event.bisection:
            return begun.prs
    return ()


def _narrowed(event: BisectionNarrowed, prs: tuple[int, ...]) -> Phrase:
    if event.lo >= event.hi:
        return phrase("all PRs of the batch passed")
    if not prs and event.hi == event.lo + 1:
        return phrase("only number {} of the batch can be the cause", event.hi)
    if not prs and not event.lo:
        return phrase("the cause is among the first {} of the batch", event.hi)
    if not prs:
        words = "the first {} of the batch passed, and the cause is among the next {}"
        return phrase(words, event.lo, event.hi - event.lo)
    proven, suspects = prs[: event.lo], prs[event.lo : event.hi]
    words = "the search has come down to {}" if len(suspects) == 1 else "the cause is among {}"
    where = phrase(words, phrases.pulls(suspects))
    if not proven:
        return where
    return phrase("{} passed, and ", phrases.pulls(proven)) + where


def _closed(event: BisectionClosed) -> Phrase:
    if event.culprit is not None:
        return phrase("the cause is found: {}", phrases.pulls((event.culprit,)))
    if event.why is Reason.BISECTION_PASSED:
        return phrase("the search ended without a cause: what had failed passes now")
    if not event.why.record.pending:
        return phrase("the search was given up because a PR that it needs left the queue")
    why = reasons.because(Situation("", EntryState.PENDING, event.why))
    return phrase("the search was given up because {}", why)
