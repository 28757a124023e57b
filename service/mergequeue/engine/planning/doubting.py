"""Decide whether a failed group leaves the line now, or waits for one that may clear it.

Only with `batchSizing: ADAPTIVE`. While the group stays, its followers run in vain if it is broken;
when it leaves, they restart and lose what they have run so far, unless they run in vain because of
others. The cheaper of the two is done. In a calm line it does not count that others may fail.
"""

from collections.abc import Iterator, Sequence

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.culprits import optimism, verdict
from service.mergequeue.engine.model import Entry, Named, Run
from service.mergequeue.engine.planning import launching, screening
from service.mergequeue.engine.state import bases, holds, ledger
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import RunStatus

DOUBTED_MIN = 0.3
"""Without followers a group leaves when it is broken with at least this chance."""

WAIT_WEIGHT = 2.0
"""How much a minute of waiting in vain weighs against a minute of lost tests: it delays everybody.

In a calm line both weigh the same, and it does not count that others may fail: with 1.5 in place of
1 there, F 60 x 64 has 1.13 / 2.58 at 3.04 runs in place of 1.09 / 2.37 at 2.77 (1501 to 1512).

F 60 x 24, seeds 501 to 503, with 1, 2 and 3: P95 4.01, 2.88 and 3.62.
"""

CALM_FREE_MIN = 0.25
"""If conflicts are frequent, a line is calm only if this share of the slots stays free.

If every line needed it, F 60 x 64 would have 1.13 / 2.30 at 2.87 runs in place of 1.15 / 2.45 at
2.37, and F 30 x 24 0.92 / 1.71 at 1.66 in place of 0.92 / 1.69 at 1.60 (1601 to 1612).
"""

CALM_CONFLICTS_MAX = 0.05
"""Conflicts are frequent if more than this share of the pull requests is in one.

With and without CALM_FREE_MIN, seeds 1701 to 1712: 10 % conflicts 1.68 / 4.06 at 3.48 runs and
2.01 / 4.75 at 2.95, 5 % conflicts 1.04 / 2.10 at 2.13 and 1.06 / 2.23 at 1.97.
"""

TELLING_SHARE = 0.1
"""A run that is overdue is expected to take this share of its time more."""

MINUTES = 20.0
"""What a run takes if nothing is known of its checks."""


def review(draft: Draft) -> None:
    """Put the failed groups out of the line for which it no longer pays to wait."""
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return
    if not draft.places.failing or holds.is_view_stale(draft.queue):
        return
    numbers = sorted(draft.places.failing, key=lambda pr: draft.entries[pr].rank or 0)
    for pr in numbers:
        entry = draft.entries.get(pr)
        if entry is None or pr not in draft.places.failing:
            continue
        run = draft.runs[entry.run or ""]
        if _is_open(draft, run) and is_out(draft, run) and bases.broken(draft, run) is None:
            doubt(draft, run, verdict.failed_of(run))


def is_out(draft: Draft, run: Run) -> bool:
    """Whether a failed run's group leaves the line now.

    It stays if others have caused all that failed, until what is ahead of it is decided. If the
    failed tests are known, it also stays while other suspects of each are under test ahead of it.
    """
    own = draft.own(run)
    if not is_suspect(draft, run) and any(_undecided_ahead(draft, run)):
        return False
    bad = ledger.any_failing(draft, own)
    ahead = (one for one in _undecided_ahead(draft, run) if one.status is RunStatus.IN_PROGRESS)
    behind = _runs_behind(draft, own) if draft.queue.config.can_optimistically_merge else []
    if suspects_ahead(draft, run):
        return False
    if not behind:
        return bad >= DOUBTED_MIN or not any(ahead)
    soonest = min(minutes_left(draft, one) for one in (*behind, *ahead))
    elapsed = sum(_minutes_run(draft, one) for one in behind) / len(behind)
    if _is_calm(draft, run):
        return bad * soonest >= (1.0 - bad) * elapsed
    useful = (1.0 - bad) * _rest_passing(draft, own)
    return bad * soonest * WAIT_WEIGHT >= useful * elapsed


def is_suspect(draft: Draft, run: Run) -> bool:
    """Whether the group of a failed run can have caused any of its failures."""
    believed = ledger.belief_of(draft)
    if not any(believed.is_suspect(entry.id) for entry in draft.own(run)):
        return False
    return believed.other_suspects(run.id, _ids(draft, run)) != []


def suspects_ahead(draft: Draft, run: Run) -> list[Run]:
    """The runs ahead that tell whether the group of a failed run caused what failed.

    Nothing if its failed tests are not known, or if one of those that it can have caused has no
    other suspect under test.
    """
    others = ledger.belief_of(draft).other_suspects(run.id, _ids(draft, run)) or []
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


def doubt(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Take the group of a failed run out: it is tested apart, or convicted.

    What is behind it restarts. If a failed test there has no other suspects, its group would only
    fail again, so it leaves as well. It is never convicted now: it failed on top of this group,
    which may have passed until this moment.
    """
    for one in _culprits_behind(draft, run):
        screening.suspect(draft, one, verdict.failed_of(one))
    own = draft.own(run)
    is_single = len(own) == 1
    if is_single and bases.is_sure(draft, run) and screening.is_rejected(draft, own[0]):
        screening.convict(draft, own[0], run, checks)
        return
    if is_single and draft.queue.config.can_optimistically_merge:
        draft.unwitnessed.add(run.id)
    screening.suspect(draft, run, checks)


def _is_open(draft: Draft, run: Run) -> bool:
    """Whether no search is after its group, and no follower may clear it any more."""
    is_searched = any(entry.bisection is not None for entry in draft.own(run))
    return not is_searched and optimism.is_window_closed(draft, run)


def _culprits_behind(draft: Draft, run: Run) -> list[Run]:
    """The failed runs that contain this group and whose own groups are to blame, the last first."""
    failing = sorted(draft.places.failing, key=lambda pr: -(draft.entries[pr].rank or 0))
    runs = {run_id: draft.runs[run_id] for pr in failing if (run_id := draft.entries[pr].run)}
    behind = (one for one in runs.values() if not set(run.prs).isdisjoint(one.base_prs))
    return [one for one in behind if _is_culprit(draft, one)]


def _is_culprit(draft: Draft, run: Run) -> bool:
    """Whether only the group of a failed run can have caused one of its failed tests."""
    others = ledger.belief_of(draft).other_suspects(run.id, _ids(draft, run)) or []
    if all(others) or ledger.any_failing(draft, draft.own(run)) < DOUBTED_MIN:
        return False
    return _is_open(draft, run) and bases.broken(draft, run) is None


def _ids(draft: Draft, run: Run) -> frozenset[str]:
    return frozenset(entry.id for entry in draft.own(run))


def _is_calm(draft: Draft, run: Run) -> bool:
    """Whether all entries that wait for the line find a slot, and some stay free if need be.

    Conflicts need no free slots if the failed tests are known: the next result often shows the
    cause.
    """
    spare = float(launching.unused(draft))
    names_tests = run.evidence is not None and bool(run.evidence.failed_tests)
    if draft.queue.rates.conflict > CALM_CONFLICTS_MAX and not names_tests:
        spare -= CALM_FREE_MIN * draft.queue.config.concurrency
    waiting = (draft.entries[pr] for _, _, pr in draft.places.waiting)
    return sum(not screening.is_due(draft, entry) for entry in waiting) <= spare


def _rest_passing(draft: Draft, own: Sequence[Entry]) -> float:
    """The chance that nobody else in the line fails: else the followers run in vain anyway."""
    drawn, numbers = bases.graph(draft), {entry.pr for entry in own}
    rest = [draft.entries[pr] for pr in drawn.of if pr not in numbers]
    return 1.0 - ledger.any_failing(draft, rest)


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


def minutes_left(draft: Draft, run: Run) -> float:
    """How long a run will still take."""
    expected = expected_minutes(draft, run)
    return max(expected - _minutes_run(draft, run), TELLING_SHARE * expected)


def _minutes_run(draft: Draft, run: Run) -> float:
    return (draft.now - (run.start_clock or run.created_at)).total_seconds() / 60


def expected_minutes(draft: Draft, run: Run) -> float:
    """How long a run takes: as long as the slowest of its required checks."""
    known = draft.queue.rates.minutes
    measured = [known[one.name] for one in run.required if one.name in known]
    return max(measured, default=MINUTES)
