"""The next instant at which time alone changes something."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from service.mergequeue.engine import breaker, grouping, readiness
from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.draft import Draft


def wake_at(draft: Draft) -> datetime | None:
    """The earliest clock that still runs; what is due has been acted on, or waits for more."""
    return min((at for at in _clocks(draft) if at > draft.now), default=None)


def _clocks(draft: Draft) -> Iterator[datetime]:
    queue = draft.queue
    for hold in queue.holds:
        if hold.until is not None:
            yield hold.until
    if queue.land_after is not None:
        yield queue.land_after
    if breaker.is_open(queue) and queue.breaker.probe_at is not None:
        yield queue.breaker.probe_at
    for run in draft.runs.values():
        if run.deadline is not None:
            yield run.deadline
    yield from _of_entries(draft)


def _of_batches(draft: Draft) -> Iterator[datetime]:
    """When waiting entries have waited for company for long enough."""
    config = draft.queue.config
    if config.batch and config.batch_sizing is BatchSizing.FIXED:
        for _, _, pr in draft.places.waiting:
            yield grouping.waits_until(config, (draft.entries[pr],))


def _of_entries(draft: Draft) -> Iterator[datetime]:
    hours = draft.queue.config.not_ready_timeout_hours
    if hours:
        wait = timedelta(hours=hours)
        for pr in draft.places.not_ready:
            yield draft.entries[pr].state_since + wait
    for pr in draft.places.not_ready:
        after = draft.entries[pr].build_after
        if after is not None:
            yield after
        refusal = draft.entries[pr].refusal
        if refusal is not None:
            yield refusal.until
    for pr in draft.places.unready:
        entry = draft.entries[pr]
        yield (entry.unready_since or draft.now) + readiness.grace_of(entry)
    for pr in draft.places.leaving:
        after = draft.entries[pr].build_after
        if after is not None:
            yield after
    yield from _of_batches(draft)
    for pr in draft.places.delayed:
        yield draft.entries[pr].build_after or draft.now
