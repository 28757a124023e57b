"""What must hold for the members of a stack: S10 of docs/design/invariants.md."""

from collections.abc import Sequence, Set
from itertools import pairwise

from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.reported import Facts
from service.vocabulary import BlockerCode


def is_unit(numbers: Sequence[int], queue: MergeQueue) -> bool:
    """Whether each of several entries rests on the one before it."""
    entries = [queue.entries[pr] for pr in numbers if pr in queue.entries]
    pairs = pairwise(entries)
    return len(entries) > 1 and all(lower.pr in upper.facts.below for lower, upper in pairs)


def tested_early(run: Run, queue: MergeQueue) -> int | None:
    """The first that a run tests without what is below it in its stack, None if there is none."""
    before = {step.pr for step in queue.landed} | {member.pr for member in run.base}
    for pr in run.prs:
        entry = queue.entries.get(pr)
        if entry is not None and _waits_below(entry.facts, before):
            return pr
        before.add(pr)
    return None


def lands_early(facts: Facts, action: Land, queue: MergeQueue) -> bool:
    """Whether something below it in its stack neither has landed nor lands with it."""
    numbers = [step.pr for step in action.steps]
    with_it = numbers[: numbers.index(facts.pr)]
    return _waits_below(facts, {step.pr for step in queue.landed} | set(with_it))


def _waits_below(facts: Facts, done: Set[int | None]) -> bool:
    names = [each.name for each in facts.blockers if each.code is BlockerCode.STACKED]
    return any(name is None or not set(map(int, name.split())) <= done for name in names)
