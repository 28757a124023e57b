"""Screen entries: test them apart from the line, before any base contains them.

Only with `batchSizing: ADAPTIVE`. A risky entry is tried first; the entries of a failed batch are
tried here, in pools that will pass about as often as not, until what is believed of each
(engine/belief.py) clears or convicts it. No entry in the line waits for any of it.
"""

from bisect import bisect_left

from service.mergequeue.engine.belief import CONVICTED_MIN, odds_of
from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.culprits import breaker, failed_tests, verdict
from service.mergequeue.engine.model import Detail, Entry, Named, Run
from service.mergequeue.engine.outputs import EntryPlaced, PlacedWhy
from service.mergequeue.engine.planning import admitting, grouping, launching
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.records import Suspect
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, leaving, ledger, line
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import SPARE, EntryState, RunKind, RunStatus

RISK_MAX = 0.05
"""A greater chance of failing is tried alone first."""

POOL_MIN = 0.6
"""Risky entries are tried together while the chance that all of them pass is at least this."""

SUSPECTS_POOL_MIN = 0.5
"""The same for entries that failed: a pool that passes half of the time tells the most."""


class Due:
    """Which waiting entries have to be tried apart before they may be counted on.

    A risky one need not if the line admits it and no other entry waits for the line. During a pass
    over the waiting entries that does not change when those others start: else a risky one goes
    past another one that waited for them.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        waiting = (draft.entries[pr] for _, _, pr in draft.places.waiting)
        self._others_wait = any(not _is_apart(draft, one) for one in waiting)

    def has(self, entry: Entry) -> bool:
        """Whether this one has to be tried apart."""
        draft = self._draft
        if not _is_apart(draft, entry):
            return False
        is_suspect = ledger.belief_of(draft).is_suspect(entry.id)
        return is_suspect or self._others_wait or not admitting.is_within(draft, entry)


def is_due(draft: Draft, entry: Entry) -> bool:
    """Whether a waiting entry has to be tried apart as things stand."""
    return _is_apart(draft, entry) and Due(draft).has(entry)


def _is_apart(draft: Draft, entry: Entry) -> bool:
    """Whether a waiting entry is risky or suspected, and can be tested by itself."""
    config = draft.queue.config
    if config.batch_sizing is not BatchSizing.ADAPTIVE or entry.rank is not None:
        return False
    is_risky = entry.p_fail > RISK_MAX and not entry.screened and entry.priority != line.URGENT
    # The head of one with others below it contains them, so alone it would be tested with those.
    return (is_risky or ledger.belief_of(draft).is_suspect(entry.id)) and not entry.facts.below


def is_overtaken(draft: Draft, entry: Entry, due: Due) -> bool:
    """Return whether an entry that is screened, or must be, comes before this one."""
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return False
    key = entry.waiting_key
    before = draft.places.waiting[: bisect_left(draft.places.waiting, key)]
    waiting = (draft.entries[pr] for _, _, pr in before)
    if any(due.has(other) and bases.meets(draft, entry, other) for other in waiting):
        return True
    return any(
        other.waiting_key < key and bases.meets(draft, entry, other)
        for run in draft.runs.of_kind(RunKind.SCREEN)
        for other in draft.own(run)
    )


def is_first(draft: Draft) -> bool:
    """Return whether the first pending entry may be screened now, and no other may."""
    waiting = draft.places.waiting
    first = draft.entries[waiting[0][2]] if waiting else None
    return first is not None and is_due(draft, first) and grouping.is_startable(draft, first)


def wanted(draft: Draft, slots: int) -> list[tuple[Entry, ...]]:
    """The pools to try now, for at most so many slots.

    Those that failed come before those that are only risky, for others may wait for them.
    """
    if slots < 1 or draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return []
    believed = ledger.belief_of(draft)
    due, idle = Due(draft), []
    for _, _, pr in draft.places.waiting:
        entry = draft.entries[pr]
        if due.has(entry) and grouping.is_startable(draft, entry):
            chance = ledger.failing(draft, entry)
            idle.append((chance, entry))
    idle.sort(key=lambda one: not believed.is_suspect(one[1].id))
    return _pools(draft, idle, slots) if idle else []


def _pools(draft: Draft, idle: list[tuple[float, Entry]], slots: int) -> list[tuple[Entry, ...]]:
    """Pools of these, in their order.

    While slots are scarce, who is in a record waits for another of it that is under test: that
    result may clear it.
    """
    believed, config = ledger.belief_of(draft), draft.queue.config
    busy = _under_test(draft)
    pools: list[tuple[Entry, ...]] = []
    while idle and len(pools) < slots:
        size = grouping.size_of(draft, len(idle), slots - len(pools))
        chance, first = idle.pop(0)
        is_scarce = len(idle) >= slots - len(pools)
        if is_scarce and not busy.isdisjoint(believed.records_of(first.id)):
            continue
        least = SUSPECTS_POOL_MIN if believed.is_suspect(first.id) else POOL_MIN
        pool, left, rest = [first], 1.0 - chance, []
        for chance, entry in [] if grouping.is_isolated(config, first) else idle:
            fits = len(pool) < size and left * (1.0 - chance) >= least
            is_held = not busy.isdisjoint(believed.records_of(entry.id))
            if fits and not is_held and not grouping.is_isolated(config, entry):
                pool.append(entry)
                left *= 1.0 - chance
            else:
                rest.append((chance, entry))
        if len(pool) > 1:
            idle = rest
        busy |= {run for entry in pool for run in believed.records_of(entry.id)}
        pools.append(tuple(pool))
    return pools


def _under_test(draft: Draft) -> set[str]:
    """The runs of the records of which somebody is tried now."""

    def is_tried(one: Suspect) -> bool:
        entry = draft.entries.get(one.pr)
        if entry is None or entry.id != one.entry:
            return False
        run = draft.runs.get(entry.run or "")
        return run is not None and run.kind is RunKind.SCREEN

    return {
        record.run
        for record in draft.queue.records
        if any(one.chance and is_tried(one) for one in record.suspects)
    }


def passed(draft: Draft, run: Run) -> None:
    """Tried apart and green: they are counted on from now on, or land as they are."""
    own = draft.own(run)
    ledger.clear(draft, own)
    for entry in own:
        draft.put(replace(entry, screened=True))
    if _stands_free(draft, run):
        _land_as_it_is(draft, run)
        return
    detail = Detail(run=run.id)
    leaving.restart(draft, run, Reason.SCREEN_PASSED, detail)


def failed(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Tried apart and red: one that was alone fails if it is probable enough that it is broken."""
    failed_tests.note_failure(draft, run, checks)
    own = draft.own(run)
    if len(own) == 1 and is_rejected(draft, own[0]):
        convict(draft, own[0], run, checks)
    else:
        suspect(draft, run, checks)


def is_looked_at_again(draft: Draft, entry: Entry) -> bool:
    """Whether an entry that failed alone may be tried alone once more now."""
    return bool(ledger.belief_of(draft).failures_alone(entry.id)) and _may_be_tried(draft, entry)


def _may_be_tried(draft: Draft, entry: Entry) -> bool:
    # One that has become urgent has a place in the line, and is tested there.
    is_beside = entry.state is EntryState.PENDING and entry.rank is None
    return is_beside and grouping.is_startable(draft, entry)


def suspect(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Take the entries of a failed run out of the line, back among the waiting, as suspects."""
    group = draft.own(run)
    detail = Detail(run=run.id, checks=checks)
    leaving.restart(draft, draft.runs[run.id], Reason.SCREEN_FAILED, detail)
    for entry in group:
        now = draft.entries[entry.pr]
        if now.rank is not None:
            draft.put(replace(now, rank=None))
            draft.record(EntryPlaced(now.pr, now.id, None, PlacedWhy.SCREENED))


def clear(draft: Draft, entry: Entry, passed: Run) -> None:
    """It passed in another run than its own: it is counted on again."""
    ledger.clear(draft, (entry,))
    draft.put(replace(draft.entries[entry.pr], screened=True))
    run = draft.runs.get(entry.run or "")
    if run is not None and len(draft.own(run)) == 1:
        leaving.restart(draft, run, Reason.SCREEN_PASSED, Detail(run=passed.id))


def convict_by(draft: Draft, entry: Entry, failed: Run) -> None:
    """Reject it by a failed run of its own that it is in no more; its test apart is not needed."""
    own = draft.runs.get(entry.run or "")
    if own is not None:
        detail = Detail(prs=(entry.pr,))
        others = [one.pr for one in draft.own(own) if one.pr != entry.pr]
        back = [leaving.Back(pr, Reason.BATCH_MEMBER_LEFT, detail) for pr in others]
        leaving.send_back(draft, back)
    draft.put(replace(draft.entries[entry.pr], run=failed.id))
    if own is not None:
        draft.retire(draft.runs[own.id], Reason.REQUIRED_STATUS_FAILED)
    convict(draft, draft.entries[entry.pr], failed, verdict.failed_of(failed))


def is_rejected(draft: Draft, entry: Entry, *, at_once: bool = False) -> bool:
    """Whether its failures reject the entry; more are needed while CI may be what fails.

    One failure alone is enough without this question, unless the others came so soon after it that
    one outage can have caused them all (`at_once`).
    That is possible if nothing has passed since the first of them, and probable enough unless the
    entry itself is far more likely to fail. Then failures of runs with other pull requests do not
    count, because one outage can cause all of them, and one more failure is needed while other runs
    are under way that may pass.
    """
    if not ledger.is_convicted(draft, entry):
        return False
    alone = ledger.belief_of(draft).failures_alone(entry.id)
    if len(alone) < 2 and not at_once:
        return True
    outage = breaker.outage_odds(draft, entry, alone[0].run)
    if odds_of(ledger.prior(draft, entry)) >= odds_of(CONVICTED_MIN) * outage:
        return True
    awaits = any(
        run.status is RunStatus.IN_PROGRESS
        and run.kind not in SPARE
        and entry.pr not in (*run.prs, *run.base_prs)
        for run in draft.runs.values()
    )
    too_few = sum(len(record.suspects) > 1 for record in alone) + (1 if awaits else 0)
    return ledger.is_convicted(draft, entry, more=-too_few)


def convict(draft: Draft, entry: Entry, run: Run, checks: tuple[Named, ...]) -> None:
    """Reject the entry because its tests failed in this run."""
    timed_out = run.cause is Cause.TIMEOUT
    if run.cause is None:
        draft.put_run(replace(draft.runs[run.id], cause=Cause.PR_FAULT))
    reason = Reason.RUN_TIMED_OUT if timed_out else Reason.REQUIRED_STATUS_FAILED
    believed = ledger.suspicion_of(draft, entry, is_convicted=True)
    detail = Detail(run=run.id, checks=checks, suspicion=believed)
    leaving.leave(draft, draft.entries[entry.pr], EntryState.FAILED, reason, detail)


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


WANTED_MIN = 0.3
"""The least chance of being wanted for which a look is begun early."""

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
    """Return the entries for a second look while they are screened, the likeliest to fail first.

    One that a single failure more would convict needs none.
    """
    config = draft.queue.config
    slots = launching.unused(draft) - int(config.concurrency * KEPT_FREE)
    is_adaptive = config.batch_sizing is BatchSizing.ADAPTIVE
    if not is_adaptive or slots < 1 or not draft.runs.in_progress(_SCREENS):
        return []
    looked_at = {run.entries for run in draft.runs.of_kind(RunKind.SECOND_LOOK)}
    found: list[tuple[float, Entry]] = []
    for run in draft.runs.of_kind(RunKind.SCREEN):
        entry = draft.entry_of(run.entries[0]) if _is_first(run) else None
        if entry is None or entry.run != run.id:
            continue
        chance = ledger.failing(draft, entry)
        if chance < WANTED_MIN or run.entries in looked_at:
            continue
        if not ledger.is_convicted(draft, entry, more=1):
            found.append((chance, entry))
    found.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in found[:slots]]


def _is_first(run: Run) -> bool:
    is_alone = run.kind is RunKind.SCREEN and len(run.entries) == 1
    return is_alone and run.status is RunStatus.IN_PROGRESS


def _may_be_wanted(draft: Draft, entry: Entry) -> bool:
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return False
    if entry.state is EntryState.PENDING:
        return bool(ledger.belief_of(draft).failures_alone(entry.id))
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
