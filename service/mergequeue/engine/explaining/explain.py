"""Why a pull request is not merged yet: conditions met and open, and what comes next.

docs/design/engine.md 9. Values only; the sentences for people are made in `wording`. What an entry,
its run or the queue decides alone is in `conditions.py`; here is what depends on others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining import conditions, fair_shares, risks
from service.mergequeue.engine.explaining.conditions import (
    Condition,
    ConditionCode,
    Next,
    NextEvent,
)
from service.mergequeue.engine.model import Bisection, Entry, MergeQueue, Run
from service.mergequeue.engine.planning import grouping, shadow
from service.mergequeue.engine.policy import constants, policies, suspecting
from service.mergequeue.engine.policy import entries_on_all_targets as on_all
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, shares
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import (
    GIVES_WAY,
    LANDS,
    MAIN_SLOTS,
    EntryState,
    RunKind,
    RunPhase,
    RunStatus,
)
from service.mergequeue.engine.suspicion import Suspicion
from service.mergequeue.reasons.record import WhoMustAct
from service.vocabulary import SYSTEM


@dataclass(frozen=True, slots=True)
class Explained:
    """The state of an entry with its reason; `next` is None if no condition is open.

    `suspicion` is what is believed of one whose tests failed, None of any other.
    """

    state: EntryState
    reason: Reason
    conditions: tuple[Condition, ...]
    next: NextEvent | None
    suspicion: Suspicion | None = None


def explain(queue: MergeQueue, pr: int, now: datetime) -> Explained:
    """Explain a queued pull request; the first open condition names what comes next.

    Raises KeyError when it is not in the queue: a final entry explains itself by `of_final`.
    """
    return explain_each(queue, (pr,), now)[pr]


def explain_entry(queue: MergeQueue, entry: Entry, now: datetime) -> Explained:
    """Explain the state of an entry; a final entry has a reason and no conditions."""
    live = queue.entries.get(entry.pr)
    if live is None or live.id != entry.id:
        return of_final(entry)
    return explain(queue, entry.pr, now)


def explain_each(queue: MergeQueue, prs: Iterable[int], now: datetime) -> dict[int, Explained]:
    """Explain several queued pull requests, by number: `explain` of each, from one draft."""
    draft = Draft(queue, now, SYSTEM)
    return {pr: _explained(draft, draft.entries[pr]) for pr in prs}


def _explained(draft: Draft, entry: Entry) -> Explained:
    found = tuple(_CONDITIONS[entry.state](draft, entry))
    if entry.state in _LANDS_LATER:
        found += tuple(conditions.landing_holds(draft))
    found += tuple(conditions.not_judged(draft.queue, entry))
    return Explained(
        entry.state,
        entry.reason,
        found,
        _next(draft, entry, found),
        suspecting.suspicion_of(draft, entry),
    )


def of_final(entry: Entry, run: Run | None = None) -> Explained:
    """A submission that has ended: its reason and evidence say it all.

    With the run that failed it also the required checks of that run; the author acts on those that
    did not pass.
    """
    found: list[Condition] = []
    if run is not None and entry.state is EntryState.FAILED:
        found = list(conditions.statuses(run))
    author = WhoMustAct.AUTHOR
    acts = [one if one.met else replace(one, who_must_act=author, at=None) for one in found]
    return Explained(entry.state, entry.reason, tuple(acts), None, entry.detail.suspicion)


def _next(draft: Draft, entry: Entry, found: tuple[Condition, ...]) -> NextEvent | None:
    for one in found:
        if not one.met:
            what = conditions.next_after(one)
            return NextEvent(what, one.at, () if one.word == conditions.OWN else one.prs)
    waits = (entry.build_after, draft.queue.land_after)
    later = [at for at in waits if at is not None and at > draft.now]
    return NextEvent(Next.RETRY, min(later)) if later else None


def _pending(draft: Draft, entry: Entry) -> Iterator[Condition]:
    yield from conditions.may_start(draft)
    free = not entry.held_by
    acts = conditions.who(Reason.CONFLICT_AHEAD, met=free)
    yield Condition(ConditionCode.NO_CONFLICT_AHEAD, free, acts, prs=entry.held_by)
    if entry.unmet:
        yield from conditions.still_ready(entry)
    group = _group(draft, entry)
    together = {one.pr for one in group if one.pr == entry.pr or not one.unmet}
    ahead = _meeting(draft, entry, _before(draft, entry))
    before = tuple(one.pr for one in ahead if one.pr not in together)
    yield Condition(ConditionCode.ITS_TURN, not before, prs=before, count=len(before))
    unready = next((one for one in ahead if one.unmet and one.pr != entry.pr), None)
    if unready is not None:
        yield from conditions.lost_readiness(unready, (unready.pr,))
    yield from fair_shares.share_of(draft, entry)
    yield from _few_runs(draft, entry)
    yield from _few_on_all(draft, entry)
    yield from risks.line_passes(draft, entry)
    yield from _batch(draft, entry, group)
    stopped = tuple(pr for pr in _unstarted_base(draft, group) if pr not in together)
    yield Condition(ConditionCode.BASE_STARTABLE, not stopped, prs=stopped)
    yield _main_slot(draft)
    yield from risks.alone_first(draft, entry)


def _few_runs(draft: Draft, entry: Entry) -> Iterator[Condition]:
    """That few runs are under way, for one that impacts every target."""
    if on_all.is_subject(draft, entry):
        yield Condition(
            ConditionCode.FEW_RUNS,
            not on_all.waits(draft, entry),
            since=entry.state_since,
            count=on_all.runs(draft),
            total=constants.RUNS_BEFORE_ALL_MAX,
        )


def _few_on_all(draft: Draft, entry: Entry) -> Iterator[Condition]:
    """That few follow an undecided one that impacts every target."""
    found = on_all.followers(draft) if on_all.is_follower(draft, entry) else None
    if found is not None:
        yield Condition(
            ConditionCode.FEW_ON_ALL,
            found.count < constants.FOLLOWERS_OF_ALL_MAX,
            since=entry.state_since,
            prs=(found.pr,),
            count=found.count,
            total=constants.FOLLOWERS_OF_ALL_MAX,
        )


def _before(draft: Draft, entry: Entry) -> list[Entry]:
    """Pending entries that the order puts before this one."""
    placed = [one for one in _placed(draft) if entry.rank is None or _rank(one) < entry.rank]
    if entry.rank is not None:
        return placed
    order = on_all.in_order(draft, shares.waiting(draft))
    return placed + [draft.entries[pr] for pr in order[: order.index(entry.pr)]]


def _placed(draft: Draft) -> list[Entry]:
    line_up = [draft.entries[pr] for _, pr in draft.places.line]
    return [one for one in line_up if one.state is EntryState.PENDING and not one.held_by]


def _rank(entry: Entry) -> int:
    return entry.rank or 0


def _meeting(draft: Draft, entry: Entry, others: Sequence[Entry]) -> list[Entry]:
    """Those of the others that this one meets, directly or through others of them; order kept.

    It meets itself, where it is one of them.
    """
    if draft.queue.config.mode is Mode.SINGLE:
        return list(others)
    met, reach = {entry.pr}, entry.touches
    while True:
        found = [one for one in others if one.pr not in met and targets.meet(reach, one.touches)]
        if not found:
            return [one for one in others if one.pr in met]
        met |= {one.pr for one in found}
        reach = targets.union([reach, *(one.touches for one in found)])


def _group(draft: Draft, entry: Entry) -> tuple[Entry, ...]:
    """Return the entries that would start together with this one now, itself included, in order.

    docs/design/testing.md 3: neighbors of one lane, all of them placed or all waiting, none
    isolated.
    """
    config = draft.queue.config
    if _is_apart(draft, entry) or entry.held_by:
        return (entry,)
    candidates = _placed(draft)
    if entry.rank is None:
        candidates = [draft.entries[pr] for pr in shares.waiting(draft)]
    group: list[Entry] = []
    for one in _meeting(draft, entry, candidates):
        is_apart = _is_apart(draft, one)
        if len(group) == config.batching_min_size or is_apart:
            if entry in group:
                break
            group = []
        if not is_apart:
            group.append(one)
    return tuple(group)


def _is_apart(draft: Draft, entry: Entry) -> bool:
    return grouping.is_isolated(draft.queue.config, entry) or on_all.waits(draft, entry)


def _batch(draft: Draft, entry: Entry, group: tuple[Entry, ...]) -> Iterator[Condition]:
    """That a waiting entry's batch is full, or has waited for long enough."""
    config = draft.queue.config
    starts = policies.policy_of(config).waits_until(config, group)
    if entry.rank is not None or grouping.is_isolated(config, entry) or starts is None:
        return
    full = len(group) >= config.batching_min_size or _is_closed(draft, group)
    met = full or starts <= draft.now
    yield Condition(
        ConditionCode.BATCH_COMPLETE,
        met,
        since=entry.state_since,
        prs=tuple(one.pr for one in group if one.pr != entry.pr),
        count=len(group),
        total=config.batching_min_size,
        at=None if met else starts,
    )


def _is_closed(draft: Draft, group: tuple[Entry, ...]) -> bool:
    """Return whether an isolated entry follows; in SINGLE mode no entry passes it."""
    config = draft.queue.config
    if config.mode is not Mode.SINGLE:
        return False
    order = shares.waiting(draft)
    behind = order[order.index(group[-1].pr) + 1 :]
    return any(grouping.is_isolated(config, draft.entries[pr]) for pr in behind)


def _unstarted_base(draft: Draft, group: tuple[Entry, ...]) -> tuple[int, ...]:
    """Entries in the base of the group that have no run yet, in order."""
    members = {member.pr for member in bases.ahead(draft, group)}
    waiting = [pr for _, pr in draft.places.line if pr in members]
    return tuple(pr for pr in waiting if draft.entries[pr].state is EntryState.PENDING)


def _main_slot(draft: Draft) -> Condition:
    config = draft.queue.config
    kinds = set(MAIN_SLOTS)
    if config.bisection_concurrency == 0:
        kinds |= _PROBES
    return _free_slot(_in_progress(draft, kinds), config.concurrency)


def _probe_slot(draft: Draft) -> Condition:
    config = draft.queue.config
    if config.bisection_concurrency == 0:
        return _main_slot(draft)
    return _free_slot(_in_progress(draft, _PROBES), config.bisection_concurrency)


def _in_progress(draft: Draft, kinds: Iterable[RunKind]) -> list[Run]:
    runs = draft.runs.values()
    return [run for run in runs if run.status is RunStatus.IN_PROGRESS and run.kind in kinds]


def _free_slot(running: Sequence[Run], slots: int) -> Condition:
    # Some runs in spare slots give way to any other (docs/design/testing.md 10).
    firm = sum(run.kind not in GIVES_WAY for run in running)
    return Condition(
        ConditionCode.FREE_SLOT,
        firm < slots,
        prs=tuple(sorted({pr for run in running for pr in run.prs})),
        count=len(running),
        total=slots,
    )


def _testing(draft: Draft, entry: Entry) -> Iterator[Condition]:
    run = draft.runs[entry.run or ""]
    built = run.phase is RunPhase.TESTING
    yield from risks.alone_first(draft, entry)
    yield Condition(ConditionCode.BRANCH_BUILT, built, since=run.created_at)
    if not built:
        return
    yield from conditions.statuses(run)
    yield from conditions.evidence(run, draft.now)
    if entry.unmet:
        yield from conditions.still_ready(entry)


def _pending_failure(draft: Draft, entry: Entry) -> Iterator[Condition]:
    run = draft.runs[entry.run or ""]
    search = draft.queue.bisections.get(entry.bisection or "")
    open_ones = tuple(
        member.pr
        for member in run.base
        if (other := draft.entry_of(member)) is not None
        and other.state is not EntryState.TESTS_PASSED
    )
    decided = not open_ones
    yield Condition(ConditionCode.AHEAD_DECIDED, decided, since=run.finished_at, prs=open_ones)
    waits = not decided
    for one in (*_successors(draft, entry, run), *_followers(draft, entry, run)):
        waits = waits or not one.met
        yield one
    yield from conditions.evidence(run, draft.now)
    if search is not None:
        yield from _search(draft, entry, search)
    elif not waits:
        yield from _unsearched(draft, run)


def _successors(draft: Draft, entry: Entry, run: Run) -> Iterator[Condition]:
    """While optimistic merging counts on it: what a pass behind it could still clear."""
    depth = run.config.pending_failure_depth
    if not entry.kept or depth == 0:
        return
    levels = _levels(draft, run)
    near = [(one, level) for one, level in levels if level <= depth]
    running = [one for one, _ in near if one.status is RunStatus.IN_PROGRESS]
    failed = [level for one, level in near if one.status is RunStatus.FAILED]
    done = max(failed, default=0)
    waiting = _startable_behind(draft, entry) if done < depth else ()
    prs = tuple(pr for one in running for pr in one.prs) or waiting[:1]
    yield Condition(
        ConditionCode.SUCCESSORS_DECIDED,
        not prs,
        since=run.finished_at,
        prs=prs,
        count=done,
        total=depth,
    )


def _followers(draft: Draft, entry: Entry, run: Run) -> Iterator[Condition]:
    """While a failed group of adaptive batches stays: another one caused it, or may clear it."""
    behind = [one for one, _ in _levels(draft, run)]
    running = [one for one in behind if one.status is RunStatus.IN_PROGRESS]
    ahead = [*risks.cause_ahead(draft, entry, run), *risks.suspects_ahead(draft, entry, run)]
    yield from ahead or risks.awaited_followers(draft, entry, running)


def _levels(draft: Draft, run: Run) -> list[tuple[Run, int]]:
    """Main runs that have all of this one in their base, with their level.

    See docs/design/testing.md 7.
    """
    mine = set(run.entries)
    behind = [
        one
        for one in draft.runs.values()
        if one.kind is RunKind.MAIN and mine <= set(one.base) and one.id != run.id
    ]
    behind.sort(key=lambda one: len(one.base))
    levels: list[tuple[Run, int]] = []
    for one in behind:
        under = [level for other, level in levels if set(other.entries) <= set(one.base)]
        levels.append((one, 1 + max(under, default=0)))
    return levels


def _startable_behind(draft: Draft, entry: Entry) -> tuple[int, ...]:
    """Pending entries behind this one that would be tested on top of it."""
    if any(not one.met for one in conditions.may_start(draft)):
        return ()
    waiting = [draft.entries[pr] for pr in shares.waiting(draft)]
    behind = [one for one in _placed(draft) if _rank(one) > _rank(entry)] + waiting
    return tuple(one.pr for one in _meeting(draft, entry, behind))


def _search(draft: Draft, entry: Entry, search: Bisection) -> Iterator[Condition]:
    running = [one for one in _in_progress(draft, _PROBES) if one.bisection == search.id]
    if not running:
        yield from conditions.may_start(draft)
        yield _probe_slot(draft)
    failed = draft.runs.get(search.run)
    since = failed.finished_at if failed is not None else entry.state_since
    found = search.hi - search.lo <= 1
    if len(search.entries) > 1:
        yield Condition(
            ConditionCode.BISECTION_DONE,
            found,
            since=since,
            prs=tuple(member.pr for member in search.entries),
            count=search.lo,
            total=search.hi,
            runs=len(running),
        )
    if found:
        suspect = search.entries[search.hi - 1].pr
        began = min((one.created_at for one in running), default=None)
        whose = () if suspect == entry.pr else (suspect,)
        again = next((one for one in running if one.repeats is not None), None)
        yield Condition(
            ConditionCode.CONFIRMED,
            met=False,
            since=began,
            prs=whose,
            word="" if again is None else conditions.REPEATED,
            count=None if again is None else round(again.share * 100),
        )


def _unsearched(draft: Draft, run: Run) -> Iterator[Condition]:
    """A failure that is sure, while no search may begin: its tree has to fail once more."""
    yield from conditions.may_start(draft)
    if len(run.entries) == 1:
        yield Condition(ConditionCode.CONFIRMED, met=False)
    else:
        yield Condition(ConditionCode.BISECTION_DONE, met=False, prs=run.prs)


def _tests_passed(draft: Draft, entry: Entry) -> Iterator[Condition]:
    queue = draft.queue
    if entry.would_land_at is None or not queue.config.shadow:
        yield from _may_land(draft, entry)
    if queue.config.shadow:
        yield Condition(
            ConditionCode.OTHERS_MERGE,
            met=False,
            since=entry.would_land_at,
            at=shadow.leaves_at(entry),
        )


def _may_land(draft: Draft, entry: Entry) -> Iterator[Condition]:
    queue = draft.queue
    yield from conditions.may_land(draft, entry.verified_by, met=queue.state in LANDS)
    run = draft.runs[entry.verified_by or ""]
    unit = [one for one in draft.entries.values() if one.verified_by == run.id]
    together = {one.id for one in unit}
    ahead = tuple(
        member.pr
        for member in run.base
        if draft.entry_of(member) is not None and member.entry not in together
    )
    yield Condition(ConditionCode.AHEAD_LANDED, not ahead, prs=ahead)
    yield from conditions.still_ready(entry)
    for one in sorted(unit, key=_rank):
        if one.id != entry.id:
            yield from conditions.lost_readiness(one, (one.pr,))
    if run.reused_from is None:
        yield from (one for one in conditions.statuses(run) if not one.met)
    yield _landing_free(draft, entry)


def _landing_free(draft: Draft, entry: Entry) -> Condition:
    landing = draft.queue.landing
    if landing is None:
        return Condition(ConditionCode.LANDING_FREE, met=True)
    run = draft.runs.get(landing.run)
    steps = run.steps if run is not None else ()
    prs = tuple(steps[place - 1].pr for place in landing.positions if place <= len(steps))
    return Condition(
        ConditionCode.LANDING_FREE,
        met=False,
        since=landing.since,
        prs=prs,
        word=conditions.OWN if entry.pr in prs else "",
    )


_LANDS_LATER = frozenset({EntryState.PENDING, EntryState.TESTING, EntryState.PENDING_FAILURE})

_PROBES = frozenset({RunKind.PROBE, RunKind.CONFIRMATION})

_CONDITIONS: dict[EntryState, Callable[[Draft, Entry], Iterator[Condition]]] = {
    EntryState.NOT_READY: conditions.of_not_ready,
    EntryState.PENDING: _pending,
    EntryState.TESTING: _testing,
    EntryState.PENDING_FAILURE: _pending_failure,
    EntryState.TESTS_PASSED: _tests_passed,
}
