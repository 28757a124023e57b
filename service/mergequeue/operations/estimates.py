"""Estimate the chance that a pull request fails, for queues that plan by it.

The statistics of a queue are kept in memory and read again every ten minutes. A submission gets
its chance from memory and never waits for it.
"""

from dataclasses import dataclass
from datetime import datetime

from service.database.database import Tx
from service.errors import NotFound
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.explaining import estimates
from service.mergequeue.engine.explaining.estimates import OwnCi, Signs, Track
from service.mergequeue.engine.inputs import EstimateChanged
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.reported import Facts
from service.mergequeue.operations import turn
from service.mergequeue.store import history, queues
from service.mergequeue.store.history import Judged
from service.runtime import Runtime
from service.vocabulary import BlockerCode, QueueRef

DIGITS = 3
"""Precision of reported probabilities; smaller changes are not reported."""


@dataclass(frozen=True, slots=True)
class KnownPast:
    """The statistics of a queue's ended submissions."""

    track: Track
    judged: Judged


NO_PAST = KnownPast(Track(), Judged((), {}))


def of_submission(runtime: Runtime, queue: QueueRef, config: QueueConfig, facts: Facts) -> float:
    """Return the chance that a new submission fails; 0 if the queue does not use estimates."""
    if not estimates.are_used(config):
        return 0.0
    return _p_fail(_kept(runtime, queue.id) or NO_PAST, facts, None)


async def refresh(runtime: Runtime) -> bool:
    """Read the past of every queue that plans by it; whether any chance has changed."""
    found = False
    for queue in await runtime.store.read(queues.all_queues):
        try:
            found = await _refresh_one(runtime, queue) or found
        except NotFound:
            runtime.memory.pasts.pop(queue.id, None)
    return found


async def _refresh_one(runtime: Runtime, queue: QueueRef) -> bool:
    value = await turn.value(runtime, queue.id)
    if not estimates.are_used(value.config):
        runtime.memory.pasts.pop(queue.id, None)
        return False
    judged, seen_at = await runtime.store.read(_read, queue)
    runtime.memory.pasts[queue.id] = known = _known(judged)
    changes = [
        EstimateChanged(entry.pr, p_fail)
        for entry in value.entries.values()
        if (p_fail := _of_entry(known, entry, seen_at.get(entry.pr))) != entry.p_fail
    ]
    if changes:
        await turn.take(runtime, queue.id, changes)
    return bool(changes)


def _read(session: Tx, queue: QueueRef) -> tuple[Judged, dict[int, datetime]]:
    return history.judged(session, queue), history.first_seen(session, queue)


def _known(judged: Judged) -> KnownPast:
    track = Track()
    for signs, failed in judged.samples:
        track.count(signs, failed=failed)
    return KnownPast(track, judged)


def _kept(runtime: Runtime, queue_id: int) -> KnownPast | None:
    kept = runtime.memory.pasts.get(queue_id)
    return kept if isinstance(kept, KnownPast) else None


def _of_entry(known: KnownPast, entry: Entry, seen_at: datetime | None) -> float:
    age_s = None if seen_at is None else (entry.submitted_at - seen_at).total_seconds()
    return _p_fail(known, entry.facts, age_s)


def _p_fail(known: KnownPast, facts: Facts, age_s: float | None) -> float:
    failed_before = known.judged.failures.get(facts.pr, 0)
    signs = Signs(facts.author, failed_before, _own_ci(facts), age_s)
    return round(known.track.p_fail(signs), DIGITS)


def _own_ci(facts: Facts) -> OwnCi:
    codes = {blocker.code for blocker in facts.blockers}
    if BlockerCode.CHECK_FAILING in codes:
        return OwnCi.FAILING
    return OwnCi.PENDING if BlockerCode.CHECK_PENDING in codes else OwnCi.PASSED
