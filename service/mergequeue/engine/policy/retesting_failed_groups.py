"""Decide whether a failed group leaves the line now, or waits for one that may clear it.

Only with `batchSizing: ADAPTIVE`. While the group stays, its followers run in vain if it is broken;
when it leaves, they restart and lose what they have run so far, unless they run in vain because of
others. The cheaper of the two is done. In a calm line it does not count that others may fail.
"""

from collections.abc import Iterator, Sequence

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.policy import constants, durations, screening, suspecting
from service.mergequeue.engine.state import bases, slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import RunStatus


def is_out(draft: Draft, run: Run) -> bool:
    """Return whether a failed run's group leaves the line now.

    It stays if others have caused all that failed, until what is ahead of it is decided. If the
    failed tests are known, it also stays while other suspects of each are under test ahead of it.
    """
    own = draft.own(run)
    if not is_suspect(draft, run) and any(_undecided_ahead(draft, run)):
        return False
    bad = suspecting.any_failing(draft, own)
    ahead = (one for one in _undecided_ahead(draft, run) if one.status is RunStatus.IN_PROGRESS)
    behind = _runs_behind(draft, own) if draft.queue.config.can_optimistically_merge else []
    if suspects_ahead(draft, run):
        return False
    if not behind:
        return bad >= constants.LEAVES_CHANCE_MIN or not any(ahead)
    soonest = min(durations.minutes_left(draft, one) for one in (*behind, *ahead))
    elapsed = sum(durations.minutes_run(draft, one) for one in behind) / len(behind)
    if _is_calm(draft, run):
        return bad * soonest >= (1.0 - bad) * elapsed
    useful = (1.0 - bad) * _rest_passing(draft, own)
    return bad * soonest * constants.WAIT_WEIGHT >= useful * elapsed


def is_suspect(draft: Draft, run: Run) -> bool:
    """Return whether the group of a failed run can have caused any of its failures."""
    believed = suspecting.belief_of(draft)
    if not any(believed.is_suspect(entry.id) for entry in draft.own(run)):
        return False
    return believed.other_suspects(run.id, _ids(draft, run)) != []


def suspects_ahead(draft: Draft, run: Run) -> list[Run]:
    """The runs ahead that tell whether the group of a failed run caused what failed.

    Nothing if its failed tests are not known, or if one of those that it can have caused has no
    other suspect under test.
    """
    others = suspecting.belief_of(draft).other_suspects(run.id, _ids(draft, run)) or []
    found: dict[str, Run] = {}
    for suspects in others:
        telling = {
            one.id: one
            for one in _undecided_ahead(draft, run)
            if one.status is RunStatus.IN_PROGRESS and not suspects.isdisjoint(_ids(draft, one))
        }
        if not telling:
            return []
        found |= telling
    return list(found.values())


def is_to_blame(draft: Draft, run: Run) -> bool:
    """Return whether only the group of a failed run can have caused one of its failed tests."""
    others = suspecting.belief_of(draft).other_suspects(run.id, _ids(draft, run)) or []
    return (
        not all(others)
        and suspecting.any_failing(draft, draft.own(run)) >= constants.LEAVES_CHANCE_MIN
    )


def _ids(draft: Draft, run: Run) -> frozenset[str]:
    return frozenset(entry.id for entry in draft.own(run))


def _is_calm(draft: Draft, run: Run) -> bool:
    """Return whether all entries that wait for the line find a slot, and some stay free if need be.

    Conflicts need no free slots if the failed tests are known: the next result often shows the
    cause.
    """
    spare = float(slots.unused(draft))
    names_tests = run.evidence is not None and bool(run.evidence.failed_tests)
    if draft.queue.rates.conflict > constants.CALM_CONFLICTS_MAX and not names_tests:
        spare -= constants.CALM_FREE_MIN * draft.queue.config.concurrency
    waiting = (draft.entries[pr] for _, _, pr in draft.places.waiting)
    return sum(not screening.is_due(draft, entry) for entry in waiting) <= spare


def _rest_passing(draft: Draft, own: Sequence[Entry]) -> float:
    """The chance that nobody else in the line fails: else the followers run in vain anyway."""
    drawn, numbers = bases.graph(draft), {entry.pr for entry in own}
    rest = [draft.entries[pr] for pr in drawn.of if pr not in numbers]
    return 1.0 - suspecting.any_failing(draft, rest)


def _undecided_ahead(draft: Draft, run: Run) -> Iterator[Run]:
    for member in run.base:
        entry = draft.entry_of(member)
        one = None if entry is None else draft.runs.get(entry.run or "")
        if one is not None and one.status is not RunStatus.SUCCEEDED:
            yield one


def _runs_behind(draft: Draft, own: Sequence[Entry]) -> list[Run]:
    drawn = bases.graph(draft)
    place = drawn.of.get(own[0].pr)
    found: dict[str, Run] = {}
    for node in drawn.nodes[place + 1 :] if place is not None else ():
        if node.ahead >> (place or 0) & 1:
            one = draft.runs.get(draft.entries[node.members[-1].pr].run or "")
            if one is not None and one.status is RunStatus.IN_PROGRESS:
                found[one.id] = one
    return list(found.values())
