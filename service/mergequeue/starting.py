"""Which runs start now: slots, order, and what a run is made of (ENGINE.md 8)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.mergequeue import bases, breaker, conviction, holds, landing, line, reuse, settling
from service.mergequeue.draft import Draft
from service.mergequeue.model import Detail, Entry, Member, RequiredSet, Run, RunStep, Tip
from service.mergequeue.outputs import BuildTestBranch, HeadToMerge, RunStarted
from service.mergequeue.places import is_expected
from service.mergequeue.reasons import BREAKER_HOLDS, Reason
from service.mergequeue.states import EntryState, QueueState, RunKind, RunPhase, RunStatus
from service.vocabulary import RequiredName

STEPS_MAX = 200
"""Heads in one test branch, base included (ENGINE.md 2)."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What every run started in one step stands on: tip, required statuses, known trees."""

    tip: Tip
    required: RequiredSet
    known_trees: reuse.Trees


@dataclass(frozen=True, slots=True)
class Plan:
    """A run about to start."""

    kind: RunKind
    entry: Entry
    base: tuple[Member, ...]
    base_tip: Tip
    required: tuple[RequiredName, ...]


def start(draft: Draft) -> None:
    """Start what may start: placed entries, confirmations, then waiting ones."""
    ground = _ground(draft)
    if ground is None:
        return
    if breaker.is_open(draft.queue):
        _start_probe(draft, ground)
        return
    shares = draft.queue.config.bisection_concurrency == 0
    if not shares:
        _confirm(draft, ground)
    done = _start_each(draft, ground, _placed(draft))
    if shares:
        _confirm(draft, ground)
    if done:
        _start_each(draft, ground, _waiting(draft))


def interrupt(draft: Draft) -> None:
    """Put waiting urgent entries where they interrupt.

    Not while nothing may start: tests would be thrown away and nothing begun in their stead.
    """
    waiting = draft.places.waiting
    if not waiting or waiting[0][0] != line.URGENT:
        return
    if _ground(draft) is None or breaker.is_open(draft.queue):
        return
    while waiting and waiting[0][0] == line.URGENT:
        line.interrupt(draft, draft.entries[waiting[0][2]])


def _ground(draft: Draft) -> Ground | None:
    """None when nothing may start at all."""
    queue = draft.queue
    stops = [hold for hold in holds.stops_starts(queue) if hold.reason not in BREAKER_HOLDS]
    if queue.state is not QueueState.RUNNING or stops or queue.kept_move is not None:
        return None
    if queue.tip is None or queue.required is None or queue.required.source is None:
        return None
    if not (draft.places.line or draft.places.waiting):
        return None
    trees = reuse.known_trees(queue, queue.required.names, draft.now)
    return Ground(queue.tip, queue.required, trees)


def _start_probe(draft: Draft, ground: Ground) -> None:
    candidates = [entry for entry in _order(draft) if _is_startable(draft, entry)]
    entry = breaker.next_probe(draft, candidates)
    if entry is None:
        return
    if entry.rank is None:
        entry = line.append(draft, entry)
    line.rotate_to(draft, entry)
    run = _begin(draft, ground, _main(draft, ground, draft.entries[entry.pr]))
    breaker.note_probe(draft, run)


def _start_each(draft: Draft, ground: Ground, entries: Iterator[Entry]) -> bool:
    """Start entries in order; False when one of them cannot, for none is ever skipped."""
    slots = _main_slots(draft)
    for entry in entries:
        if not _is_startable(draft, entry):
            return False
        plan = _main(draft, ground, entry)
        if _is_direct(draft, ground, plan):
            _begin_directly(draft, replace(plan, kind=RunKind.DIRECT))
            continue
        if len(plan.base) >= STEPS_MAX or slots < 1:
            return False
        slots -= 1
        if entry.rank is None:
            plan = replace(plan, entry=line.append(draft, entry))
        _begin(draft, ground, plan)
    return True


def _is_direct(draft: Draft, ground: Ground, plan: Plan) -> bool:
    if plan.base or not landing.is_open(draft):
        return False
    return reuse.may_land_directly(draft, plan.entry, ground.required.names)


def _placed(draft: Draft) -> Iterator[Entry]:
    for _, pr in list(draft.places.line):
        entry = draft.entries[pr]
        if entry.state is EntryState.PENDING and is_expected(entry):
            yield entry


def _waiting(draft: Draft) -> Iterator[Entry]:
    while draft.places.waiting:
        yield draft.entries[draft.places.waiting[0][2]]


def _order(draft: Draft) -> Iterator[Entry]:
    yield from _placed(draft)
    for _, _, pr in draft.places.waiting:
        yield draft.entries[pr]


def _is_startable(draft: Draft, entry: Entry) -> bool:
    is_early = entry.build_after is not None and entry.build_after > draft.now
    return not (entry.unmet or entry.cancel is not None or is_early)


def _main_slots(draft: Draft) -> int:
    config = draft.queue.config
    shares = config.bisection_concurrency == 0
    used = _in_progress(draft, RunKind.MAIN)
    if shares:
        used += _in_progress(draft, RunKind.CONFIRMATION)
    return config.concurrency - used


def _confirmation_slots(draft: Draft) -> int:
    own = draft.queue.config.bisection_concurrency
    if own == 0:
        return _main_slots(draft)
    return own - _in_progress(draft, RunKind.CONFIRMATION)


def _in_progress(draft: Draft, kind: RunKind) -> int:
    return sum(
        run.kind is kind and run.status is RunStatus.IN_PROGRESS for run in draft.runs.values()
    )


def _confirm(draft: Draft, ground: Ground) -> None:
    """Run the trees of undecided failures once more."""
    for entry in conviction.wanting(draft):
        if _confirmation_slots(draft) < 1:
            return
        failed = draft.runs[entry.run or ""]
        added = tuple(one for one in ground.required.names if one not in failed.required)
        plan = Plan(
            kind=RunKind.CONFIRMATION,
            entry=entry,
            base=failed.base,
            base_tip=failed.base_tip,
            required=(*failed.required, *added),
        )
        run = _new_run(draft, plan, fresh=True)
        draft.put(replace(entry, bisection=run.id))
        _build(draft, run, ())


def _main(draft: Draft, ground: Ground, entry: Entry) -> Plan:
    base = bases.ahead(draft, entry)
    return Plan(RunKind.MAIN, entry, base, ground.tip, ground.required.names)


def _begin(draft: Draft, ground: Ground, plan: Plan) -> Run:
    run = _new_run(draft, plan, fresh=plan.entry.fresh)
    _put_into(draft, plan.entry, run)
    _build(draft, run, () if run.fresh else ground.known_trees)
    return run


def _put_into(draft: Draft, entry: Entry, run: Run) -> None:
    testing = replace(draft.entries[entry.pr], run=run.id, build_after=None)
    draft.move(testing, EntryState.TESTING, Reason.TEST_STARTED, Detail(run=run.id))


def _new_run(draft: Draft, plan: Plan, *, fresh: bool) -> Run:
    queue, entry = draft.queue, plan.entry
    run = Run(
        id=draft.name(f"run {queue.next_run}"),
        number=queue.next_run,
        kind=plan.kind,
        entries=(bases.member_of(draft, entry),),
        base=plan.base,
        base_tip=plan.base_tip,
        status=RunStatus.IN_PROGRESS,
        phase=RunPhase.BUILDING,
        required=plan.required,
        required_source=queue.required.source if queue.required else None,
        config=queue.config,
        created_at=draft.now,
        fresh=fresh,
    )
    draft.put_queue(replace(queue, next_run=queue.next_run + 1))
    draft.start(run)
    draft.say(RunStarted(run.id, run.number, run.kind, run.prs, run.base_prs, plan.base_tip.sha))
    return run


def _build(draft: Draft, run: Run, known_trees: reuse.Trees) -> None:
    steps = [_below(draft, member) for member in run.base]
    steps += [HeadToMerge(member.pr, member.head, tested=True) for member in run.entries]
    draft.do(
        BuildTestBranch(
            run=run.id,
            number=run.entries[0].pr,
            target=draft.queue.branch,
            base_tip=run.base_tip,
            steps=tuple(steps),
            known_trees=known_trees,
            bisection=run.kind is RunKind.CONFIRMATION,
        )
    )


def _below(draft: Draft, member: Member) -> HeadToMerge:
    """A head of a base: one object for all the builds of a step."""
    known = draft.heads.get(member.entry)
    if known is None:
        known = draft.heads[member.entry] = HeadToMerge(member.pr, member.head, tested=False)
    return known


def _begin_directly(draft: Draft, plan: Plan) -> None:
    """A run that passed already: the head is the tip with this change, and its checks passed."""
    entry = plan.entry
    if entry.rank is None:
        entry = line.append(draft, entry)
    facts = entry.facts
    run = _new_run(draft, replace(plan, entry=entry), fresh=False)
    tree = facts.head_tree or plan.base_tip.tree
    step = RunStep(entry.pr, entry.head, commit=entry.head, tree=tree, contained=False)
    built = replace(
        run,
        phase=RunPhase.TESTING,
        steps=(step,),
        sha=entry.head,
        checks=facts.own_checks,
        built_at=draft.now,
        start_clock=draft.now,
    )
    draft.put_run(built)
    _put_into(draft, entry, built)
    settling.passed(draft, built, Reason.OWN_CHECKS_PASSED)
