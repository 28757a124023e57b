"""The engine's front door: inputs in, the next value and what follows from it out."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from service.mergequeue.engine import invariants
from service.mergequeue.engine.applying import apply
from service.mergequeue.engine.culprits import breaker
from service.mergequeue.engine.inputs import Command, Input, Report
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.planning import plan, refreshing, shadow
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.state import readiness, waiting
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import SYSTEM, Actor

NEVER = datetime.max.replace(tzinfo=UTC)

MOVES_KEPT = 20
"""Moves of the target kept for recognizing a late read of an older tip."""


def step(queue: MergeQueue, input: Input, now: datetime, *, is_checked: bool = True) -> Step:
    """Take one input, plan to a fixed point, check what must hold (docs/design/engine.md 1).

    Nothing due and nothing new give the same value, no action and no event. A refused command
    changes nothing. Raises InvariantBroken for a mistake of ours; then nothing of it counts.
    Only a bench leaves steps unchecked.
    """
    draft = Draft(queue, now, _actor_of(input))
    refusal = apply.apply(draft, input)
    if refusal is not None:
        unchanged = Draft(queue, now, SYSTEM)
        wake_at = _first(unchanged, _next_of_line(unchanged))
        return Step(queue, (), (), refusal, wake_at)
    draft.actor = SYSTEM
    return _planned(draft, is_checked=is_checked)


def step_reports(
    queue: MergeQueue, reports: Sequence[Report], now: datetime, *, is_checked: bool = True
) -> Step:
    """Take reports that arrived together, in order, and plan once for all of them.

    A command takes a step of its own: it is judged by what follows from all before it.
    """
    draft = Draft(queue, now, SYSTEM)
    for report in reports:
        apply.apply(draft, report)
    return _planned(draft, is_checked=is_checked)


def _planned(draft: Draft, *, is_checked: bool) -> Step:
    plan.settle(draft)
    refreshing.refresh(draft)
    _trim(draft)
    if is_checked:
        invariants.check(draft)
    of_line = _next_of_line(draft)
    draft.entries.rests_until = of_line or NEVER
    return Step(
        queue=draft.value(),
        actions=tuple(draft.actions),
        events=tuple(draft.events),
        refusal=None,
        wake_at=_first(draft, of_line),
        finished_entries=tuple(draft.finished_entries.values()),
        finished_runs=tuple(draft.finished_runs.values()),
    )


def _actor_of(one: Input) -> Actor:
    return one.actor if isinstance(one, Command) else SYSTEM


def _trim(draft: Draft) -> None:
    """Forget old moves of the target to which no live base or batch looks back."""
    landed = draft.queue.landed
    is_same = landed is draft.before.landed and not draft.finished_runs
    if len(landed) <= MOVES_KEPT or is_same:
        return
    tips = {run.base_tip.sha for run in draft.runs.values()}
    batches = {entry.batch for entry in draft.entries.values()} - {None}
    needed = (move.before in tips or move.batch in batches for move in landed)
    first = next((i for i, is_needed in enumerate(needed) if is_needed), len(landed))
    first = min(first, len(landed) - MOVES_KEPT)
    if first:
        draft.forget_moves(first)


def _first(draft: Draft, of_line: datetime | None) -> datetime | None:
    """The earliest clock that still runs; what is due has been acted on, or waits for more."""
    of_runs = draft.runs.next_due_at(draft.now)
    return of_line if of_runs is None or (of_line and of_line < of_runs) else of_runs


def _next_of_line(draft: Draft) -> datetime | None:
    """The earliest clock that runs for the queue or for an entry."""
    return min((at for at in _clocks(draft) if at > draft.now), default=None)


def _clocks(draft: Draft) -> Iterator[datetime]:
    queue = draft.queue
    for hold in queue.holds:
        if hold.until is not None:
            yield hold.until
    if queue.land_after is not None:
        yield queue.land_after
    if breaker.is_open(queue) and queue.breaker.try_at is not None:
        yield queue.breaker.try_at
    if queue.untested is not None and queue.untested.try_at is not None:
        yield queue.untested.try_at
    if queue.config.shadow:
        yield from (at for one in draft.entries.values() if (at := shadow.leaves_at(one)))
    yield from _of_entries(draft)


def _of_batches(draft: Draft) -> Iterator[datetime]:
    """Yield when waiting entries have waited for company for long enough."""
    config = draft.queue.config
    waits_until = policies.policy_of(config).waits_until
    for _, _, pr in draft.places.waiting if config.batch else ():
        until = waits_until(config, (draft.entries[pr],))
        if until is None:
            return
        yield until


def _of_rules(draft: Draft) -> Iterator[datetime]:
    """Yield when an entry begins or ceases to wait for a rule, or for its own time."""
    for pr in draft.places.timed:
        border = waiting.next_border(draft.entries[pr].facts, draft.now)
        if border is not None:
            yield border


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
    yield from _of_rules(draft)
    yield from _of_batches(draft)
    for pr in draft.places.delayed:
        yield draft.entries[pr].build_after or draft.now
