"""The view of a whole queue, made anew only where the queue has changed.

Most changes are of one entry among hundreds, and who watches a queue reads it after each. So
the last view is kept with what it was made of, and the next one takes over what still holds
(PERFORMANCE.md V3). Times left are told anew every few seconds, as `shown.py` says; in between
an entry that has not changed keeps its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import compress
from operator import is_not

from service.memory import Stamp
from service.mergequeue.engine.model import Entry, MergeQueue, RequiredSet, Run
from service.mergequeue.operations import shown, turn
from service.mergequeue.operations.shown import Context
from service.mergequeue.operations.views import PullRequestView, QueueView
from service.runtime import Runtime
from service.vocabulary import QueueRef

ByNumber = Mapping[int | None, PullRequestView]


@dataclass(frozen=True, slots=True)
class Whole:
    """A view and what it was made of.

    `by_number` is in the order of the queue, its keys as `Memory.views` has them.
    """

    stamp: Stamp
    context: Context
    by_number: ByNumber
    view: QueueView


async def view_of(runtime: Runtime, ref: QueueRef) -> QueueView:
    """The queue with every entry that is not final; the same object while nothing changed."""
    now = runtime.clock.now()
    current = await turn.value(runtime, ref.id)
    stamp = shown.stamp(runtime, current, now)
    kept = runtime.memory.views(ref.id, stamp)
    known = kept.get(None)
    if isinstance(known, QueueView):
        return known
    before = runtime.memory.wholes.get(ref.id)
    whole = _next(before, ref, current, stamp) if isinstance(before, Whole) else None
    if whole is None:
        entries = tuple(current.entries.values())
        context = await runtime.store.read(shown.context_of, ref, current, now, entries)
        whole = _made(stamp, context, _all(context))
    runtime.memory.wholes[ref.id] = whole
    kept.update(whole.by_number)
    kept[None] = whole.view
    return whole.view


def _all(context: Context) -> ByNumber:
    size = shown.length(context.value)
    return {
        one.pr: shown.live_view(context, one, place if place <= size else None, size)
        for place, one in enumerate(shown.in_order(context.value), start=1)
    }


def _next(before: Whole, ref: QueueRef, current: MergeQueue, stamp: Stamp) -> Whole | None:
    """The view after a change of a few entries, None when more than those must be looked at."""
    if before.stamp[1:] != stamp[1:] or before.view.queue != ref:
        return None
    changed = _changed(before.view.value, current)
    if changed is None:
        return None
    context = replace(before.context, value=current)
    anew: dict[int | None, PullRequestView] = {}
    for one in changed:
        old = before.by_number[one.pr]
        anew[one.pr] = shown.live_view(context, one, old.position, old.length)
    return _made(stamp, context, {**before.by_number, **anew})


def _made(stamp: Stamp, context: Context, by_number: ByNumber) -> Whole:
    current = context.value
    view = QueueView(
        queue=context.queue,
        value=current,
        required=current.required or RequiredSet(),
        entries=tuple(by_number.values()),
        url=None,
    )
    return Whole(stamp, context, by_number, view)


def _changed(old: MergeQueue, new: MergeQueue) -> list[Entry] | None:
    """Entries that became others, each at its old place; None when anything else matters."""
    if (
        len(old.entries) != len(new.entries)
        or old.config != new.config
        or old.state is not new.state
    ):
        return None
    if old.runs is not new.runs and _seen(old.runs) != _seen(new.runs):
        return None
    known = old.entries.get
    # Compared by place, at the speed of C; what only moved in the mapping is no other entry.
    others = map(is_not, new.entries.values(), old.entries.values())
    moved = compress(new.entries.values(), others)
    changed = [one for one in moved if known(one.pr) is not one]
    if all(_stands_alike(known(one.pr), one) for one in changed):
        return changed
    return None


def _seen(runs: Mapping[str, Run]) -> dict[str, tuple[object, ...]]:
    """What views and times left say of runs."""
    return {run.id: (run.status, run.phase, run.sha is None) for run in runs.values()}


def _stands_alike(old: Entry | None, new: Entry) -> bool:
    """Whether it was here, nothing was uploaded for it, and everybody keeps their places."""
    return (
        old is not None
        and old.id == new.id
        and old.head == new.head
        and old.targets is new.targets
        and shown.place(old) == shown.place(new)
    )
