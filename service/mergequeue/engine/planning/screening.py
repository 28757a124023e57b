"""Screen entries: test them alone, apart from the line, before any base contains them.

Only with `batchSizing: ADAPTIVE`. A risky entry is tried first; a failure whose base is probably
good puts its group out at once, and the suspects are tried here, in halves, until the culprit
has failed alone often enough. No entry in the line waits for any of it.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Detail, Entry, Named, Run
from service.mergequeue.engine.outputs import EntryPlaced, PlacedWhy
from service.mergequeue.engine.planning import grouping, launching
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, leaving, line
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus

RISK_MAX = 0.05
"""A greater chance of failing is tried alone first."""

BASE_CHANCE_MIN = 0.4
"""A failure blames its group when the chance that its base is good is at least this."""

TOGETHER_MIN = 0.65
"""Risky entries are tried together while the chance that all of them pass is at least this."""

FAILURES_MAX = 3
"""Failures alone of which the last decides, whatever failed before.

Of a risky entry two that share a status are enough; of another two are too often flakes: with 5 %
flaky runs they rejected 0.84 % of the good ones, three reject 0.21 %.
"""

_TIMED_OUT = (Cause.TIMEOUT.value,)


def is_due(draft: Draft, entry: Entry) -> bool:
    """Whether a waiting entry has to be tried alone before it may be counted on."""
    config = draft.queue.config
    if config.batch_sizing is not BatchSizing.ADAPTIVE or entry.rank is not None:
        return False
    if entry.facts.below:
        # Its head contains what is below it, so alone it would be tested with that.
        return False
    if entry.suspected is not None:
        return True
    if entry.screened or entry.priority == line.URGENT:
        return False
    return entry.p_fail > RISK_MAX


def is_overtaken(draft: Draft, entry: Entry) -> bool:
    """Return whether an entry that is screened, or must be, comes before this one."""
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return False
    key = entry.waiting_key
    before = draft.places.waiting[: bisect_left(draft.places.waiting, key)]
    waiting = (draft.entries[pr] for _, _, pr in before)
    tried = (
        other
        for run in draft.runs.of_kind(RunKind.SCREEN)
        for other in draft.own(run)
        if other.waiting_key < key
    )
    return any(
        bases.meets(draft, entry, other)
        for other in (*tried, *(one for one in waiting if is_due(draft, one)))
    )


def is_first(draft: Draft) -> bool:
    """Return whether the first pending entry may be screened now, and no other may."""
    waiting = draft.places.waiting
    first = draft.entries[waiting[0][2]] if waiting else None
    return first is not None and is_due(draft, first) and grouping.is_startable(draft, first)


def wanted(draft: Draft, slots: int) -> list[tuple[Entry, ...]]:
    """The groups to try now, suspects first, for at most so many slots."""
    if slots < 1 or draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return []
    suspects: dict[int, list[Entry]] = {}
    risky: list[Entry] = []
    second: list[tuple[Entry, ...]] = []
    waiting = [draft.entries[pr] for _, _, pr in draft.places.waiting]
    for entry in waiting:
        if entry.facts.below or not grouping.is_startable(draft, entry):
            continue
        if entry.failures or (entry.suspected is not None and entry.taken_apart):
            second.append((entry,))
        elif entry.suspected is not None:
            suspects.setdefault(entry.suspected, []).append(entry)
        elif is_due(draft, entry):
            risky.append(entry)
    tried = _tried(draft) if any(half % 2 for half in suspects) else frozenset()
    groups = [
        group
        for half, entries in sorted(suspects.items())
        # The first half of what failed is still to be tried, and may spare the second.
        if not (half % 2 and half - 1 in tried)
        for group in _pieces(draft, entries)
    ]
    groups += _together(draft, risky, slots - len(groups))
    return [*groups, *second][:slots]


def _tried(draft: Draft) -> frozenset[int]:
    """Return the groups of suspects with an entry that is under test, or may be now.

    An entry that is not ready may stay so for ever: no other waits for that.
    """
    return frozenset(
        entry.suspected
        for entry in draft.entries.values()
        if entry.suspected is not None and (entry.run is not None or _may_be_tried(draft, entry))
    )


def _may_be_tried(draft: Draft, entry: Entry) -> bool:
    is_free = entry.state is EntryState.PENDING and not entry.held_by
    return is_free and grouping.is_startable(draft, entry)


def _pieces(draft: Draft, suspects: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """Suspects as they may be tried together by the settings as they are now."""
    config = draft.queue.config
    alone = [entry for entry in suspects if grouping.is_isolated(config, entry)]
    others = [entry for entry in suspects if not grouping.is_isolated(config, entry)]
    size = config.batching_min_size
    pieces = [tuple(others[start : start + size]) for start in range(0, len(others), size)]
    return [*pieces, *((entry,) for entry in alone)]


def _together(draft: Draft, risky: Sequence[Entry], slots: int) -> list[tuple[Entry, ...]]:
    """Risky entries for the slots: alone, or if slots are scarce several of the less risky."""
    if slots < 1 or not risky:
        return []
    size = grouping.size_of(draft, len(risky), slots)
    groups: list[tuple[Entry, ...]] = []
    rest = list(risky)
    while rest and len(groups) < slots:
        group = [rest.pop(0)]
        chance = 1.0 - group[0].p_fail
        config = draft.queue.config
        others = [] if grouping.is_isolated(config, group[0]) else list(rest)
        for entry in others:
            if grouping.is_isolated(config, entry):
                continue
            left = chance * (1.0 - entry.p_fail)
            if len(group) < size and left >= TOGETHER_MIN:
                group.append(entry)
                rest.remove(entry)
                chance = left
        groups.append(tuple(group))
    return groups


def passed(draft: Draft, run: Run) -> None:
    """Tried alone and green: they are counted on from now on, or land as they are."""
    own = draft.own(run)
    tried = own[0].suspected if own else None
    for entry in own:
        draft.put(replace(entry, screened=True, suspected=None, failures=()))
    if tried is not None:
        _halve(draft, _other_half(draft, tried))
    if _stands_free(draft, run):
        _land_as_it_is(draft, run)
        return
    detail = Detail(run=run.id)
    leaving.restart(draft, run, Reason.SCREEN_PASSED, detail)


def failed(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Tried alone and red: several are halved, one fails when it did so often enough."""
    own = draft.own(run)
    if own and own[0].suspected is not None:
        # One culprit is enough to explain what failed: the other half is as good as before.
        for entry in _other_half(draft, own[0].suspected):
            draft.put(replace(entry, suspected=None))
    if len(own) > 1:
        suspect(draft, run, checks)
        return
    entry = own[0]
    marks = _TIMED_OUT if run.cause is Cause.TIMEOUT else tuple(one.name for one in checks)
    shared = any(set(marks) & set(before) for before in entry.failures)
    needed = failures_max(entry) if shared else FAILURES_MAX
    if len(entry.failures) + 1 >= needed:
        _convict(draft, entry, run, checks)
        return
    draft.put(replace(entry, failures=(*entry.failures, marks)))
    _apart(draft, [draft.entries[entry.pr]], run, checks)


def failures_max(entry: Entry) -> int:
    """Failures alone of one status of which the last decides."""
    return 2 if entry.p_fail > RISK_MAX else FAILURES_MAX


def is_looked_at_again(draft: Draft, entry: Entry) -> bool:
    """Whether an entry that failed alone may be tried alone once more now."""
    return bool(entry.failures) and _may_be_tried(draft, entry)


def suspect(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Put the entries of a failed run out of the line and have them tried apart, in halves."""
    _apart(draft, draft.own(run), run, checks)


def _other_half(draft: Draft, tried: int) -> list[Entry]:
    """Return the entries that wait for this group's result; none if it is a second half."""
    if tried % 2:
        return []
    return [entry for entry in draft.entries.values() if entry.suspected == tried + 1]


def _halve(draft: Draft, group: Sequence[Entry]) -> None:
    """One of the suspects is to blame: test the first half, let the second wait for the result.

    A first half has an even number, its second half the next one.
    """
    if not group:
        return
    number = draft.queue.next_bisection
    number += number % 2
    draft.put_queue(replace(draft.queue, next_bisection=number + 2))
    cut = _cut(group) if len(group) > 1 else 1
    for index, entry in enumerate(group):
        half = number if index < cut else number + 1
        draft.put(replace(draft.entries[entry.pr], suspected=half, kept=False))


def is_to_blame(draft: Draft, run: Run) -> bool:
    """Whether what failed is more probably in the run's own entries than below them."""
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return False
    made = bases.progress(draft, run)
    landed = made.landed if made is not None else frozenset()
    chance = 1.0
    for member in run.base:
        entry = draft.entry_of(member)
        if entry is None or member.pr in landed or entry.state is EntryState.TESTS_PASSED:
            continue
        chance *= 1.0 - grouping.p_fail(entry)
    return chance >= BASE_CHANCE_MIN


def _apart(draft: Draft, group: Sequence[Entry], run: Run, checks: tuple[Named, ...]) -> None:
    """Take entries out of the line, back among the waiting, as suspects."""
    _halve(draft, group)
    detail = Detail(run=run.id, checks=checks)
    leaving.restart(draft, draft.runs[run.id], Reason.SCREEN_FAILED, detail)
    for entry in group:
        now = draft.entries[entry.pr]
        if now.rank is not None:
            draft.put(replace(now, rank=None))
            draft.record(EntryPlaced(now.pr, now.id, None, PlacedWhy.SCREENED))


def _convict(draft: Draft, entry: Entry, run: Run, checks: tuple[Named, ...]) -> None:
    timed_out = run.cause is Cause.TIMEOUT
    if run.cause is None:
        draft.put_run(replace(draft.runs[run.id], cause=Cause.PR_FAULT))
    reason = Reason.RUN_TIMED_OUT if timed_out else Reason.REQUIRED_STATUS_FAILED
    leaving.leave(
        draft, draft.entries[entry.pr], EntryState.FAILED, reason, Detail(run=run.id, checks=checks)
    )


def _stands_free(draft: Draft, run: Run) -> bool:
    """Return whether the passed tree equals the tree in the line: no entry is ahead."""
    made = bases.progress(draft, replace(run, kind=RunKind.MAIN))
    if made is None or not bases.is_predicted(draft, replace(run, kind=RunKind.MAIN), made):
        return False
    own = draft.own(run)
    return not bases.ahead(draft, own) and not any(entry.unmet for entry in own)


def _land_as_it_is(draft: Draft, run: Run) -> None:
    draft.put_run(replace(draft.runs[run.id], kind=RunKind.MAIN))
    for entry in draft.own(run):
        placed = line.append(draft, entry)
        mine = replace(placed, verified_by=run.id, batch=run.number, fresh=False)
        draft.move(mine, EntryState.TESTS_PASSED, Reason.RUN_PASSED, Detail(run=run.id))


def _cut(entries: Sequence[Entry]) -> int:
    """Where to halve a group so that the risk falls into both halves most evenly."""
    weights = [-math.log(1.0 - min(max(grouping.p_fail(one), 0.001), 0.99)) for one in entries]
    total = sum(weights)
    cuts = range(1, len(entries))
    return min(cuts, key=lambda k: (abs(2 * sum(weights[:k]) - total), k), default=1)


WANTED_MIN = 0.3
"""The least chance of being wanted for which a look is begun early."""

SUSPECT_FAILS = 0.75
"""The chance that a suspect fails when tried alone."""

KEPT_FREE = 0.25
"""This share of the slots stays free for new entries."""

_SCREENS = frozenset({RunKind.SCREEN})


def review_second_looks(draft: Draft) -> None:
    """Promote second looks whose turn has come, and end those that are no longer needed."""
    for run in draft.runs.of_kind(RunKind.SECOND_LOOK):
        entry = draft.entry_of(run.entries[0])
        if entry is None or not _may_be_wanted(draft, entry):
            draft.retire(run, Reason.SCREEN_PASSED)
        elif is_looked_at_again(draft, entry):
            if run.status is RunStatus.CANCELLED:
                draft.retire(run, Reason.RETRY_ON_NEW_BRANCH)
            else:
                _let_count(draft, entry, run)


def wanted_second_looks(draft: Draft) -> list[Entry]:
    """Return the entries for a second look while they are screened, the likeliest to fail first."""
    config = draft.queue.config
    slots = launching.unused(draft) - int(config.concurrency * KEPT_FREE)
    if slots < 1 or not draft.runs.in_progress(_SCREENS):
        return []
    looked_at = {run.entries for run in draft.runs.of_kind(RunKind.SECOND_LOOK)}
    found = [
        (_chance(own[0]), own[0])
        for run in draft.runs.of_kind(RunKind.SCREEN)
        if _is_first(run) and run.entries not in looked_at and (own := draft.own(run))
    ]
    found.sort(key=lambda pair: -pair[0])
    return [entry for chance, entry in found[:slots] if chance >= WANTED_MIN]


def _is_first(run: Run) -> bool:
    is_alone = run.kind is RunKind.SCREEN and len(run.entries) == 1
    return is_alone and run.status is RunStatus.IN_PROGRESS


def _chance(entry: Entry) -> float:
    """The chance that the next look will be wanted after the one that is under way."""
    if len(entry.failures) + 1 >= failures_max(entry):
        return 0.0
    return entry.p_fail if entry.suspected is None else SUSPECT_FAILS


def _may_be_wanted(draft: Draft, entry: Entry) -> bool:
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return False
    if entry.state is EntryState.PENDING:
        return entry.suspected is not None and bool(entry.failures)
    run = draft.runs.get(entry.run or "")
    return run is not None and _is_first(run)


def _let_count(draft: Draft, entry: Entry, look: Run) -> None:
    """The look is the entry's own run from now on, and what it found is acted on."""
    run = replace(look, kind=RunKind.SCREEN)
    draft.put_run(run)
    launching.put_into(draft, entry, run)
    if run.status is RunStatus.SUCCEEDED:
        passed(draft, run)
    elif run.status is RunStatus.FAILED:
        failed(draft, run, verdict.failed_of(run))
