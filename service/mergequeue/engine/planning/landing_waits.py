"""Landings that a slow or unavailable provider stopped: they wait, and never end a submission."""

from dataclasses import replace
from datetime import timedelta

from service.mergequeue.engine.inputs import LandingStopped
from service.mergequeue.engine.model import Detail, Entry, Refusal
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import HoldReason, HoldScope, Reason
from service.mergequeue.engine.state import holds, leaving
from service.mergequeue.engine.state.draft import Draft

WAIT_FIRST = timedelta(seconds=60)
"""How long landings wait at first; each further wait of an entry is twice as long."""

WAIT_MAX = timedelta(minutes=15)
"""The longest such wait of the queue."""

TRIES = 5
"""So often in all, about half an hour, the queue waits for the landing of one entry."""

ASIDE_MAX = timedelta(hours=1)
"""The longest time for which such an entry is set aside, so that others may land."""

_DOUBLINGS_MAX = 10


def wait(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """Let the queue land later; after `TRIES` set the entry aside for a while.

    Neither counts as a refusal of the entry: the provider has refused nothing.
    """
    times = entry.stops.get(one.code.value, 1)
    if times > TRIES:
        _set_aside(draft, entry, one.text or one.code.value, times - TRIES)
        return
    until = draft.now + _doubled(WAIT_FIRST, times, WAIT_MAX)
    draft.put_queue(replace(draft.queue, land_after=until))
    wish = holds.Wish(
        HoldReason.PROVIDER_UNAVAILABLE, one.text or one.code.value, HoldScope.LAND, until
    )
    holds.place_once(draft, wish)
    # Its state stays, but its comment must not go on saying that it merges next.
    draft.do(Tell(entry.pr, entry.id, entry.state, entry.reason))


def _set_aside(draft: Draft, entry: Entry, text: str, times: int) -> None:
    refusal = Refusal(
        reason=Reason.MERGE_REFUSED,
        name=text,
        until=draft.now + _doubled(WAIT_MAX, times, ASIDE_MAX),
        blockers=entry.facts.blockers,
    )
    leaving.set_aside(
        draft, replace(entry, refusal=refusal), Reason.MERGE_REFUSED, Detail(text=text)
    )


def _doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    grown: timedelta = first * 2 ** min(times - 1, _DOUBLINGS_MAX)
    return min(grown, longest)
