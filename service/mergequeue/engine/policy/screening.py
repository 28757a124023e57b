"""Choose the entries to test apart from the line, and their pools (docs/design/testing.md 11).

A risky entry is tested first; the entries of a failed batch in pools that will pass about as often
as not, until what is believed of each clears or convicts it. No entry in the line waits for that.
"""

from bisect import bisect_left

from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.policy import batching, constants, early_looks, suspecting
from service.mergequeue.engine.records import Suspect
from service.mergequeue.engine.state import bases, line, shares, slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import EntryState, RunKind

_SCREENS = frozenset({RunKind.SCREEN})


class EntriesToScreen:
    """The waiting entries that have to be tried apart before they may be counted on.

    A risky one need not if the line admits it and no other entry waits for the line. During a pass
    over the waiting entries that does not change when those others start: else a risky one goes
    past another one that waited for them.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        waiting = (draft.entries[pr] for _, _, pr in draft.places.waiting)
        self._others_wait = any(not _is_apart(draft, one) for one in waiting)

    def has(self, entry: Entry) -> bool:
        """Return whether this one has to be tried apart."""
        draft = self._draft
        if not _is_apart(draft, entry):
            return False
        is_suspect = suspecting.belief_of(draft).is_suspect(entry.id)
        return is_suspect or self._others_wait or not is_admitted(draft, entry)


def is_due(draft: Draft, entry: Entry) -> bool:
    """Return whether a waiting entry has to be tried apart as things stand."""
    return _is_apart(draft, entry) and EntriesToScreen(draft).has(entry)


def _is_apart(draft: Draft, entry: Entry) -> bool:
    """Return whether a waiting entry is risky or suspected, and can be tested by itself."""
    if entry.rank is not None:
        return False
    is_exempt = entry.screened or entry.priority == line.URGENT
    is_risky = entry.p_fail > early_looks.risk_max(draft) and not is_exempt
    # The head of one with others below it contains them, so alone it would be tested with those.
    return (is_risky or _is_suspect(draft, entry)) and not entry.facts.below


def _is_suspect(draft: Draft, entry: Entry) -> bool:
    is_suspect = suspecting.belief_of(draft).is_suspect(entry.id)
    return is_suspect and not early_looks.is_as_good_as_before(draft, entry)


def is_admitted(draft: Draft, entry: Entry) -> bool:
    """Return whether a risky entry may enter the line at once: a follower that passes clears it.

    Alone first, an entry takes two runs, one after the other, though most risky ones pass. In the
    line it takes one, but if it fails, what started on it restarts.
    """
    config = draft.queue.config
    if not config.can_optimistically_merge:
        return False
    if slots.unused(draft) < constants.ADMITTED_FREE_MIN * config.concurrency:
        return False
    placed = (draft.entries[pr] for _, pr in draft.places.line)
    tested = [other for other in placed if other.state is not EntryState.TESTS_PASSED]
    for run in draft.runs.of_kind(RunKind.SCREEN):
        tested += draft.own(run)
    chance = suspecting.failing(draft, entry)
    if chance * (1 + len(tested)) <= constants.ADMITTED_DISTURBED_MAX:
        return True
    expected = chance + sum(suspecting.failing(draft, one) for one in tested)
    return expected <= constants.ADMITTED_FAILURES_MAX


def is_overtaken(draft: Draft, entry: Entry, due: EntriesToScreen) -> bool:
    """Return whether an entry that is screened, or must be, comes before this one."""
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


def _is_first(draft: Draft) -> bool:
    """Return whether the first pending entry may be screened now, and no other may."""
    waiting = shares.waiting(draft)
    first = draft.entries[waiting[0]] if waiting else None
    return first is not None and is_due(draft, first) and is_startable(draft, first)


def groups_to_retest(draft: Draft, share: float) -> list[tuple[Entry, ...]]:
    """The pools to test now, in at most this share of the slots.

    Those that failed come before those that are only risky, for others may wait for them.
    """
    limit = int(draft.queue.config.concurrency * share)
    if limit < 1 and _is_first(draft):
        # Half of one slot is none: an entry to be tested apart gets it in its turn, else never.
        limit = 1
    count = min(slots.free(draft), limit - draft.runs.in_progress(_SCREENS))
    if count < 1:
        return []
    believed = suspecting.belief_of(draft)
    due, idle = EntriesToScreen(draft), []
    for pr in shares.waiting(draft):
        entry = draft.entries[pr]
        if due.has(entry) and is_startable(draft, entry):
            chance = suspecting.failing(draft, entry)
            idle.append((chance, entry))
    idle.sort(key=lambda one: not believed.is_suspect(one[1].id))
    return _pools(draft, idle, count) if idle else []


def _pools(draft: Draft, idle: list[tuple[float, Entry]], count: int) -> list[tuple[Entry, ...]]:
    """Pools of these, in their order.

    While slots are scarce, who is in a record waits for another of it that is under test: that
    result may clear it.
    """
    believed, config = suspecting.belief_of(draft), draft.queue.config
    busy = _under_test(draft)
    pools: list[tuple[Entry, ...]] = []
    while idle and len(pools) < count:
        size = batching.size_by_load(draft, len(idle), count - len(pools))
        chance, first = idle.pop(0)
        is_scarce = len(idle) >= count - len(pools)
        if is_scarce and not busy.isdisjoint(believed.records_of(first.id)):
            continue
        least = constants.POOL_CHANCE_MIN
        if believed.is_suspect(first.id):
            least = constants.SUSPECTS_POOL_CHANCE_MIN
        pool, left, rest = [first], 1.0 - chance, []
        for chance, entry in [] if batching.is_isolated_once_failed(config, first) else idle:
            fits = len(pool) < size and left * (1.0 - chance) >= least
            is_held = not busy.isdisjoint(believed.records_of(entry.id))
            if fits and not is_held and not batching.is_isolated_once_failed(config, entry):
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
