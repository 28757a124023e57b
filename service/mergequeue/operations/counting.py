"""Count a turn: metrics facts derived from its events, stored in its transaction.

Pure but for `keep`. Which kind of runs and entries counts as `bisection`:
docs/reference/metrics.md.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from service.database.database import Tx
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    LandingMismatched,
    Recorded,
    Step,
    TipMoved,
)
from service.mergequeue.engine.states import FINAL, PROBE_SLOTS, EntryState, RunKind
from service.mergequeue.landing_records import LandingState
from service.mergequeue.store import figures
from service.mergequeue.store.figures import Moved
from service.metrics.facts import MetricFact
from service.metrics.queue_families import Kind
from service.vocabulary import QueueRef

MAIN, BISECTION = "main", "bisection"
NO_CAUSE = "none"

UNDER_TEST = frozenset({EntryState.TESTING, EntryState.TESTS_PASSED, EntryState.PENDING_FAILURE})
"""From these a way back to PENDING is a restart."""

RESULTS: Mapping[LandingState, str] = {
    LandingState.LANDED: "landed",
    LandingState.MISMATCH: "landed",
    LandingState.REFUSED: "rejected",
    LandingState.UNKNOWN: figures.UNKNOWN,
}
"""The label of a landing attempt; an attempt resolved later counts again with its result."""


def count_turn(
    session: Tx, ref: QueueRef, before: MergeQueue | None, whole: Step, now: datetime
) -> None:
    """Store the metrics facts of a turn. Raises no error of its own."""
    stays = {
        entry.id: stay_of(entry, figures.moves(session, ref.id, entry.pr, entry.id))
        for entry in whole.finished_entries
    }
    facts = tuple(facts_of(before, whole, stays))
    if facts:
        figures.add(session, ref, facts, now)


def count_landing(session: Tx, ref: QueueRef, state: LandingState, now: datetime) -> None:
    """Count how an attempt to land ended."""
    figures.add(session, ref, (MetricFact(Kind.LANDING, (RESULTS[state],)),), now)


def stay_of(entry: Entry, moves: tuple[Moved, ...]) -> timedelta:
    """Return how long an ended entry was in the queue, without its time in NOT_READY."""
    stay = timedelta()
    state, since = EntryState.NOT_READY, entry.submitted_at
    for move in moves:
        if state is not EntryState.NOT_READY:
            stay += move.at - since
        state, since = move.state, move.at
    return stay


def facts_of(
    before: MergeQueue | None, whole: Step, stays: Mapping[str, timedelta]
) -> Iterator[MetricFact]:
    """Yield all metrics facts of a turn; `stays` are the times of the entries that ended."""
    seen = _Seen(before)
    for recorded in whole.events:
        match recorded.event:
            case EntrySubmitted(entry=entry):
                seen.since[entry] = recorded.at
                yield MetricFact(Kind.SUBMITTED, (recorded.actor.channel.value,))
            case EntryMoved() as moved if moved.origin is not moved.state:
                yield from _of_move(seen, moved, recorded, stays)
            case LandingMismatched():
                yield MetricFact(Kind.MISMATCH, ())
            case TipMoved(landed=False) if before is not None and before.tip is not None:
                yield MetricFact(Kind.EXTERNAL, ())
    for run in whole.finished_runs:
        yield from _of_run(run)


class _Seen:
    """Tracks since when each entry is in its state; types are those at the start of the turn."""

    def __init__(self, before: MergeQueue | None) -> None:
        self._before = before
        self.since: dict[str, datetime] = {}

    def type_of(self, moved: EntryMoved) -> str:
        entry = self._entry(moved)
        if entry is None or self._before is None:
            return MAIN
        return type_of(entry, self._before)

    def left(self, moved: EntryMoved, at: datetime) -> timedelta:
        """Return how long the entry was in the state that it leaves now."""
        entry = self._entry(moved)
        began = self.since.get(moved.entry, at if entry is None else entry.state_since)
        self.since[moved.entry] = at
        return at - began

    def _entry(self, moved: EntryMoved) -> Entry | None:
        if self._before is None:
            return None
        entry = self._before.entries.get(moved.pr)
        return entry if entry is not None and entry.id == moved.entry else None


def type_of(entry: Entry, queue: MergeQueue) -> str:
    """Return `bisection` for an entry in a bisection or proven by a run of one."""
    run = queue.runs.get(entry.run or "")
    is_searched = entry.bisection is not None or (run is not None and run.kind in PROBE_SLOTS)
    return BISECTION if is_searched else MAIN


def type_of_run(kind: RunKind) -> str:
    """`bisection` for probes and confirmations."""
    return BISECTION if kind in PROBE_SLOTS else MAIN


def _of_move(
    seen: _Seen, moved: EntryMoved, recorded: Recorded, stays: Mapping[str, timedelta]
) -> Iterator[MetricFact]:
    queue_type = seen.type_of(moved)
    ms = _ms(seen.left(moved, recorded.at))
    yield MetricFact(Kind.STAYED_IN, (queue_type, moved.origin.value.lower()), ms)
    if moved.origin is EntryState.PENDING and moved.state is EntryState.TESTING:
        yield MetricFact(Kind.WAITED, (queue_type,), ms)
    if moved.origin is EntryState.TESTING:
        yield MetricFact(Kind.TESTED, (queue_type,), ms)
    if moved.origin in UNDER_TEST and moved.state is EntryState.PENDING:
        yield MetricFact(Kind.RESTARTED, (queue_type, moved.reason.value))
    if moved.state in FINAL:
        labels = (queue_type, moved.state.value.lower(), moved.reason.value)
        yield MetricFact(Kind.LEFT, labels, _ms(stays.get(moved.entry, timedelta())))


def _of_run(run: Run) -> Iterator[MetricFact]:
    """Return a run that is over. One that lands a pull request by its own checks tested nothing."""
    if run.kind is RunKind.DIRECT:
        return
    cause = NO_CAUSE if run.cause is None else run.cause.value
    queue_type = type_of_run(run.kind)
    yield MetricFact(Kind.RUN, (queue_type, run.status.value, cause))
    if run.reused_from is not None:
        yield MetricFact(Kind.REUSED, ())
    # While a search goes on its entries are in no state of testing: its runs say how long.
    if run.kind in PROBE_SLOTS and run.finished_at is not None:
        took = MetricFact(Kind.TESTED, (queue_type,), _ms(run.finished_at - run.created_at))
        yield from (took for _ in run.entries)


def _ms(span: timedelta) -> int:
    """Return whole milliseconds, never negative even if the clock was set back."""
    return max(0, span // timedelta(milliseconds=1))
