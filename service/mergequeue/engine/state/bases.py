"""The base of a run, and whether it still holds.

A base is the target's tip and the expected nodes ahead that the run depends on: all of them in
SINGLE mode, in PARALLEL mode those it meets and whatever they meet in turn.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from service.mergequeue.engine import targets
from service.mergequeue.engine.model import Bisection, Entry, LandedStep, Member, Run, RunStep
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.graph import Graph, Node
from service.mergequeue.engine.state.places import Progress, is_expected
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.vocabulary import Sha

SEEN_MERGED = frozenset({Reason.MERGED_BY_HAND, Reason.LANDED_UNRECORDED})
"""The provider shows the pull request as merged, and no landing of the queue says so."""

FOREIGN = 0
"""In the place of a landed pull request: others moved the target, no earlier base holds."""

_EVIDENCE_KINDS = frozenset({RunKind.PROBE, RunKind.CONFIRMATION, RunKind.SCREEN})


@dataclass(frozen=True, slots=True)
class Broken:
    """The reason why a base is broken: the restart code and the pull requests that caused it."""

    reason: Reason
    prs: tuple[int, ...] = ()


def graph(draft: Draft) -> Graph:
    """Return the expected entries of the line with their dependencies; draws what is not drawn."""
    drawn, behind = draft.entries.graph, _undrawn(draft)
    if drawn is not None and not behind:
        return drawn
    if drawn is None:
        drawn = Graph(single=not draft.is_parallel)
    elif drawn is draft.carried_graph:
        drawn = drawn.copy()
    _draw(draft, drawn, behind)
    draft.entries.graph = drawn
    return drawn


def foremost(draft: Draft) -> Iterator[Node]:
    """The nodes that have passed with nothing ahead of them, in line order."""
    drawn = graph(draft)
    found = {drawn.of[pr] for pr in draft.places.verified if pr in drawn.of}
    for place in sorted([place for place in found if not drawn.nodes[place].ahead]):
        yield drawn.nodes[place]


def ahead(draft: Draft, entries: Sequence[Entry]) -> tuple[Member, ...]:
    """The base that these have by their place now, in line order.

    Nodes of the graph keep their place; an entry that is out is placed by its rank, one without
    a rank behind the whole line.
    """
    known = draft.entries.graph
    # A group that has just been placed is drawn when it is in a run: as one node.
    waits = {pr for _, pr in _undrawn(draft)} <= {entry.pr for entry in entries}
    drawn = known if known is not None and waits else graph(draft)
    mask = own = 0
    for entry in entries:
        place = drawn.of.get(entry.pr)
        if place is not None:
            mask |= drawn.nodes[place].ahead
            own |= 1 << place
        else:
            end = None if entry.rank is None else drawn.before(entry.rank)
            mask |= drawn.closure(entry.touches, end)
    return drawn.members(mask & ~own)


def meets(draft: Draft, one: Entry, other: Entry) -> bool:
    """Return whether two entries may influence each other, in this queue's mode."""
    return not draft.is_parallel or targets.meet(one.touches, other.touches)


def below(draft: Draft, run: Run) -> tuple[Member, ...]:
    """Return what is below the first entry of this run, in tested order."""
    for index, member in enumerate(run.entries):
        entry = draft.entry_of(member)
        if entry is not None and entry.run == run.id:
            return (*run.base, *run.entries[:index]) if index else run.base
    return run.base


def broken(draft: Draft, run: Run) -> Broken | None:
    """Why the run's base does not hold; None while it does (docs/design/testing.md 2).

    Since its tip was taken the target received only landings of its own base, or such that meet
    nothing of it; the rest of the base equals what is ahead now; the tip's tree is the predicted
    one if no one else landed.
    """
    own = draft.own(run) or draft.tested(run)
    numbers = {member.pr for member in run.entries}
    tested = [entry for entry in own if entry.pr in numbers]
    made = progress(draft, run)
    if made is not None and made.unproved and run.status is RunStatus.FAILED:
        # Do not blame an entry on top of one that was merged by hand and had not passed.
        return Broken(Reason.AHEAD_MERGED_BY_HAND, made.unproved)
    now_ahead = ahead(draft, tested or own)
    is_ahead_same = made is not None and _unlanded(draft, below(draft, run), made) == now_ahead
    if made is not None and is_ahead_same and is_predicted(draft, run, made):
        return None
    return _why(draft, run, made, now_ahead)


def behind(draft: Draft, first: Entry) -> set[str] | None:
    """The runs whose bases contain an entry with none ahead, and those that are out of the line.

    None while the graph of the line is not drawn to its end.
    """
    drawn = draft.entries.graph
    place = None if drawn is None else drawn.of.get(first.pr)
    if drawn is None or place is None or _undrawn(draft):
        return None
    numbers = [
        member.pr for node in drawn.nodes if node.ahead >> place & 1 for member in node.members
    ]
    found = {draft.entries[pr].run for pr in (*numbers, *draft.places.failing, first.pr)}
    return {run_id for run_id in found if run_id is not None}


def doubt_unforeseen(draft: Draft, behind: set[str]) -> None:
    """After a landing of the first of the line, doubt only bases that did not foresee it.

    The others lost what landed, and so did what is ahead of them now. At 1,000 entries in PARALLEL
    mode the step of a landing took 0.5 ms, and 1.5 ms when it doubted all bases (2026-11-24).
    """
    draft.changed_from = None
    for run_id in behind:
        run = draft.runs.get(run_id)
        made = None if run is None else progress(draft, run)
        if run is not None and (made is None or not is_predicted(draft, run, made)):
            draft.doubted.add(run_id)


def is_sure(draft: Draft, run: Run) -> bool:
    """Return whether everything unlanded of a base that holds has passed, on bases that hold."""
    made = progress(draft, run)
    rest = _unlanded(draft, run.base, made) if made is not None else run.base
    if not all(has_passed(draft, member) for member in rest):
        return False
    proofs = {draft.entries[member.pr].verified_by or "": None for member in rest}
    return all(broken(draft, draft.runs[proof]) is None for proof in proofs)


def is_undone(draft: Draft, bisection: Bisection, failed: Run) -> Broken | None:
    """Return why the base of a bisection is broken, None if it holds.

    Landings of others do not matter: its runs are evidence (docs/design/testing.md 8.3).
    """
    made = progress(draft, failed)
    if made is None:
        return Broken(Reason.TARGET_MOVED)
    if made.unproved:
        return Broken(Reason.AHEAD_MERGED_BY_HAND, made.unproved)
    gone = [
        member for member in _unlanded(draft, bisection.base, made) if not has_passed(draft, member)
    ]
    if not gone:
        return None
    return _why(draft, failed, made, tuple(m for m in bisection.base if m not in gone))


def progress(draft: Draft, run: Run) -> Progress | None:
    """Return what landed since the run's tip was taken; None: something that voids its base.

    A failed run and those that examine it are evidence: landings of others do not spoil it.
    """
    known = draft.progress.get(run.id)
    landed = draft.queue.landed
    if known is not None and (not landed or landed[-1] is known.newest):
        return known
    made = _continued(draft, run, known) if known is not None else None
    if made is None:
        moves = _since(draft, run.base_tip.sha)
        made = None if moves is None else _begun(draft, run, _further(draft, run, moves))
    # What voids a base may have left when it is next asked.
    if made is not None:
        draft.progress[run.id] = made
    return made


def _continued(draft: Draft, run: Run, known: Progress) -> Progress | None:
    """Return what is known of a run with the newer moves of the target; None: look at them all.

    Only landings of this queue are taken in one by one. What the run reaches does not grow: one
    that met nothing of it meets nothing of it later.
    """
    newer: list[LandedStep] = []
    for step in reversed(draft.queue.landed):
        if step is known.newest:
            break
        newer.append(step)
    else:
        return None
    own, landed, others = run.entry_ids, set(known.landed), known.others
    is_evidence, meets_all = _is_evidence(run), not draft.is_parallel
    for step in reversed(newer):
        if step.run is None or step.sha in (run.base_tip.sha, step.before):
            return None
        if step.pr is not None and step.entry in own:
            landed.add(step.pr)
        elif not is_evidence and (meets_all or targets.meet(step.targets, known.reach)):
            return None
        else:
            others = True
    return Progress(frozenset(landed), others, known.unproved, newer[0], known.idle, known.reach)


def _begun(draft: Draft, run: Run, made: Progress | None) -> Progress | None:
    if made is None:
        return None
    newest = draft.queue.landed[-1] if draft.queue.landed else None
    idle = frozenset([step.pr for step in run.steps if step.contained])
    reach = _reach(draft, run) if draft.is_parallel else targets.ALL
    return Progress(made.landed, made.others, made.unproved, newest, idle, reach)


def _further(draft: Draft, run: Run, moves: tuple[LandedStep, ...]) -> Progress | None:
    if not moves:
        return Progress(frozenset(), others=False)
    own = run.entry_ids
    landed: set[int] = set()
    unproved: list[int] = []
    beside: list[LandedStep] = []
    for step in moves:
        if step.pr is not None and step.entry in own:
            landed.add(step.pr)
            unproved += () if step.is_proved else (step.pr,)
        elif step.pr is not None and step.before != step.sha:
            beside.append(step)
    is_evidence = _is_evidence(run)
    spoiling = [step for step in beside if not is_evidence or step.pr == FOREIGN]
    if spoiling and _meets_any(draft, run, spoiling):
        return None
    return Progress(frozenset(landed), bool(beside), tuple(unproved))


def _meets_any(draft: Draft, run: Run, moves: Sequence[LandedStep]) -> bool:
    """Return whether one of these moves of the target may influence the run."""
    if not draft.is_parallel or any(step.targets is None for step in moves):
        return True
    reach = _reach(draft, run)
    return any(targets.meet(step.targets, reach) for step in moves)


def _reach(draft: Draft, run: Run) -> Targets:
    """Return what the live ones of a run and its base touch.

    What has landed of its own batch counts as long as the rest has not: it proves the whole.
    """
    touched = [entry.touches for entry in map(draft.entry_of, run.members) if entry is not None]
    own = {member.pr for member in run.entries}
    touched += [step.targets for step in draft.queue.landed if step.pr in own]
    return targets.union(touched)


def _unlanded(draft: Draft, members: tuple[Member, ...], made: Progress) -> tuple[Member, ...]:
    """Those of the members that matter still: not landed, and not gone without a trace.

    One that brings nothing may leave: the tree is the same without it.
    """
    landed, idle = made.landed, made.idle
    if not landed and not idle:
        return members
    if not idle:
        return tuple([one for one in members if one.pr not in landed])
    return tuple(
        one
        for one in members
        if one.pr not in landed and (one.pr not in idle or draft.entry_of(one))
    )


def has_passed(draft: Draft, member: Member) -> bool:
    """Return whether this entry is there still and has passed."""
    entry = draft.entry_of(member)
    return entry is not None and entry.state is EntryState.TESTS_PASSED


def _since(draft: Draft, sha: Sha) -> tuple[LandedStep, ...] | None:
    """Moves of the target after it last came to `sha`; None when `sha` is no commit we know.

    It can come there twice: a person may accept that it was set back.
    """
    landed = draft.queue.landed
    for index in range(len(landed), 0, -1):
        step = landed[index - 1]
        if step.sha == sha and step.before != sha:
            return landed[index:]
    for index, step in enumerate(landed):
        if step.before == sha:
            return landed[index:]
    tip = draft.queue.tip
    return () if tip is not None and tip.sha == sha else None


def _is_evidence(run: Run) -> bool:
    examines = run.kind in _EVIDENCE_KINDS and run.status is RunStatus.IN_PROGRESS
    return run.status is RunStatus.FAILED or examines


def is_predicted(draft: Draft, run: Run, made: Progress) -> bool:
    """Return whether the tip has the tree that the run foresaw.

    Nothing is foreseen where others landed too, or lanes of the base in another order.
    """
    if _is_evidence(run) or not run.steps or made.others:
        return True

    def is_over(step: RunStep) -> bool:
        # One that brings nothing counts as landed once it has left.
        return step.pr in made.landed or (step.contained and not _is_live(draft, run, step.pr))

    over = list(takewhile(is_over, run.steps))
    if sum(step.pr in made.landed for step in over) < len(made.landed):
        return draft.is_parallel
    tree = over[-1].tree if over else run.base_tip.tree
    tip = draft.queue.tip
    return tip is not None and tip.tree == tree


def _is_live(draft: Draft, run: Run, pr: int) -> bool:
    """Return whether this one of the run or its base is there still."""
    own = (member for member in run.members if member.pr == pr)
    return any(draft.entry_of(member) is not None for member in own)


def _why(draft: Draft, run: Run, made: Progress | None, now_ahead: tuple[Member, ...]) -> Broken:
    """The restart code of a broken base: the first that applies (docs/design/testing.md 2)."""
    landed = made.landed if made is not None else frozenset()
    present = {member.entry for member in now_ahead}
    missing = [
        member
        for member in below(draft, run)
        if member.entry not in present and member.pr not in landed
    ]
    gone = {member: draft.finished_entries.get(member.entry) for member in missing}

    def ended(state: EntryState) -> tuple[int, ...]:
        return tuple(m.pr for m, final in gone.items() if final and final.state is state)

    by_hand = tuple(
        member.pr
        for member, final in gone.items()
        if final is not None and final.reason in SEEN_MERGED
    )
    if by_hand:
        return Broken(Reason.AHEAD_MERGED_BY_HAND, by_hand)
    if made is None:
        return _moved(draft, run)
    if not is_predicted(draft, run, made):
        return Broken(Reason.TARGET_MOVED)
    for state, reason in (
        (EntryState.FAILED, Reason.AHEAD_FAILED),
        (EntryState.CANCELLED, Reason.AHEAD_CANCELLED),
    ):
        if prs := ended(state):
            return Broken(reason, prs)
    out = _out(draft, missing)
    if out:
        return Broken(Reason.AHEAD_OUT, out)
    return _newcomers(draft, run, now_ahead)


def _moved(draft: Draft, run: Run) -> Broken:
    """Others pushed; or one of ours landed beside it that it turned out to meet."""
    steps = [step for step in _since(draft, run.base_tip.sha) or () if step.before != step.sha]
    numbers = {member.pr for member in run.members}
    ours = tuple(step.pr for step in steps if step.pr and step.pr not in numbers)
    foreign = any(step.pr == FOREIGN for step in steps)
    if ours and not foreign:
        return Broken(Reason.AHEAD_CHANGED, ours)
    return Broken(Reason.TARGET_MOVED)


def _out(draft: Draft, missing: Iterable[Member]) -> tuple[int, ...]:
    return tuple(
        member.pr
        for member in missing
        if (entry := draft.entry_of(member)) is not None and not is_expected(entry)
    )


def _newcomers(draft: Draft, run: Run, now_ahead: tuple[Member, ...]) -> Broken:
    built_on = {member.entry for member in run.members}
    extra = tuple(member.pr for member in now_ahead if member.entry not in built_on)
    urgent = tuple(pr for pr in extra if draft.entries[pr].priority == 0)
    if urgent:
        return Broken(Reason.INTERRUPTED_BY_URGENT, urgent)
    if any(draft.entries[pr].run is None or pr in draft.taken_back for pr in extra):
        return Broken(Reason.AHEAD_RETURNED, extra)
    return Broken(Reason.AHEAD_CHANGED, extra)


def _undrawn(draft: Draft) -> list[tuple[int, int]]:
    """The line behind what is drawn of it."""
    known, line = draft.entries.graph, draft.places.line
    if known is None:
        return line
    if not line or line[-1][0] <= known.end:
        return []
    return line[bisect_right(line, known.end, key=lambda place: place[0]) :]


def _draw(draft: Draft, graph: Graph, behind: list[tuple[int, int]]) -> None:
    group: list[Entry] = []
    for _, pr in behind:
        entry = draft.entries[pr]
        if not is_expected(entry):
            continue
        if group and (entry.batch is None or entry.batch != group[0].batch):
            graph.append(_graph_node(draft, group))
            group = []
        group.append(entry)
    if group:
        graph.append(_graph_node(draft, group))
    if behind:
        graph.end = behind[-1][0]


def _graph_node(draft: Draft, group: list[Entry]) -> Node:
    members = tuple([draft.member_of(entry) for entry in group])
    touches: Targets | None = group[0].touches
    if draft.is_parallel:
        landed = _landed_of_batch(draft, group[0])
        if landed or len(group) > 1:
            touches = targets.union((*landed, *(entry.touches for entry in group)))
    return Node(members, group[-1].rank or 0, touches)


def _landed_of_batch(draft: Draft, entry: Entry) -> list[Targets | None]:
    """Return what those of its batch touched that landed before it: a base takes batches whole."""
    batch = entry.batch
    if batch is None:
        return []
    return [move.targets for move in draft.queue.landed if move.batch == batch]
