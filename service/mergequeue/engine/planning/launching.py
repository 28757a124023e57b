"""Making a run: its value, its event, and the test branch it asks for.

See docs/design/testing.md 3; docs/design/engine.md 8.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from service.mergequeue.engine.model import Detail, Entry, Member, RequiredSet, Run, Tip
from service.mergequeue.engine.outputs import BuildTestBranch, HeadToMerge, RunStarted
from service.mergequeue.engine.planning import hedging, reuse
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import shares, slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import (
    PROBE_SLOTS,
    SPARE,
    EntryState,
    RunKind,
    RunPhase,
    RunStatus,
)
from service.vocabulary import RequiredName


@dataclass(frozen=True, slots=True)
class Ground:
    """The tip and required statuses that all runs started in one step share."""

    tip: Tip
    required: RequiredSet


@dataclass(frozen=True, slots=True)
class Plan:
    """A run about to start."""

    kind: RunKind
    members: tuple[Member, ...]
    base: tuple[Member, ...]
    base_tip: Tip
    required: tuple[RequiredName, ...]
    bisection: str | None = None
    without: tuple[str, ...] = ()


def begin(draft: Draft, plan: Plan, group: Sequence[Entry] = (), *, fresh: bool) -> Run:
    """Start a run that tests this group from now on, and order its test branch.

    Without a group the run is one in a spare slot: its entries stay in the run that they have.
    """
    run = launch(draft, plan, fresh=fresh)
    for entry in group:
        put_into(draft, entry, run)
    ask_branch(draft, run, anew=fresh)
    return run


def launch(draft: Draft, plan: Plan, *, fresh: bool) -> Run:
    """Begin a run; those in spare slots give way until a slot is free for it.

    Each start has found a slot that is free, or used by a run in a spare slot.
    """
    if plan.kind in slots.in_main(draft) - SPARE:
        # More than one, where there are fewer slots now than when they began.
        while slots.unused(draft) < 1:
            hedging.give_way(draft)
    queue = draft.queue
    run = Run(
        id=draft.name(f"run {queue.next_run}"),
        number=queue.next_run,
        kind=plan.kind,
        entries=plan.members,
        base=plan.base,
        base_tip=plan.base_tip,
        status=RunStatus.IN_PROGRESS,
        phase=RunPhase.BUILDING,
        required=plan.required,
        required_source=queue.required.source if queue.required else None,
        config=queue.config,
        created_at=draft.now,
        fresh=fresh,
        bisection=plan.bisection,
        without=plan.without,
    )
    draft.put_queue(replace(queue, next_run=queue.next_run + 1))
    draft.start(run)
    draft.record(RunStarted(run.id, run.number, run.kind, run.prs, run.base_prs, plan.base_tip.sha))
    return run


def put_into(draft: Draft, entry: Entry, run: Run) -> None:
    """The run tests the entry from now on."""
    known = draft.entries[entry.pr]
    shares.note_start(draft, known)
    testing = replace(known, run=run.id, batch=run.number, wide=known.targets, build_after=None)
    draft.move(testing, EntryState.TESTING, Reason.TEST_STARTED, Detail(run=run.id))


def ask_branch(draft: Draft, run: Run, *, anew: bool) -> None:
    """Order the test branch of a run; `anew` retests a tree that has already passed."""
    known_trees = () if anew else reuse.known_trees(draft)
    known = draft.heads
    steps = [known.get(member.entry) or _below(draft, member) for member in run.base]
    steps += [HeadToMerge(member.pr, member.head, tested=True) for member in run.entries]
    draft.request(
        BuildTestBranch(
            run=run.id,
            number=run.entries[0].pr,
            target=draft.queue.branch,
            base_tip=run.base_tip,
            steps=tuple(steps),
            known_trees=known_trees,
            bisection=run.kind in PROBE_SLOTS,
        )
    )


def _below(draft: Draft, member: Member) -> HeadToMerge:
    """A head of a base: one object for all the builds of a step."""
    head = draft.heads[member.entry] = HeadToMerge(member.pr, member.head, tested=False)
    return head
