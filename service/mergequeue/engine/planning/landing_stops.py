"""React to a landing that stopped: wait, land again, set the entry aside, or hold the queue."""

import re
from collections.abc import Callable
from datetime import timedelta

from service.mergequeue.engine.inputs import LandingStopCode, LandingStopped
from service.mergequeue.engine.model import Detail, Entry, Refusal, Unexplained
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import holds, leaving, readiness, target
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.reasons.record import HoldScope

LAND_AGAIN = timedelta(seconds=60)
"""The time that a landing waits that found the provider not ready for it."""

LAND_AGAIN_STALE = timedelta(seconds=5)
"""The time that it waits at first when a condition of the permit failed; doubled each time."""

REFUSED_FOR = (
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=1),
)
"""The times that an entry refused by the provider is out of the line, by how often it was so."""

REFUSALS_MAX = len(REFUSED_FOR)
"""After being set aside so often the next refusal ends the submission."""

BORROWED_TRIES = 2
"""The number of times that a borrowed result is replaced before its entry is set aside."""

UNEXPLAINED_FOR = timedelta(hours=1)
UNEXPLAINED_MAX = 20
"""The number of refusals without a known cause that are remembered, and for how long."""

WAIT_FIRST = timedelta(seconds=60)
"""The time that landings wait at first; each further wait of an entry is twice as long."""

WAIT_MAX = timedelta(minutes=15)
"""The longest such wait of the queue."""

TRIES = 5
"""So often in all, about half an hour, the queue waits for the landing of one entry."""

ASIDE_MAX = timedelta(hours=1)
"""The longest time for which such an entry is set aside, so that others may land."""

Reaction = Callable[[Draft, Entry, LandingStopped], None]


def stopped(draft: Draft, one: LandingStopped) -> None:
    """One position did not land; the facts behind it came as reports before."""
    run = landing.close(draft, one.run, one.position, one.code.value, one.text)
    if run is None:
        return
    target.take_kept(draft)
    entry = draft.entry_of(run.members[one.position - 1])
    if entry is not None and (entry.cancel is None or entry.cancel in leaving.RESTARTS):
        times = entry.stops.get(one.code.value, 0) + 1
        entry = replace(entry, stops={**entry.stops, one.code.value: times})
        draft.put(entry)
        _REACTIONS[one.code](draft, entry, one)


def _later(wait: timedelta) -> Reaction:
    def wait_and_plan_again(draft: Draft, _entry: Entry, _one: LandingStopped) -> None:
        draft.put_queue(replace(draft.queue, land_after=draft.now + wait))

    return wait_and_plan_again


def _later_and_later(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """Wait twice as long as the last time, at most `LAND_AGAIN`."""
    times = entry.stops.get(one.code.value, 1)
    wait = min(LAND_AGAIN_STALE * 2 ** (times - 1), LAND_AGAIN)
    draft.put_queue(replace(draft.queue, land_after=draft.now + wait))


def _bounded(tries: int, reaction: Reaction, reason: Reason = Reason.MERGE_REFUSED) -> Reaction:
    """React this way to the first `tries` stops of an entry, then set the entry aside."""

    def react(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        if entry.stops.get(one.code.value, 0) <= tries:
            reaction(draft, entry, one)
        else:
            _set_aside(draft, entry, one, reason)

    return react


def _checks_missing(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """A borrowed result that its commit lost is replaced by a real run; else the entry waits."""
    run = draft.runs[one.run]
    if not landing.is_green(draft, run):
        # More is required now than at the permit: the run waits for it, and the entry with it.
        _later(LAND_AGAIN)(draft, entry, one)
        return
    is_borrowed = run.reused_from is not None or run.kind is RunKind.DIRECT
    if not is_borrowed or entry.stops.get(one.code.value, 0) > BORROWED_TRIES:
        _refused(draft, entry, one, Reason.CHECK_MISSING)
        return
    detail = Detail(text=one.text, run=run.id)
    for own in draft.own(run):
        draft.put(replace(own, fresh=True))
    leaving.restart(draft, run, Reason.RETRY_ON_NEW_BRANCH, detail)


def _ends(state: EntryState, reason: Reason) -> Reaction:
    def end(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        detail = Detail(text=one.text or one.code.value, run=one.run)
        leaving.leave(draft, entry, state, reason, detail)

    return end


def _rebuild(reason: Reason) -> Reaction:
    def begin_anew(draft: Draft, _entry: Entry, one: LandingStopped) -> None:
        # The same tree may pass at once by an earlier result: not the same refusal at once.
        draft.put_queue(replace(draft.queue, land_after=draft.now + LAND_AGAIN))
        leaving.restart(draft, draft.runs[one.run], reason, Detail(text=one.text, run=one.run))

    return begin_anew


def _holds(reason: HoldReason) -> Reaction:
    def hold(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        _place_hold(draft, reason, one)
        # Its state stays, but its comment must not go on saying that it merges next.
        draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))

    return hold


def _place_hold(draft: Draft, reason: HoldReason, one: LandingStopped) -> None:
    until = draft.now + holds.TRY_AGAIN if reason in _TRIED_AGAIN else None
    holds.place_once(draft, holds.HoldRequest(reason, one.text or one.code.value, until=until))


def _bar(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    barred = replace(entry, barred=(Reason.WORKFLOWS_PERMISSION_MISSING,))
    detail = Detail(text=one.text)
    leaving.set_aside(draft, barred, Reason.WORKFLOWS_PERMISSION_MISSING, detail)


def _of_its_own(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    _refused(draft, entry, one, Reason.MERGE_REFUSED)


def _refused(draft: Draft, entry: Entry, one: LandingStopped, otherwise: Reason) -> None:
    """Refused for this pull request alone: its facts say until when, or the refusal does."""
    unmet = readiness.unmet_now(draft, entry)
    if unmet and entry.refusals < REFUSALS_MAX:
        counted = replace(entry, refusals=entry.refusals + 1)
        leaving.set_aside(draft, counted, unmet[0], Detail(text=one.text))
        return
    _set_aside(draft, entry, one, otherwise)


def _unexplained(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """No fact explains the refusal: the entry waits; the queue too if two different ones met it.

    Only what two pull requests in a row met says something of the branch. The second one is set
    aside as well, so that after the hold the next pull request shows whether it is over.
    """
    words = _alike(one.text)
    recent = [
        known
        for known in draft.queue.unexplained
        if known.pr != entry.pr and known.at + UNEXPLAINED_FOR > draft.now
    ]
    met_by_others = any(known.words == words for known in recent)
    mine = Unexplained(entry.pr, words, draft.now)
    kept = (*recent, mine)[-UNEXPLAINED_MAX:]
    draft.put_queue(replace(draft.queue, unexplained=kept))
    if met_by_others:
        _place_hold(draft, HoldReason.RULE_DENIED, one)
    _set_aside(draft, entry, one, Reason.MERGE_REFUSED)


def _alike(text: str) -> str:
    """The words of a refusal without what differs from one pull request to another."""
    return _VARYING.sub("…", text.lower()).strip(" .")


_VARYING = re.compile(r"\"[^\"]*\"|`[^`]*`|\b[0-9a-f]{7,40}\b|#?\d+")


def _set_aside(draft: Draft, entry: Entry, one: LandingStopped, otherwise: Reason) -> None:
    """Take the entry out of the line for a while; after `REFUSALS_MAX` times for good."""
    text = one.text or one.code.value
    if entry.refusals >= REFUSALS_MAX:
        detail = Detail(text=text, run=one.run)
        leaving.leave(draft, entry, EntryState.FAILED, Reason.MERGE_REFUSED, detail)
        return
    known = [(readiness.reason_of(each), each.name) for each in one.blockers]
    reasons = [(reason, name) for reason, name in known if reason is not None]
    reason, name = reasons[0] if reasons else (otherwise, None)
    refusal = Refusal(
        reason=reason,
        name=name or (text if reason is Reason.MERGE_REFUSED else ""),
        until=draft.now + REFUSED_FOR[entry.refusals],
        blockers=entry.facts.blockers,
    )
    left = {code: count for code, count in entry.stops.items() if code != one.code.value}
    aside = replace(entry, refusal=refusal, refusals=entry.refusals + 1, stops=left)
    leaving.set_aside(draft, aside, reason, Detail(text=text))


_DOUBLINGS_MAX = 10


def _wait(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """Let the queue land later; after `TRIES` set the entry aside for a while.

    Neither counts as a refusal of the entry: the provider has refused nothing. It leaves once it
    was aside for as long as an entry may be not ready.
    """
    times = entry.stops.get(one.code.value, 1)
    if times > TRIES:
        _set_aside_longer(draft, entry, one, times - TRIES)
        return
    until = draft.now + _doubled(WAIT_FIRST, times, WAIT_MAX)
    draft.put_queue(replace(draft.queue, land_after=until))
    request = holds.HoldRequest(
        HoldReason.PROVIDER_UNAVAILABLE, one.text or one.code.value, HoldScope.LAND, until
    )
    holds.place_once(draft, request)
    # Its state stays, but its comment must not go on saying that it merges next.
    draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))


def _set_aside_longer(draft: Draft, entry: Entry, one: LandingStopped, times: int) -> None:
    text = one.text or one.code.value
    waits = [_doubled(WAIT_MAX, each, ASIDE_MAX) for each in range(1, times + 1)]
    hours = draft.queue.config.not_ready_timeout_hours
    if hours and sum(waits[:-1], timedelta()) >= timedelta(hours=hours):
        detail = Detail(text=text, run=one.run)
        leaving.leave(draft, entry, EntryState.FAILED, Reason.MERGE_REFUSED, detail)
        return
    refusal = Refusal(
        reason=Reason.MERGE_REFUSED,
        name=text,
        until=draft.now + waits[-1],
        blockers=entry.facts.blockers,
    )
    leaving.set_aside(
        draft, replace(entry, refusal=refusal), Reason.MERGE_REFUSED, Detail(text=text)
    )


def _doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    grown: timedelta = first * 2 ** min(times - 1, _DOUBLINGS_MAX)
    return min(grown, longest)


_TRIED_AGAIN = frozenset(
    {HoldReason.RULE_DENIED, HoldReason.STRICT_CHECKS, HoldReason.METHOD_DENIED}
)

_REACTIONS: dict[LandingStopCode, Reaction] = {
    LandingStopCode.RETRY: _bounded(1, _later(LAND_AGAIN)),
    LandingStopCode.UNAVAILABLE: _wait,
    LandingStopCode.CHECKS_MISSING: _checks_missing,
    LandingStopCode.STALE: _bounded(6, _later_and_later),
    # The new tip comes as a report, if it did not come before, and restarts what it concerns.
    LandingStopCode.BASE_MOVED: _bounded(3, _later(LAND_AGAIN)),
    LandingStopCode.CHANGE_DIFFERS: _bounded(3, _rebuild(Reason.TARGET_MOVED)),
    LandingStopCode.HEAD_CHANGED: _ends(EntryState.CANCELLED, Reason.HEAD_CHANGED),
    LandingStopCode.CLOSED: _ends(EntryState.CANCELLED, Reason.PR_CLOSED),
    LandingStopCode.DRAFT: _ends(EntryState.CANCELLED, Reason.CONVERTED_TO_DRAFT),
    LandingStopCode.CONFLICT: _bounded(1, _rebuild(Reason.LANDING_STOPPED), Reason.CONFLICT_TARGET),
    # The branch's own rules let nothing land: these hold the queue.
    LandingStopCode.RULE_DENIED: _holds(HoldReason.RULE_DENIED),
    LandingStopCode.METHOD_DENIED: _holds(HoldReason.METHOD_DENIED),
    LandingStopCode.STRICT: _holds(HoldReason.STRICT_CHECKS),
    LandingStopCode.PROVIDER_QUEUE: _holds(HoldReason.PROVIDER_QUEUE),
    LandingStopCode.NOT_PERMITTED: _holds(HoldReason.PERMISSION_LOST),
    LandingStopCode.OTHER: _unexplained,
    LandingStopCode.WORKFLOWS: _bar,
    LandingStopCode.REBASE_DIFFERS: _ends(EntryState.FAILED, Reason.REBASE_DIFFERS),
    LandingStopCode.PR_REFUSED: _of_its_own,
}
"""The reaction to each refusal (docs/design/landing.md 5)."""
