"""Faults of batches, lanes, searches for a culprit and optimistic merging."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from service.mergequeue.engine import inputs, targets
from service.mergequeue.engine.applying import commands
from service.mergequeue.engine.config import ConfirmFailures, QueueConfig
from service.mergequeue.engine.culprits import bisecting, optimism, verdict
from service.mergequeue.engine.model import Bisection, Detail, Entry, LandedStep, LandMode, Run, Tip
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.planning import grouping, landing, plan, settling, starting
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state import bases, graph, leaving
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import Progress, is_expected
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.engine.targets import Targets
from service.vocabulary import MergeMethod
from tests.exhaustive.scopes import Scope
from tests.planted.planting import Fault, Patch, applied, replaced
from tests.simulation.settings import EVERYTHING, SINGLE_ONLY

LANES = replace(SINGLE_ONLY, parallel=1.0)
BATCHES = replace(SINGLE_ONLY, batch=1.0, rules=0.5)
OPTIMISTIC = replace(SINGLE_ONLY, optimistic=1.0)
SWITCHING = replace(SINGLE_ONLY, parallel=0.5, switches=1.0)
ALL_BUT_SCREENS = replace(EVERYTHING, adaptive=0.0)


TWO_AT_ONCE = Scope(
    "two results at one instant",
    QueueConfig(
        concurrency=2,
        can_optimistically_merge=True,
        not_ready_timeout_hours=0,
        confirm_failures=ConfirmFailures.BISECTION,
    ),
    pull_requests=2,
    inputs=6,
    inputs_long=6,
    late=True,
)
"""A failure is settled in the very step in which a follower passes: histories hardly show it."""


def _clears_everybody(draft: Draft, run: Run) -> None:
    """B14: whoever stands ahead is cleared, in the run's base or not."""
    _clear(draft, run)
    own = draft.own(run)
    if not draft.queue.config.can_optimistically_merge or not own:
        return
    for _, pr in list(draft.places.line):
        entry = draft.entries[pr]
        if entry.state is EntryState.PENDING_FAILURE and (entry.rank or 0) < (own[0].rank or 0):
            passed = replace(entry, run=run.id, verified_by=run.id, kept=False, bisection=None)
            draft.move(passed, EntryState.TESTS_PASSED, Reason.SUCCESSOR_PASSED, Detail(run=run.id))


_clear = optimism.clear


def _meet_by_name(one: Targets | None, other: Targets | None) -> bool:
    """B15: `ALL` is a name like any other, and who says nothing meets nobody."""
    return one is not None and other is not None and not one.names.isdisjoint(other.names)


def _names_alone(patch: Patch) -> None:
    patch.setattr(targets, "meet", _meet_by_name)
    patch.setattr(graph.Graph, "_ahead_of_last", _ahead_by_name)


def _ahead_by_name(self: graph.Graph, touches: Targets | None) -> int:
    return _ahead_of_last(self, Targets(touches.names) if touches is not None else Targets())


_ahead_of_last = graph.Graph._ahead_of_last


def _blames_unseen(draft: Draft, before: Bisection, after: Bisection) -> None:
    """B20: the upper part of what failed is blamed without a run of it."""
    _narrow(draft, before, replace(after, lo=after.hi - 1))


_narrow = bisecting._narrow


def _opens_narrow(draft: Draft, run: Run) -> None:
    """B20, at once: the last of a failed batch is blamed."""
    _open(draft, run)
    for one in list(draft.queue.bisections.values()):
        if one.run == run.id:
            draft.put_bisection(replace(one, lo=one.hi - 1))


_open = bisecting._open


def _guessing(patch: Patch) -> None:
    patch.setattr(bisecting, "_narrow", _blames_unseen)
    patch.setattr(bisecting, "_open", _opens_narrow)


def _unsure(patch: Patch) -> None:
    patch.setattr(bases, "is_sure", lambda draft, run: True)
    patch.setattr(bases, "is_undone", lambda draft, bisection, failed: None)


def _failures_first(draft: Draft) -> None:
    """Failures are settled before passes, and decided at once."""
    due = [
        run
        for run in draft.runs.values()
        if run.id in draft.judging or (run.deadline is not None and run.deadline <= draft.now)
    ]
    failing = [
        run.id
        for run in due
        if not verdict.verdict_of(run, draft.now, draft.queue.sends_results).is_green
    ]
    later = draft.judging - set(failing)
    if failing and later:
        draft.judging -= later
        _settle(draft)
        bisecting.bisect(draft)
        draft.judging |= {run for run in later if run in draft.runs}
    _settle(draft)


_settle = settling.settle


def _settles_failures_first(patch: Patch) -> None:
    passes = tuple(
        replace(one, apply=_failures_first) if one.apply is _settle else one for one in plan.PASSES
    )
    patch.setattr(plan, "PASSES", passes)


def _loners(draft: Draft, drawn: graph.Graph, behind: list[tuple[int, int]]) -> None:
    """Bases take parts of batches: every entry is a node of its own."""
    for rank, pr in behind:
        entry = draft.entries[pr]
        if is_expected(entry):
            drawn.append(bases._graph_node(draft, [entry]))
        drawn.end = rank


def _parts(draft: Draft, entries: Sequence[Entry]) -> tuple:
    """Bases take parts of batches: the last member of one that is tested stays out."""
    members = _ahead(draft, entries)
    if not members:
        return members
    last = draft.entry_of(members[-1])
    run = draft.runs.get(last.run or "") if last is not None else None
    return members[:-1] if run is not None and len(run.entries) > 1 else members


_ahead = bases.ahead


class _Careless(grouping.Reach):
    """Nobody is in the way of joining a group."""

    def copy(self) -> grouping.Reach:
        return _Careless(self.single)

    def meets(self, touches: Targets | None) -> bool:
        return False


def _over_others(self: grouping.Reach) -> grouping.Reach:
    return _Careless(self.single)


def _any_search(draft: Draft, run: Run) -> Bisection:
    """A probe counts for another search than its own."""
    others = [one for one in draft.queue.bisections.values() if one.id != run.bisection]
    return others[0] if others and run.bisection is not None else _of(draft, run)


_of = bisecting._of


def _half_places(draft: Draft, run: Run) -> tuple[int, ...]:
    """Those whom a run cleared land without those it tested."""
    places = _places(draft, run)
    cleared = tuple(place for place in places if place <= len(run.base))
    return cleared or places


def _apart(patch: Patch) -> None:
    patch.setattr(landing, "_places", _half_places)
    patch.setattr(landing, "_mode", _always_whole)


def _always_whole(draft: Draft, run: Run, tip: Tip) -> LandMode:
    is_cas = draft.queue.config.merge_method is MergeMethod.MERGE_COMMIT
    return LandMode.CAS if is_cas else _mode(draft, run, tip)


_places, _mode = landing._places, landing._mode


def _starts_while_switching(draft: Draft) -> object:
    queue = draft.queue
    if queue.state is not QueueState.SWITCHING_MODES:
        return _ground(draft)
    draft.queue = replace(queue, state=QueueState.RUNNING)
    ground = _ground(draft)
    draft.queue = queue
    return ground


_ground = starting._ground


def _growth_waits(draft: Draft, one: inputs.SetImpactedTargets) -> Refused | None:
    """What a pull request touches more than it said counts from its next run on."""
    entry = draft.entries.get(one.pr)
    wide = entry.wide if entry is not None else None
    refusal = commands.set_impacted_targets(draft, one)
    now = draft.entries.get(one.pr)
    if now is not None and now.run is not None:
        draft.put(replace(now, wide=wide))
    return refusal


def _unknown_is_beside(draft: Draft, run: Run, moves: tuple[LandedStep, ...]) -> Progress | None:
    """Who moves the branch and does not say what he touched, touches nothing."""
    vague = (None, targets.ALL)
    moves = tuple(replace(m, targets=targets.of(())) if m.targets in vague else m for m in moves)
    return _further(draft, run, moves)


_further = bases._further


def _one_cut(bisection: Bisection, count: int) -> tuple[int, ...]:
    """The parts of a search are tried one after another."""
    return _cuts_of(bisection, min(count, 1))


_cuts_of = bisecting.cuts_of


def _mates_stay(draft: Draft, run: Run, entry: Entry, behind: Reason) -> None:
    """Those who shared a run with one that left go on in it."""


def _lands_out_of_turn(patch: Patch) -> None:
    """A unit lands before what it stands on."""
    patch.setattr(landing, "_may_land", _first_of_any)
    patch.setattr(bases, "foremost", lambda draft: bases.graph(draft).nodes)


def _first_of_any(draft: Draft, run: Run) -> bool:
    """A unit lands before what it stands on."""
    return verdict.verdict_of(run, draft.now, draft.queue.sends_results).is_green


def _together(config: object, entry: Entry) -> bool:
    return False


def _complete(draft: Draft, group: Iterable[Entry], follower: Entry | None, size: int) -> bool:
    """Nobody ever has enough company."""
    return False


def _seen(fault: Fault, weights: object) -> Fault:
    return replace(fault, weights=weights)  # type: ignore[arg-type]


FAULTS: Mapping[str, Fault] = {
    "B14 a run clears one that is not in it": _seen(
        replaced(optimism, "clear", _clears_everybody), OPTIMISTIC
    ),
    "B15 ALL is a plain name, unknown targets are disjoint": Fault(_names_alone, LANES),
    "B20 a search blames a part without a run of it": Fault(_guessing, BATCHES),
    "a batch is judged before its base is sure": Fault(_unsure, BATCHES),
    "failures are settled before passes": Fault(_settles_failures_first, scope=TWO_AT_ONCE),
    "a base takes part of a batch": _seen(replaced(bases, "ahead", _parts), BATCHES),
    "every member of a batch stands alone": _seen(replaced(bases, "_draw", _loners), BATCHES),
    "a group pulls one over another that meets it": _seen(
        replaced(grouping.Reach, "copy", _over_others),
        replace(LANES, batch=1.0),
    ),
    "a proven member is judged by another search's probe": _seen(
        replaced(bisecting, "_of", _any_search), replace(LANES, batch=1.0)
    ),
    "a cleared entry lands apart from its unit": Fault(_apart, OPTIMISTIC),
    "a queue that switches modes starts runs": _seen(
        replaced(starting, "_ground", _starts_while_switching), SWITCHING
    ),
    "what is touched more than was said waits for the next run": _seen(
        applied(inputs.SetImpactedTargets, _growth_waits), LANES
    ),
    "a move of unknown targets meets nobody": _seen(
        replaced(bases, "_further", _unknown_is_beside), LANES
    ),
    "the parts of a search begin one after another": _seen(
        replaced(bisecting, "cuts_of", _one_cut), BATCHES
    ),
    "the others of a batch go on when one left": _seen(
        replaced(leaving, "_send_others", _mates_stay), BATCHES
    ),
    "a unit lands before what it stands on": _seen(Fault(_lands_out_of_turn), LANES),
    "who travels alone is put into a batch": _seen(
        replaced(grouping, "is_isolated", _together), BATCHES
    ),
    "a failed run is never decided": _seen(
        replaced(optimism, "is_window_closed", lambda draft, run: False), OPTIMISTIC
    ),
    "a group waits for company for ever": _seen(
        replaced(grouping, "is_complete", _complete), BATCHES
    ),
}
