"""Estimate the chance that a pull request fails, and measure the rates of its queue.

The statistics of a queue are kept in memory and read again every ten minutes if anything happened
in it. A submission gets its chance from memory and never waits for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from cachetools import LRUCache

from service import sweeping
from service.database.database import Tx
from service.errors import NotFound
from service.memory import QUEUES_MAX
from service.mergequeue.engine.explaining import rates
from service.mergequeue.engine.explaining.estimates import OwnCi, Signs, Track
from service.mergequeue.engine.explaining.rates import Outcomes
from service.mergequeue.engine.inputs import EstimateChanged, Input, RatesMeasured
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.reported import Facts, Rates
from service.mergequeue.operations import turn
from service.mergequeue.store import history, outcomes, queues
from service.mergequeue.store.history import Judged
from service.runtime import Runtime
from service.vocabulary import BlockerCode, QueueRef

DIGITS = 3
"""Precision of reported probabilities."""


@dataclass(frozen=True, slots=True)
class KnownPast:
    """The statistics of a queue's ended submissions, as of a version of the queue."""

    track: Track
    judged: Judged
    version: int


class Pasts(LRUCache[int, KnownPast]):
    """The record of ended submissions, by queue; read again on a clock."""

    def __init__(self) -> None:
        super().__init__(QUEUES_MAX)


NO_PAST = KnownPast(Track(), Judged((), {}, 0), 0)


def of_submission(runtime: Runtime, queue: QueueRef, facts: Facts) -> float:
    """Return the chance that a new submission fails."""
    return _p_fail(_kept(runtime, queue.id) or NO_PAST, facts, None)


async def refresh(runtime: Runtime) -> bool:
    """Read the past of every queue; whether any chance or rate has changed noticeably."""
    changed: list[bool] = []

    async def refresh_queue(queue: QueueRef) -> None:
        try:
            changed.append(await _refresh_one(runtime, queue))
        except NotFound:
            runtime.memory.of(Pasts).pop(queue.id, None)

    every = await runtime.store.read(queues.all_queues)
    await sweeping.one_by_one(refresh_queue(queue) for queue in every)
    return any(changed)


async def _refresh_one(runtime: Runtime, queue: QueueRef) -> bool:
    value = await turn.value(runtime, queue.id)
    kept = _kept(runtime, queue.id)
    if kept is not None and kept.version == value.version:
        return False
    read = await runtime.store.read(_read, queue)
    known = KnownPast(read.track, read.judged, value.version)
    runtime.memory.of(Pasts)[queue.id] = known
    changes = [*_estimates(value, known, read.seen_at), *_rates(value, read.rates)]
    if changes:
        await turn.take(runtime, queue.id, changes)
    return bool(changes)


@dataclass(frozen=True, slots=True)
class _Read:
    judged: Judged
    track: Track
    seen_at: dict[int, datetime]
    rates: Rates


def _read(session: Tx, queue: QueueRef) -> _Read:
    judged = history.judged(session, queue)
    of_runs = outcomes.of_runs(session, queue.id)
    track = _track_of(judged)
    estimated = [track.p_fail(signs) for signs, _ in judged.samples]
    found = Outcomes(
        passed=of_runs.passed,
        flaked=of_runs.flaked,
        decided=len(judged.samples),
        interactions=judged.interactions,
        minutes=of_runs.minutes,
        expected=sum(estimated),
        foreseen=rates.foreseen_of(estimated),
    )
    return _Read(judged, track, history.first_seen(session, queue), rates.measured(found))


def _track_of(judged: Judged) -> Track:
    track = Track()
    for signs, failed in judged.samples:
        track.count(signs, failed=failed)
    return track


def _estimates(
    value: MergeQueue, known: KnownPast, seen_at: dict[int, datetime]
) -> Iterator[Input]:
    for entry in value.entries.values():
        p_fail = _of_entry(known, entry, seen_at.get(entry.pr))
        if rates.is_noticeable(entry.p_fail, p_fail):
            yield EstimateChanged(entry.pr, p_fail)


def _rates(value: MergeQueue, found: Rates) -> Iterator[Input]:
    if rates.have_changed(value.rates, found):
        yield RatesMeasured(found.flake, found.conflict, found.minutes, found.foreseen)


def _kept(runtime: Runtime, queue_id: int) -> KnownPast | None:
    return runtime.memory.of(Pasts).get(queue_id)


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
