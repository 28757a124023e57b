"""Carry out what follows from hedges (docs/design/testing.md 10): they take over, end, or give way.

A hedge delays nothing: any other run that may start takes its slot. It blames no entry and
lands nothing before it has become the group's own run.
"""

from collections.abc import Sequence

from service.mergequeue.engine.culprits import optimism
from service.mergequeue.engine.model import Detail, Entry, Run
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.states import GIVES_WAY, EntryState, RunKind, RunStatus

_STATES = {
    RunStatus.IN_PROGRESS: (EntryState.TESTING, Reason.TEST_STARTED),
    RunStatus.SUCCEEDED: (EntryState.TESTS_PASSED, Reason.RUN_PASSED),
    RunStatus.FAILED: (EntryState.PENDING_FAILURE, Reason.CHECK_FAILED),
}


def review(draft: Draft) -> None:
    """Let hedges take over whose case has come true, and end those whose case cannot any more."""
    for run in draft.runs.of_kind(RunKind.HEDGE):
        main = _main_of(draft, run)
        left_out = _left_out(draft, run, main) if main is not None else ()
        if main is None or _is_decided(draft, run, left_out):
            draft.retire(run, Reason.AHEAD_CHANGED)
        elif any(entry.pr in bases.graph(draft).of for entry in left_out):
            if not _is_still(draft, run, main):
                draft.retire(run, Reason.AHEAD_CHANGED)
        elif run.status is not RunStatus.CANCELLED and _stands(draft, run, main):
            _take_over(draft, run, main)
        else:
            draft.retire(run, Reason.AHEAD_CHANGED)


def give_way(draft: Draft) -> None:
    """End what is worth least in a spare slot: something real starts there."""
    running = [
        run
        for kind in GIVES_WAY
        for run in draft.runs.of_kind(kind)
        if run.status is RunStatus.IN_PROGRESS
    ]
    least = policies.policy_of(draft.queue.config).confirms(draft).least_worth(running)
    draft.retire(least, Reason.AHEAD_CHANGED)


def give_up(draft: Draft, run: Run, reason: Reason) -> None:
    """Let a run in a spare slot be that cannot be tested.

    It stays as a cancelled run until its case is decided, so that the same is not tried again
    and again: without somebody ahead its group may conflict with the target. A try does not stay:
    the next ones have their time.
    """
    if run.status is RunStatus.IN_PROGRESS and run.kind is not RunKind.TRY:
        draft.finish(run, RunStatus.CANCELLED, Finding())
    elif run.status is not RunStatus.CANCELLED:
        draft.retire(run, reason)


def _main_of(draft: Draft, run: Run) -> Run | None:
    """The run that the group is in now, if it is the same group still."""
    tested = draft.tested(run)
    if len(tested) != len(run.entries) or not tested[0].run:
        return None
    main = draft.runs.get(tested[0].run)
    if main is None or main.entries != run.entries or tested[0].bisection is not None:
        return None
    return main


def _left_out(draft: Draft, run: Run, main: Run) -> tuple[Entry, ...]:
    """Return what the hedge is without of the group's own base, as far as it is there still."""
    found = (draft.entry_of(member) for member in main.base if member.entry in run.without)
    return tuple(entry for entry in found if entry is not None)


def _is_decided(draft: Draft, run: Run, left_out: Sequence[Entry]) -> bool:
    """Return whether what the hedge is without passed or landed after all."""
    finals = [draft.finished_entries.get(entry) for entry in run.without]
    return any(entry.state is EntryState.TESTS_PASSED for entry in left_out) or any(
        final is not None and final.state is EntryState.MERGED for final in finals
    )


def _is_still(draft: Draft, run: Run, main: Run) -> bool:
    """Return whether the rest of the hedge's base is as it was."""
    made = bases.progress(draft, run)
    if made is None or bases.broken(draft, main) is not None:
        return False
    ahead = {member.entry for member in bases.ahead(draft, draft.own(main))}
    return all(member.entry in ahead for member in run.base if member.pr not in made.landed)


def _stands(draft: Draft, run: Run, main: Run) -> bool:
    made = bases.progress(draft, run)
    own = draft.own(main)
    if made is None or not bases.is_predicted(draft, run, made):
        return False
    left = tuple(member for member in run.base if member.pr not in made.landed)
    return left == bases.ahead(draft, own)


def _take_over(draft: Draft, run: Run, main: Run) -> None:
    """The hedge becomes the group's own run, with all its results."""
    draft.put_run(replace(run, kind=RunKind.MAIN, without=()))
    state, reason = _STATES[run.status]
    if run.status is RunStatus.FAILED and run.cause is Cause.TIMEOUT:
        reason = Reason.RUN_TIMED_OUT
    kept = state is EntryState.PENDING_FAILURE and draft.queue.config.can_optimistically_merge
    has_passed = state is EntryState.TESTS_PASSED
    own = draft.own(main)
    draft.retire(main, Reason.AHEAD_OUT)
    for entry in own:
        mine = replace(
            entry,
            run=run.id,
            batch=run.number,
            verified_by=run.id if has_passed else None,
            kept=kept,
            fresh=entry.fresh and not has_passed,
        )
        if entry.state is state is EntryState.TESTS_PASSED:
            draft.put(mine)
        else:
            draft.move(mine, state, reason, Detail(run=run.id))
    if has_passed:
        optimism.clear(draft, draft.runs[run.id])
