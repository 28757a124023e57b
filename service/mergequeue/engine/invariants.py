"""Check what must hold after every step (docs/design/invariants.md 1). Raises, repairs nothing.

`check` looks at what the step wrote and at what that can have broken, so that its cost does
not grow with the queue; `check_whole` looks at everything and is run by the simulations.
E8 (planning again changes nothing) needs a second step and is theirs too.
"""

from bisect import bisect_left
from datetime import datetime
from itertools import chain, takewhile

from service.errors import InvariantBroken
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import NOTHING, Entry, MergeQueue, Run
from service.mergequeue.engine.outputs import EntryMoved, RunStarted
from service.mergequeue.engine.planning import grouping, landing
from service.mergequeue.engine.reasons import CONVICTED, Cause
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, stacks
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import (
    MAIN_SLOTS,
    PROBE_SLOTS,
    SPARE,
    EntryState,
    QueueState,
    RunKind,
    RunStatus,
)
from service.vocabulary import SYSTEM, CheckOutcome

_NEEDS_RUN = {
    EntryState.TESTING: RunStatus.IN_PROGRESS,
    EntryState.TESTS_PASSED: RunStatus.SUCCEEDED,
    EntryState.PENDING_FAILURE: RunStatus.FAILED,
}
_NEEDS_DETAIL = frozenset({EntryState.FAILED, EntryState.CANCELLED})


def check(draft: Draft) -> None:
    """Check what this step wrote. Raises InvariantBroken."""
    for pr in draft.changed:
        entry = draft.entries.get(pr)
        if entry is not None:
            _entry(draft, entry)
    for run_id in draft.changed_runs:
        run = draft.runs.get(run_id)
        if run is not None:
            _run(draft, run)
            _base(draft, run)
    for final in draft.finished_entries.values():
        _final(draft, final)
    _starts(draft)
    _landing(draft)


def check_whole(queue: MergeQueue, now: datetime) -> None:
    """Check everything that can be seen in a value. Raises InvariantBroken."""
    # A plain mapping brings nothing that is known from earlier steps: all is looked at anew.
    draft = Draft(replace(queue, entries=dict(queue.entries)), now, SYSTEM)
    for entry in queue.entries.values():
        _entry(draft, entry)
    for run in queue.runs.values():
        _run(draft, run)
        _base(draft, run)


def _entry(draft: Draft, entry: Entry) -> None:
    run = draft.runs.get(entry.run or "")
    needed = _NEEDS_RUN.get(entry.state)
    if needed is None:
        if entry.run is not None or entry.verified_by is not None or entry.bisection is not None:
            raise InvariantBroken("E2", f"{_name(entry)} has a run")
    elif run is None or run.kind in SPARE or run.status is not needed:
        raise InvariantBroken("E2", f"{_name(entry)} has no run of its own that is {needed.value}")
    is_passed = entry.state is EntryState.TESTS_PASSED
    if is_passed != (entry.verified_by is not None) or entry.verified_by not in (None, entry.run):
        raise InvariantBroken("E2", f"{_name(entry)} is proved by {entry.verified_by}")
    is_apart = run is not None and run.kind is RunKind.SCREEN
    if (needed is not None or entry.held_by) and (entry.rank is None) != is_apart:
        raise InvariantBroken("E1", f"{_name(entry)} has no place, or one without being in line")
    if entry.held_by and entry.state is not EntryState.PENDING:
        raise InvariantBroken("E2", f"{_name(entry)} is held by {entry.held_by}")
    is_failing = entry.state is EntryState.PENDING_FAILURE
    if entry.kept and not is_failing:
        raise InvariantBroken("E2", f"{_name(entry)} is counted on although it has not failed")
    if entry.bisection is not None and (
        not is_failing or entry.bisection not in draft.queue.bisections
    ):
        raise InvariantBroken("E2", f"{_name(entry)} is examined by a search that is over")
    if entry.rank is not None:
        _alone_at_its_rank(draft, entry)


def _alone_at_its_rank(draft: Draft, entry: Entry) -> None:
    line = draft.places.line
    index = bisect_left(line, (entry.rank or 0, 0))
    if line[index][1] != entry.pr or (index + 1 < len(line) and line[index + 1][0] == entry.rank):
        raise InvariantBroken("E1", f"{_name(entry)} shares its rank")


def _run(draft: Draft, run: Run) -> None:
    if run.is_foreseen and run.status is not RunStatus.FAILED:
        raise InvariantBroken("E2", f"run {run.number} goes on with a failure that was foreseen")
    own = draft.own(run)
    is_searched = any(one.run == run.id for one in draft.queue.bisections.values())
    serves = run.kind in SPARE or run.kind is RunKind.TIP or is_searched or draft.is_kept(run)
    if run.bisection is None and not own and not serves:
        raise InvariantBroken("E1", f"run {run.number} belongs to no entry any more")
    if run.bisection is not None and not own and run.bisection not in draft.queue.bisections:
        raise InvariantBroken("E1", f"run {run.number} is of a search that is over")
    for entry in own:
        member = next(one for one in chain(run.entries, run.base) if one.pr == entry.pr)
        if entry.head != member.head:
            raise InvariantBroken("E5", f"run {run.number} tests another head of {member.pr}")
    _complete(draft, run, own)
    tested = [(step.pr, step.head) for step in run.steps]
    if tested and tested != [(one.pr, one.head) for one in run.members]:
        raise InvariantBroken("E5", f"run {run.number} was built of other heads")


def _complete(draft: Draft, run: Run, own: tuple[Entry, ...]) -> None:
    """A batch is whole and adjacent: its missing members have landed or had no changes."""
    if run.kind not in (RunKind.MAIN, RunKind.SCREEN) or not own or own[0].bisection is not None:
        return
    mine = {entry.pr for entry in own}
    if len(run.entries) == 1 and run.entries[0].pr in mine:
        return
    made = bases.progress(draft, run)
    if made is None or holds.is_view_stale(draft.queue):
        return
    has_begun = any(member.pr in made.landed for member in run.entries)
    last = max(index for index, member in enumerate(run.entries) if member.pr in mine or not index)
    for member in run.entries[: last + 1] if has_begun else run.entries:
        is_there = draft.entry_of(member) is not None and run.status is not RunStatus.IN_PROGRESS
        if member.pr not in mine | made.landed | made.idle and not is_there:
            raise InvariantBroken("E1", f"run {run.number} tests {member.pr}, which has left")
    if run.kind is RunKind.MAIN and own[-1].pr in bases.graph(draft).of:
        drawn = bases.graph(draft)
        nodes = {drawn.of.get(entry.pr) for entry in own if entry.batch == run.number}
        if len(nodes) > 1:
            raise InvariantBroken(
                "E1", f"the batch of run {run.number} is not together in the line"
            )


def _base(draft: Draft, run: Run) -> None:
    if holds.is_view_stale(draft.queue) or run.kind is RunKind.SCREEN:
        return
    own = draft.own(run)
    landing = draft.queue.landing
    if not own or own[0].bisection is not None or (landing and landing.run == run.id):
        return
    why = bases.broken(draft, run)
    if why is not None:
        raise InvariantBroken(
            "E3", f"run {run.number} is built on a broken base: {why.reason.value}"
        )


def _final(draft: Draft, entry: Entry) -> None:
    has_evidence = entry.detail != NOTHING or entry.canceller is not None
    if entry.state in _NEEDS_DETAIL and not has_evidence:
        raise InvariantBroken("E7", f"{_name(entry)} left without evidence")
    if entry.state is not EntryState.FAILED or entry.reason not in CONVICTED:
        return
    run = draft.finished_runs.get(entry.run or "")
    if run is None or run.status is not RunStatus.FAILED:
        raise InvariantBroken("E6", f"{_name(entry)} is blamed without a failed run")
    if not _is_shown(run) and not _is_seconded(draft, entry, run):
        raise InvariantBroken("E6", f"{_name(entry)} is blamed by a failure that no check shows")
    for member in run.base:
        ahead = draft.entry_of(member)
        if ahead is not None and ahead.state is not EntryState.TESTS_PASSED:
            raise InvariantBroken("E6", f"{_name(entry)} is blamed on top of {_name(ahead)}")


def _is_shown(run: Run) -> bool:
    """Return whether a check shows the failure now: it has ended, and does not run again."""
    if run.is_foreseen or run.cause is Cause.TIMEOUT:
        return not run.is_foreseen
    return any(one.doom is None for one in verdict.failed_of(run))


def _is_seconded(draft: Draft, entry: Entry, run: Run) -> bool:
    """Return whether another failed run speaks against the entry as well."""
    believed = entry.detail.suspicion
    if believed is not None and believed.alone + believed.together > 1:
        return True
    return any(
        other.id != run.id and other.status is RunStatus.FAILED and entry.id in other.entry_ids
        for other in draft.finished_runs.values()
    )


def _starts(draft: Draft) -> None:
    fresh = [
        draft.runs[run_id]
        for run_id in draft.changed_runs
        if run_id in draft.runs and run_id not in draft.before.runs
    ]
    fresh = [run for run in fresh if run.kind is not RunKind.TIP]
    if not fresh:
        return
    if draft.queue.state is not QueueState.RUNNING and draft.queue.target_mode is None:
        raise InvariantBroken("E4", f"a run started while {draft.queue.state.value}")
    not_waiting: set[str] = set()
    for run in fresh:
        _room(draft, run)
        if run.kind in (RunKind.MAIN, RunKind.SCREEN):
            _size(draft, run)
        for member in run.base if run.bisection is None else ():
            if member.entry in not_waiting:
                continue
            ahead = draft.entry_of(member)
            if ahead is None or ahead.state is not EntryState.PENDING:
                not_waiting.add(member.entry)
            elif not _went_back_after_start(draft, run, ahead):
                raise InvariantBroken("E4", f"run {run.number} began before {member.pr}")


def _went_back_after_start(draft: Draft, run: Run, entry: Entry) -> bool:
    """Return whether an entry came back to PENDING in this step after a run had begun on top of it.

    A failed urgent entry does: it takes its place in the line again, so the run's base holds.
    """
    events = (recorded.event for recorded in reversed(draft.events))
    later = takewhile(lambda one: not (isinstance(one, RunStarted) and one.run == run.id), events)
    return any(
        isinstance(one, EntryMoved)
        and one.entry == entry.id
        and one.origin is not EntryState.PENDING
        for one in later
    )


def _room(draft: Draft, run: Run) -> None:
    config = draft.queue.config
    kinds = MAIN_SLOTS if run.bisection is None else PROBE_SLOTS
    limit = config.concurrency if run.bisection is None else config.bisection_concurrency
    if config.bisection_concurrency == 0:
        kinds, limit = MAIN_SLOTS | PROBE_SLOTS, config.concurrency
    used = draft.runs.in_progress(kinds)
    if used <= limit:
        return
    before = sum(
        one.kind in kinds and one.status is RunStatus.IN_PROGRESS
        for one in draft.before.runs.values()
    )
    if used > before:
        raise InvariantBroken("E4", f"{used} runs in {limit} slots")


def _size(draft: Draft, run: Run) -> None:
    config = draft.queue.config
    limit = config.batching_min_size if config.batch else 1
    own = draft.own(run)
    if all(stacks.is_member(draft, entry) for entry in own):
        if len(run.entries) > 1 and any(map(stacks.is_apart, own)):
            raise InvariantBroken("E4", f"run {run.number} tests a member that must be alone")
        return
    if len(run.entries) > limit:
        raise InvariantBroken("E4", f"run {run.number} tests {len(run.entries)} of {limit}")
    if len(run.entries) == 1:
        return
    for entry in own:
        if grouping.is_isolated(config, entry):
            raise InvariantBroken("E4", f"{_name(entry)} has to be tested alone")


def _landing(draft: Draft) -> None:
    now, before = draft.queue.landing, draft.before.landing
    if now is not None and now.run not in draft.runs:
        raise InvariantBroken("E4", "a run was let go while it lands")
    if now is None or (before is not None and before.number == now.number):
        return
    if draft.queue.config.shadow or not landing.is_open(draft, now.run):
        raise InvariantBroken("E4", "a landing began while the queue lets nothing land")
    run = draft.runs.get(now.run)
    if run is None or run.status is not RunStatus.SUCCEEDED:
        raise InvariantBroken("I2", "a landing began without a passed run")
    _something_ran(run)
    first = run.members[: now.positions[0] - 1]
    mine = {entry.id for entry in draft.own(run)}
    if any(member.entry not in mine and draft.entry_of(member) for member in first):
        raise InvariantBroken("I7", "a landing began before everything in its base had landed")
    _base(draft, run)


def _something_ran(run: Run) -> None:
    """Check that a required check of exactly this tree ran and passed, or none is required.

    A result that was taken over is one of an equal tree, and has no skipped check.
    """
    if not run.required or run.contained or run.reused_from is not None or run.excused:
        return
    passed = CheckOutcome.PASSED
    if all(one.outcome is not passed for one in verdict.standings_of(run)):
        raise InvariantBroken("I2", f"run {run.number} lands although no required check passed")


def _name(entry: Entry) -> str:
    return f"pull request {entry.pr} ({entry.state.value})"
