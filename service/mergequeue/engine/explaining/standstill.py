"""Find what could move in a queue and does not: lost effects, missed clocks, forgotten entries.

A pure function over the queue's value and its open effects. It serves an alarm, not a decision:
a healthy queue has no standstill.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from service.mergequeue.engine import engine
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.inputs import TimePassed
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.states import EntryState, RunPhase, RunStatus

SILENT_FOR = timedelta(minutes=3)
"""So long a queue may stay the same before anything in it is called a standstill."""
EFFECT_TIME = timedelta(minutes=2)
"""So long an effect may be under way, or be due without being taken up."""
HEAD_TIME = timedelta(seconds=3)
"""More for each head of a test branch: the provider's calls are spaced."""
CLOCK_LATE = timedelta(minutes=1)
"""So long after its time a queue must have been woken."""

BUILD, LAND = "build", "land"
"""Kinds of effects without which a run or a landing cannot go on."""


class StandstillKind(StrEnum):
    """One stalled subject of a queue."""

    EFFECT_UNDER_WAY = "effect_under_way"
    EFFECT_NOT_TAKEN = "effect_not_taken"
    BUILD_MISSING = "build_missing"
    LANDING_MISSING = "landing_missing"
    CLOCK_MISSED = "clock_missed"
    ENTRY_FORGOTTEN = "entry_forgotten"
    TURN_MISSED = "turn_missed"


@dataclass(frozen=True, slots=True)
class OpenEffect:
    """An effect that is not settled.

    `sent_at` is when it was last sent; `is_sent` whether it is on its way now. `due_at` is when it
    is to be sent or read back. `heads` counts the heads of a test branch. `throttled` says that
    the provider's own limit makes it wait, `is_first` that it is the next to be sent.
    """

    key: str
    kind: str
    run: str | None
    is_sent: bool
    sent_at: datetime | None
    due_at: datetime
    heads: int = 0
    throttled: bool = False
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class Standstill:
    """One thing that could move and does not; `subject` names its row."""

    kind: StandstillKind
    subject: str
    since: datetime
    prs: tuple[int, ...] = ()


def standstills(
    queue: MergeQueue,
    effects: Sequence[OpenEffect],
    wake_at: datetime | None,
    unchanged_since: datetime,
    now: datetime,
) -> tuple[Standstill, ...]:
    """Return the stalled subjects, gravest first; empty if the queue is healthy.

    `unchanged_since` is when the queue's value was last seen to change, `wake_at` the next
    instant at which it asked to be woken.
    """
    found = list(_effects(queue, effects, now))
    if wake_at is not None and now - wake_at > CLOCK_LATE:
        found.append(Standstill(StandstillKind.CLOCK_MISSED, "wake_at", wake_at))
    if now - unchanged_since >= SILENT_FOR:
        found += _missing(queue, effects, unchanged_since)
        is_due = wake_at is not None and wake_at <= now
        if not effects and not is_due and not _is_busy(queue):
            found += _forgotten(queue, unchanged_since, now)
    return tuple(found)


def _effects(
    queue: MergeQueue, effects: Sequence[OpenEffect], now: datetime
) -> Iterator[Standstill]:
    """Return effects that take too long, and due ones that no worker claims."""
    for one in effects:
        limit = EFFECT_TIME + one.heads * HEAD_TIME
        prs = _prs_of(queue, one.run)
        if one.is_sent:
            if one.sent_at is not None and now - one.sent_at > limit:
                yield Standstill(StandstillKind.EFFECT_UNDER_WAY, one.key, one.sent_at, prs)
        elif one.is_first and now - one.due_at > limit:
            yield Standstill(StandstillKind.EFFECT_NOT_TAKEN, one.key, one.due_at, prs)


def _missing(
    queue: MergeQueue, effects: Sequence[OpenEffect], since: datetime
) -> Iterator[Standstill]:
    """Runs that are being built and a landing in flight, of which no effect is left."""
    building = {one.run for one in effects if one.kind == BUILD}
    for run in queue.runs.values():
        is_building = run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.BUILDING
        if is_building and run.id not in building:
            yield Standstill(StandstillKind.BUILD_MISSING, run.id, since, run.prs)
    if queue.landing is not None and not any(one.kind == LAND for one in effects):
        prs = _prs_of(queue, queue.landing.run)
        yield Standstill(StandstillKind.LANDING_MISSING, queue.landing.run, since, prs)


def _forgotten(queue: MergeQueue, since: datetime, now: datetime) -> Iterator[Standstill]:
    """Return entries that wait for no event, and a plan that a plain step would change."""
    states = (EntryState.PENDING, EntryState.TESTS_PASSED)
    waiting = [entry.pr for entry in queue.entries.values() if entry.state in states]
    for pr, explained in explain.explain_each(queue, waiting, now).items():
        if explained.next is None:
            name = f"entry {queue.entries[pr].id}"
            yield Standstill(StandstillKind.ENTRY_FORGOTTEN, name, since, (pr,))
    # Plain values carry no memory of what was planned before: everything is planned anew.
    plain = replace(queue, entries=dict(queue.entries), runs=dict(queue.runs))
    if engine.step(plain, TimePassed(), now).actions:
        yield Standstill(StandstillKind.TURN_MISSED, "turn", since)


def _is_busy(queue: MergeQueue) -> bool:
    """Return whether a test or a landing is in flight, whose end moves the others."""
    in_progress = any(run.status is RunStatus.IN_PROGRESS for run in queue.runs.values())
    return in_progress or queue.landing is not None


def _prs_of(queue: MergeQueue, run_id: str | None) -> tuple[int, ...]:
    run = queue.runs.get(run_id or "")
    return run.prs if run is not None else ()
