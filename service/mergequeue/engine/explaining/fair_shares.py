"""The share of an entry's submitter: its slots and its next turn (docs/design/fair-shares.md 4)."""

import heapq
from collections.abc import Iterator

from service.mergequeue.engine import submitters
from service.mergequeue.engine.config import FairShares
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import MAIN_SLOTS, RunStatus


def share_of(draft: Draft, entry: Entry) -> Iterator[Condition]:
    """That the turn of a waiting entry has come, where others of its priority wait too.

    `count` of `total` slots test entries of its submitter, and `word` is in how many minutes the
    next of them starts; empty: unknown.
    """
    if draft.queue.config.fair_shares is FairShares.OFF or entry.rank is not None:
        return
    order = [draft.entries[pr] for pr in shares.waiting(draft)]
    rivals = [one for one in order if one.priority == entry.priority]
    own = [one for one in order if _is_of_same(one, entry)]
    if all(_is_of_same(one, entry) for one in rivals):
        return
    running = [
        run
        for run in draft.runs.values()
        if run.kind in MAIN_SLOTS and run.status is RunStatus.IN_PROGRESS
    ]
    used = sum(any(_is_of_same(one, entry) for one in draft.own(run)) for run in running)
    minutes = _minutes_until(draft, order.index(own[0]))
    yield Condition(
        ConditionCode.FAIR_SHARE,
        entry.turn <= shares.reached(draft.queue, entry),
        count=used,
        total=draft.queue.config.concurrency,
        word="" if minutes is None else f"{minutes:.0f}",
    )


def _is_of_same(one: Entry, other: Entry) -> bool:
    return submitters.submitter_of(one) == submitters.submitter_of(other)


def _minutes_until(draft: Draft, place: int) -> float | None:
    """Return in how many minutes the waiting entry at this place starts, if no run fails."""
    config, known = draft.queue.config, draft.queue.rates.minutes.values()
    if not known:
        return None
    takes = max(known)
    left = [
        max(takes - (draft.now - run.created_at).total_seconds() / 60, 0.0)
        for run in draft.runs.values()
        if run.kind in MAIN_SLOTS and run.status is RunStatus.IN_PROGRESS
    ]
    slots = left + [0.0] * (config.concurrency - len(left))
    heapq.heapify(slots)
    size = config.batching_min_size if config.batch else 1
    for _ in range(place // size):
        heapq.heapreplace(slots, slots[0] + takes)
    return slots[0]
