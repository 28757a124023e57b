"""What must hold for turns: S11 of docs/design/invariants.md."""

from collections.abc import Iterator
from itertools import groupby

from service.mergequeue.engine import submitters
from service.mergequeue.engine.config import BatchSizing, FairShares, Mode
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.states import EntryState


def judge(before: MergeQueue, step: Step) -> None:
    """Look at one step. Raises AssertionError."""
    after = step.queue
    if after.config != before.config or after.config.fair_shares is FairShares.OFF:
        return
    _have_one_turn_each(after)
    started = [one for one in _waiting(before) if not _waits(after, one)]
    for entry in _waiting(after):
        known = before.entries.get(entry.pr)
        is_new = known is None or known.id != entry.id or known.state is EntryState.NOT_READY
        reached = shares.reached(before, entry)
        assert not is_new or entry.turn >= reached, f"S11: {entry.pr} gained by waiting elsewhere"
    if after.config.mode is Mode.SINGLE and after.config.batch_sizing is BatchSizing.FIXED:
        _start_in_order(before, after, started)


def _have_one_turn_each(queue: MergeQueue) -> None:
    """Between two turns of a submitter each other one has its own: a stack counts as one entry."""

    def key(entry: Entry) -> tuple[str, int, int]:
        return submitters.submitter_of(entry), entry.priority, entry.turn

    waiting = [one for one in _waiting(queue) if not one.facts.below]
    for (who, _, turn), entries in groupby(sorted(waiting, key=key), key):
        numbers = [one.pr for one in entries]
        assert len(numbers) == 1, f"S11: {who} has {numbers} in turn {turn}"


def _start_in_order(before: MergeQueue, after: MergeQueue, started: list[Entry]) -> None:
    """No entry starts before one of an earlier turn; people and agents do not wait twice."""
    left = [one for one in _waiting(before) if _waits(after, one)]
    begun = [one for one in started if one.pr in after.entries and after.entries[one.pr].run]
    is_split = after.config.fair_shares is FairShares.PEOPLE_AND_AGENTS
    for one in begun:
        for other in left:
            is_same = not is_split or submitters.is_agent(one) is submitters.is_agent(other)
            is_late = other.priority == one.priority and other.waiting_key < one.waiting_key
            assert not (is_same and is_late), f"S11: {one.pr} starts before {other.pr}"
    for known in before.turns if is_split else ():
        mine = [one for one in begun if one.priority == known.priority]
        again = all(submitters.is_agent(one) is known.is_agent_last for one in mine)
        missed = [
            one.pr
            for one in left
            if one.priority == known.priority
            and submitters.is_agent(one) is not known.is_agent_last
        ]
        assert not (mine and again and missed), f"S11: {missed} miss their turn"


def _waiting(queue: MergeQueue) -> Iterator[Entry]:
    for entry in queue.entries.values():
        if entry.rank is None and entry.state is EntryState.PENDING:
            yield entry


def _waits(queue: MergeQueue, entry: Entry) -> bool:
    now = queue.entries.get(entry.pr)
    if now is None or now.id != entry.id:
        return False
    return now.rank is None and now.state is EntryState.PENDING
