"""Fair shares: the order of waiting entries inside a priority (docs/design/fair-shares.md 1).

Start-time fair queuing with one unit for each entry. The k-th open entry of a submitter waits for
its k-th turn, counted from the turn that the queue has reached; inside a turn the order is that of
arrival. So where no submitter has two open entries, the order is that of arrival.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from service.mergequeue.engine import submitters
from service.mergequeue.engine.config import FairShares
from service.mergequeue.engine.model import Entry, MergeQueue, Turns
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import Places
from service.mergequeue.engine.states import EntryState


def give_turn(draft: Draft, entry: Entry) -> Entry:
    """Give an entry that becomes ready its turn, and later ones to its submitter's newer entries.

    An entry that was ready before keeps its turn, unless the queue has passed it: time in which it
    could not start earns nothing.
    """
    if draft.queue.config.fair_shares is FairShares.OFF:
        return entry
    submitter = submitters.submitter_of(entry)
    own = [
        one
        for one in draft.entries.values()
        if one.seq is not None
        and one.priority == entry.priority
        and one.pr != entry.pr
        and one.state is not EntryState.NOT_READY
        and submitters.submitter_of(one) == submitter
    ]
    return _deal(draft, [*own, entry], entry)


def note_start(draft: Draft, entry: Entry) -> None:
    """Note that a run tests the entry now: the queue has reached its turn.

    Not if it is tested apart from the line: such entries do not start in the order of turns.
    """
    queue = draft.queue
    if queue.config.fair_shares is FairShares.OFF or entry.rank is None:
        return
    if not queue.turns and not _are_dealt(draft):
        # The first start since the upgrade to a version with turns.
        deal_anew(draft)
        queue = draft.queue
    known = _turns(queue, entry.priority)
    is_agent = _is_apart(queue, entry)
    if is_agent:
        now = replace(known, agents=max(known.agents, entry.turn), is_agent_last=True)
    else:
        now = replace(known, people=max(known.people, entry.turn), is_agent_last=False)
    if now != known:
        others = [one for one in queue.turns if one.priority != entry.priority]
        turns = tuple(sorted((*others, now), key=lambda one: one.priority))
        draft.put_queue(replace(queue, turns=turns))


def deal_anew(draft: Draft) -> None:
    """Forget all turns, and give new ones in the order of arrival: the setting has changed."""
    draft.put_queue(replace(draft.queue, turns=()))
    live = sorted((one for one in draft.entries.values() if one.seq is not None), key=_seq)
    for entry in live:
        if entry.turn:
            draft.put(replace(entry, turn=0))
    if draft.queue.config.fair_shares is FairShares.OFF:
        return
    groups: dict[tuple[str, int], list[Entry]] = {}
    for entry in live:
        if entry.state is not EntryState.NOT_READY:
            group = submitters.submitter_of(entry), entry.priority
            groups.setdefault(group, []).append(draft.entries[entry.pr])
    for own in groups.values():
        _deal(draft, own, own[0])


def _are_dealt(draft: Draft) -> bool:
    """Return whether no submitter has two entries, but for stacks, that wait in one turn."""
    seen = [
        (submitters.submitter_of(one), one.priority, one.turn)
        for one in draft.entries.values()
        if one.rank is None and one.state is EntryState.PENDING and not one.facts.below
    ]
    return len(seen) == len(set(seen))


def _deal(draft: Draft, own: Sequence[Entry], since: Entry) -> Entry:
    """Give turns to a submitter's open entries of one priority, from one on; return that one."""
    earliest = reached(draft.queue, since)
    taken = Counter(one.turn for one in own if one.rank is not None)
    last = max(taken, default=-1)
    start = since
    for one in sorted((one for one in own if one.rank is None), key=_seq):
        first = max(earliest, _of_stack(draft, one, last + taken[last]))
        now = one
        if one.turn < first and _seq(one) >= _seq(since):
            now = replace(one, turn=first)
            draft.put(now)
        start = now if one is since else start
        taken[now.turn] += 1
        last = max(last, now.turn)
    return start


def waiting(draft: Draft) -> list[int]:
    """Return the waiting pull requests in the order in which they start."""
    return in_order(draft.queue, draft.entries, draft.places)


def in_order(queue: MergeQueue, entries: Mapping[int, Entry], places: Places) -> list[int]:
    """Return the waiting pull requests of a queue in the order in which they start.

    With `PEOPLE_AND_AGENTS` people and agents take turns inside a priority, as long as entries of
    both wait; neighbors of one stack stay together.
    """
    if queue.config.fair_shares is not FairShares.PEOPLE_AND_AGENTS:
        return [pr for _, _, pr in places.waiting]
    order: list[int] = []
    for priority, keys in groupby(places.waiting, key=lambda key: key[0]):
        found = [entries[pr] for _, _, pr in keys]
        people = _units([one for one in found if not submitters.is_agent(one)])
        agents = _units([one for one in found if submitters.is_agent(one)])
        if _turns(queue, priority).is_agent_last:
            order += _alternating(people, agents)
        else:
            order += _alternating(agents, people)
    return order


def _of_stack(draft: Draft, entry: Entry, free: int) -> int:
    """Return the turn of the stack that an entry is a member of, else the free one.

    A member has the turn of the one below it as long as that waits too; all members count for what
    comes after the stack.
    """
    below = [draft.entries[pr] for pr in entry.facts.below if pr in draft.entries]
    turns = [
        one.turn
        for one in below
        if one.rank is None
        and one.state is not EntryState.NOT_READY
        and one.priority == entry.priority
    ]
    return max(turns, default=free)


def reached(queue: MergeQueue, entry: Entry) -> int:
    """Return the turn that the queue has reached for entries such as this one."""
    known = _turns(queue, entry.priority)
    return known.agents if _is_apart(queue, entry) else known.people


def _turns(queue: MergeQueue, priority: int) -> Turns:
    return next((one for one in queue.turns if one.priority == priority), Turns(priority))


def _is_apart(queue: MergeQueue, entry: Entry) -> bool:
    """Return whether the entry counts among agents, apart from people."""
    is_split = queue.config.fair_shares is FairShares.PEOPLE_AND_AGENTS
    return is_split and submitters.is_agent(entry)


def _units(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Put neighbors of one stack together."""
    units: list[list[Entry]] = []
    for entry in entries:
        if units and units[-1][-1].pr in entry.facts.below:
            units[-1].append(entry)
        else:
            units.append([entry])
    return units


def _alternating(first: Sequence[list[Entry]], second: Sequence[list[Entry]]) -> Iterator[int]:
    for pair in zip_longest(first, second, fillvalue=()):
        yield from (one.pr for unit in pair for one in unit)


def _seq(entry: Entry) -> int:
    return entry.seq or 0
