"""Choose which runs start now: slots, order, and contents of a run (docs/design/testing.md 3)."""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from service.mergequeue.engine.config import Toggle
from service.mergequeue.engine.culprits import bisecting, breaker
from service.mergequeue.engine.model import Detail, Entry, Run, RunStep
from service.mergequeue.engine.outputs import EntryPlaced
from service.mergequeue.engine.planning import (
    grouping,
    landing,
    launching,
    repeating,
    reuse,
    settling,
    trying,
)
from service.mergequeue.engine.policy import constants, policies
from service.mergequeue.engine.policy.questions import Confirms, Starts
from service.mergequeue.engine.reasons import BREAKER_HOLDS, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, leaving, line, slots, stacks
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import is_expected
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunPhase, RunStatus

STEPS_MAX = 200
"""Heads in one test branch, base included (docs/design/engine.md 6)."""


def start(draft: Draft) -> None:
    """Start what may start: placed entries, probes, then waiting ones.

    Only if something has stirred since this was tried last: half of the steps only change what is
    known of a run under way. 1,406 events of the simulator took 0.61 s, and 0.65 s when each step
    tried to start something (2026-11-24).
    """
    if not draft.is_stirred:
        return
    draft.is_stirred = False
    ground = _ground(draft)
    if ground is None:
        return
    if breaker.is_open(draft.queue):
        trying.start(draft, ground)
        return
    shares = draft.queue.config.bisection_concurrency == 0
    if not shares:
        _bisect(draft, ground)
    blocked = grouping.Reach(not draft.is_parallel)
    if draft.places.idle:
        line.take_places_again(draft)
        _start_each(draft, ground, _placed, blocked)
    if _has_lost_bases(draft):
        return
    if shares:
        _bisect(draft, ground)
    if draft.places.waiting:
        _screen(draft, ground, share=constants.APART_SHARE)
        _start_each(draft, ground, _waiting, blocked)
        _screen(draft, ground, share=1.0)
    if draft.revision != draft.spare_used_at:
        _hedge(draft, ground)
        _look_early(draft, ground)
        _look_twice(draft, ground)
        draft.spare_used_at = draft.revision


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
        entry = draft.entries[waiting[0][2]]
        if entry.facts.below:
            # It may not pass those below it in its stack.
            line.append(draft, entry)
            continue
        line.interrupt(draft, entry)
        _make_room(draft, draft.entries[entry.pr])


def _make_room(draft: Draft, urgent: Entry) -> None:
    """Without a free slot the last of the line in progress gives way, unless a met one does.

    The newest early look gives way before, and if nothing of the line is in progress, the last
    test apart.
    """
    if slots.free(draft) > 0:
        return
    looks = draft.runs.of_kind(RunKind.EARLY_LOOK)
    running = [run for run in looks if run.status is RunStatus.IN_PROGRESS]
    if running:
        draft.retire(running[-1], Reason.INTERRUPTED_BY_URGENT)
        return
    detail = Detail(prs=(urgent.pr,))
    nodes = bases.graph(draft).nodes
    for node in reversed(nodes):
        last = draft.entries[node.members[-1].pr]
        run = draft.runs.get(last.run or "")
        if (
            run is not None
            and run.kind is RunKind.MAIN
            and run.status is RunStatus.IN_PROGRESS
            and last.priority != line.URGENT
        ):
            behind = (last.rank or 0) > (urgent.rank or 0)
            if behind and bases.meets(draft, last, urgent):
                return
            leaving.restart(draft, run, Reason.INTERRUPTED_BY_URGENT, detail)
            return
    screens = draft.runs.of_kind(RunKind.SCREEN)
    for run in sorted(screens, key=lambda run: -run.number):
        if all(entry.priority != line.URGENT for entry in draft.own(run)):
            leaving.restart(draft, run, Reason.INTERRUPTED_BY_URGENT, detail)
            return


def _ground(draft: Draft) -> launching.Ground | None:
    """None when nothing may start at all."""
    queue = draft.queue
    stops = [hold for hold in holds.stops_starts(queue) if hold.reason not in BREAKER_HOLDS]
    if queue.state is not QueueState.RUNNING or stops or queue.kept_move is not None:
        return None
    if queue.tip is None or queue.required is None or queue.required.source is None:
        return None
    if not (draft.places.line or draft.places.waiting):
        return None
    return launching.Ground(queue.tip, queue.required)


def _start_each(
    draft: Draft,
    ground: launching.Ground,
    order_of: Callable[[Draft, Starts], Sequence[int]],
    blocked: grouping.Reach,
) -> None:
    """Start groups in order; none starts before one that it overlaps and that could not start.

    When a group is gathered, runs behind it lose their base. In PARALLEL mode nothing more starts
    before they have been let go: it might start on top of them.
    """
    free = slots.free(draft)
    may_be_direct = draft.queue.config.direct_merge_mode is Toggle.ALWAYS
    starts = policies.policy_of(draft.queue.config).starts(draft)
    order = order_of(draft, starts) if free > 0 or may_be_direct else ()
    for index, pr in enumerate(order):
        is_full = free < 1 and not may_be_direct
        if is_full or blocked.meets_all or _has_lost_bases(draft):
            return
        first = draft.entries.get(pr)
        if first is None or first.state is not EntryState.PENDING:
            continue
        if starts.is_apart(first) or not stacks.may_start(draft, first):
            continue
        if starts.holds_back(first):
            # Those behind are held back too, or impact every target and so meet this one.
            return
        if starts.waits(first) or not is_startable(draft, first) or blocked.meets(first.touches):
            blocked.add(first.touches)
        elif _is_direct(draft, ground, first):
            _begin_directly(draft, ground, first, starts)
        elif free < 1 or not (group := _group(draft, order[index:], free, blocked, starts)):
            blocked.add(first.touches)
        else:
            _begin(draft, ground, _placed_together(draft, group, starts))
            starts.note_start(group)
            free -= 1


def _has_lost_bases(draft: Draft) -> bool:
    """Return whether runs may have lost their base: then nothing starts before they are let go.

    In SINGLE mode a group is never gathered across a run, so none has. With this halt there as well
    F 60 x 24, seeds 911 to 920, has a P95 of 4.07 in place of 3.75.
    """
    return draft.is_parallel and draft.changed_from is not None


def _group(
    draft: Draft,
    order: Sequence[int],
    free: int,
    blocked: grouping.Reach,
    starts: Starts,
) -> list[Entry]:
    """The group to start with the first of these; empty while it has to wait."""
    first = draft.entries[order[0]]
    size = starts.size(len(draft.places.waiting) + len(draft.places.idle), free)
    room = grouping.Room(size, free == 1, blocked, starts)
    behind = _behind(draft, order, starts)
    others = itertools.takewhile(lambda one: not starts.waits(one), behind)
    group = grouping.form(draft, first, others, room)
    waits = False
    if first.rank is None:
        behind = _behind(draft, order, starts)
        follower = next(itertools.islice(behind, len(group) - 1, None), None)
        waits = not grouping.is_complete(draft, group, follower, size)
    while len(group) > 1 and len(bases.ahead(draft, group)) + len(group) > STEPS_MAX:
        group.pop()
    ahead = bases.ahead(draft, group)
    if waits or len(ahead) + len(group) > STEPS_MAX:
        return []
    # Both may overlap an entry between them, though they do not overlap each other.
    may_start = draft.places.idle.isdisjoint([member.pr for member in ahead])
    return group if may_start else []


def _behind(draft: Draft, order: Sequence[int], starts: Starts) -> Iterator[Entry]:
    """The entries behind the first of these: if it is placed, also those of the line with runs."""
    first = draft.entries[order[0]]
    if first.rank is None:
        numbers = order[1:]
    else:
        placed = draft.places.line
        numbers = [pr for _, pr in placed[bisect_right(placed, (first.rank, first.pr)) :]]
    for pr in numbers:
        entry = draft.entries[pr]
        is_there = entry.state is EntryState.PENDING if first.rank is None else is_expected(entry)
        if is_there and not starts.is_apart(entry):
            yield entry


def _placed_together(draft: Draft, group: Sequence[Entry], starts: Starts) -> list[Entry]:
    if group[0].rank is None:
        return [_appended(draft, entry, starts) for entry in group]
    line.gather(draft, group)
    return [draft.entries[entry.pr] for entry in group]


def _appended(draft: Draft, entry: Entry, starts: Starts) -> Entry:
    placed = line.append(draft, entry)
    why = starts.why_placed(placed)
    if why is not None:
        draft.record(EntryPlaced(placed.pr, placed.id, placed.rank, why))
    return placed


def _is_direct(draft: Draft, ground: launching.Ground, entry: Entry) -> bool:
    if not landing.is_open(draft) or not reuse.may_land_directly(
        draft, entry, ground.required.names
    ):
        return False
    return not bases.ahead(draft, (entry,))


def _placed(draft: Draft, _: Starts) -> list[int]:
    idle = (draft.entries[pr] for pr in draft.places.idle)
    return [entry.pr for entry in sorted(idle, key=lambda entry: entry.rank or 0)]


def _waiting(_: Draft, starts: Starts) -> Sequence[int]:
    return starts.in_order()


def _bisect(draft: Draft, ground: launching.Ground) -> None:
    """Start the runs that the searches want."""
    for probe in bisecting.probes_to_start(draft, slots.for_probes(draft)):
        failed = probe.failed
        added = tuple(one for one in ground.required.names if one not in failed.required)
        plan = launching.Plan(
            kind=probe.kind,
            members=probe.bisection.entries[: probe.cut],
            base=probe.bisection.base,
            base_tip=probe.bisection.base_tip,
            required=(*failed.required, *added),
            bisection=probe.bisection.id,
        )
        again = repeating.choice(draft, plan, probe.bisection)
        if again is not None:
            run = repeating.begin(draft, plan, again)
            bisecting.begun(draft, probe.bisection.id, probe.cut, run)
            continue
        run = launching.launch(draft, plan, fresh=probe.kind is RunKind.CONFIRMATION)
        bisecting.begun(draft, probe.bisection.id, probe.cut, run)
        launching.ask_branch(draft, run, anew=not bisecting.skips_known(draft, run))


def _screen(draft: Draft, ground: launching.Ground, share: float) -> None:
    """Try suspects and risky entries apart from the line, in at most this share of the slots."""
    for group in policies.policy_of(draft.queue.config).retests(draft, share):
        members = tuple(draft.member_of(entry) for entry in group)
        plan = launching.Plan(RunKind.SCREEN, members, (), ground.tip, ground.required.names)
        launching.begin(draft, plan, group, fresh=True)


def _begin(draft: Draft, ground: launching.Ground, group: Sequence[Entry]) -> Run:
    fresh = any(entry.fresh for entry in group)
    base = bases.ahead(draft, group)
    members = tuple(draft.member_of(entry) for entry in group)
    plan = launching.Plan(RunKind.MAIN, members, base, ground.tip, ground.required.names)
    return launching.begin(draft, plan, group, fresh=fresh)


def _hedge(draft: Draft, ground: launching.Ground) -> None:
    """Use slots that nothing else can."""
    for hedge in _confirms(draft).hedges(slots.unused(draft)):
        plan = launching.Plan(
            kind=RunKind.HEDGE,
            members=hedge.members,
            base=hedge.base,
            base_tip=ground.tip,
            required=ground.required.names,
            without=hedge.without,
        )
        fresh = any(draft.entries[member.pr].fresh for member in hedge.members)
        launching.begin(draft, plan, fresh=fresh)


def _confirms(draft: Draft) -> Confirms:
    return policies.policy_of(draft.queue.config).confirms(draft)


def _look_early(draft: Draft, ground: launching.Ground) -> None:
    """Test entries alone that the line tests as well, or that wait for it."""
    for entry in _confirms(draft).early_looks():
        members = (draft.member_of(entry),)
        plan = launching.Plan(RunKind.EARLY_LOOK, members, (), ground.tip, ground.required.names)
        launching.begin(draft, plan, fresh=True)


def _look_twice(draft: Draft, ground: launching.Ground) -> None:
    """Start a second look at entries that will probably fail."""
    for entry in _confirms(draft).second_looks():
        members = (draft.member_of(entry),)
        plan = launching.Plan(RunKind.SECOND_LOOK, members, (), ground.tip, ground.required.names)
        launching.begin(draft, plan, fresh=True)


def _begin_directly(draft: Draft, ground: launching.Ground, entry: Entry, starts: Starts) -> None:
    """A run that passed already: the head is the tip with this change, and its checks passed."""
    if entry.rank is None:
        entry = _appended(draft, entry, starts)
    facts = entry.facts
    member = draft.member_of(entry)
    plan = launching.Plan(RunKind.DIRECT, (member,), (), ground.tip, ground.required.names)
    run = launching.launch(draft, plan, fresh=False)
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
    launching.put_into(draft, entry, built)
    settling.passed(draft, built, Reason.OWN_CHECKS_PASSED)
