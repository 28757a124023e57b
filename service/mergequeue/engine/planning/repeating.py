"""Run the failed checks of a run again on its own commit, in place of a whole new test.

See docs/design/second-looks.md. Such a run has the commit, the branch and the reports of the one
that it repeats; those of the failed checks count as missing until CI reports anew.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Standing
from service.mergequeue.engine.model import Bisection, Run
from service.mergequeue.engine.outputs import RerunChecks, RunBuilt
from service.mergequeue.engine.planning import launching
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import QueueState, RunKind, RunPhase, RunStatus
from service.vocabulary import Check, CheckKind, CheckOutcome

PAUSE = timedelta(hours=1)
"""The time for which nothing is repeated after the provider refused it: the next would be as well.
"""

_NEVER = datetime.min.replace(tzinfo=UTC)
_ENDED = frozenset({CheckOutcome.PASSED, CheckOutcome.SKIPPED, CheckOutcome.FAILED})
_MAY_END = _ENDED | {CheckOutcome.RUNNING, None}


def choice(draft: Draft, plan: launching.Plan, bisection: Bisection) -> Run | None:
    """Return the failed run of this search whose failed checks confirm it; None: test anew.

    It has the tree in question, and what is required now was required of it.
    """
    if plan.kind is not RunKind.CONFIRMATION:
        return None
    members = (*plan.base, *plan.members)
    for run_id in bisection.reds.get(len(plan.members), ()):
        run = draft.runs[run_id]
        is_same = run.members == members and run.required == plan.required
        if is_same and is_possible(draft, run):
            return run
    return None


def is_wanted_apart(draft: Draft, failed: Run) -> bool:
    """Return whether one that failed apart from the line is tested again by its failed checks.

    Not on a target that others have moved since: what was red there may be repaired.
    """
    queue = draft.queue
    if queue.state is not QueueState.RUNNING or holds.stops_starts(queue) or slots.free(draft) < 1:
        return False
    if queue.kept_move is not None or bases.progress(draft, failed) is None:
        return False
    if queue.required is None or not set(queue.required.names) <= set(failed.required):
        return False
    looks = draft.runs.of_kind(RunKind.SECOND_LOOK)
    return is_possible(draft, failed) and all(look.entries != failed.entries for look in looks)


def is_possible(draft: Draft, failed: Run) -> bool:
    """Return whether the provider can probably run the failed checks of a run again, and they only.

    They are check runs, and the others have ended, or will have before a new test came as far.
    """
    since = draft.queue.reruns_from
    if since is None or draft.now < since or failed.status is not RunStatus.FAILED:
        return False
    if failed.repeats is not None or failed.is_repeated or failed.cause is Cause.TIMEOUT:
        return False
    if failed.branch is None or not failed.published or not failed.checks_complete:
        return False
    standings = verdict.standings_of(failed)
    failing = _failing(standings)
    if not failing or any(one.kind is not CheckKind.SUITE_RUN for one in failing.values()):
        return False
    return all(one.outcome in _MAY_END for one in standings) and _ends_in_time(draft, failed)


def _ends_in_time(draft: Draft, failed: Run) -> bool:
    """Return whether the checks under way end before a new test would come as far; or unknown."""
    known, began = draft.queue.rates.minutes, failed.built_at or failed.created_at
    open_ones = [one for one in verdict.standings_of(failed) if one.outcome not in _ENDED]
    minutes = [known[one.required.name] for one in open_ones if one.required.name in known]
    return began + timedelta(minutes=max(minutes, default=0.0)) <= _ask_by(draft, failed)


def _ask_by(draft: Draft, failed: Run) -> datetime:
    """Return when a new test that began now would have come as far as the failed one."""
    return draft.now + ((failed.failed_at or draft.now) - (failed.built_at or failed.created_at))


def begin(draft: Draft, plan: launching.Plan, failed: Run) -> Run:
    """Start a run that repeats the failed checks of another one, without a new test branch.

    CI repeats nothing of a run that goes on, so it waits for the end of the other checks.
    """
    run = replace(
        launching.launch(draft, plan, fresh=True),
        phase=RunPhase.TESTING,
        steps=failed.steps,
        sha=failed.sha,
        branch=failed.branch,
        attempt=failed.attempt + 1,
        checks=failed.checks,
        built_at=draft.now,
        start_clock=draft.now,
        rerun_ids=failed.rerun_ids,
        revoked=failed.revoked,
        repeats=failed.id,
        first_at=failed.reported_since,
        deadline=_ask_by(draft, failed),
    )
    draft.put_run(run)
    draft.put_run(replace(draft.runs[failed.id], is_repeated=True))
    if failed.sha is not None:
        draft.record(RunBuilt(run.id, failed.sha, failed.id))
    return ask(draft, run) if has_ended(run) else run


def is_waiting(run: Run) -> bool:
    """Return whether a run that repeats another one has not asked for it yet."""
    return run.repeats is not None and run.rerun_at is None


def has_ended(run: Run) -> bool:
    """Return whether CI has ended all required checks of a commit, so that it can repeat some."""
    standings = _reported(run)
    failing = _failing(standings).values()
    is_open = {(one.source_id, one.group) for one in run.checks if one.kind is CheckKind.SUITE}
    return all(one.outcome in _ENDED for one in standings) and all(
        (one.source_id, one.group) not in is_open for one in failing
    )


def may_end(run: Run) -> bool:
    """Return whether all required checks of a commit have ended or may still end by themselves."""
    return all(one.outcome in _MAY_END for one in _reported(run))


def _reported(run: Run) -> tuple[Standing, ...]:
    """Return the standings by reports alone: CI repeats what has ended, not what is foreseen."""
    return verdict.standings_of(replace(run, doomed=()))


def ask(draft: Draft, run: Run) -> Run:
    """Ask CI to run the failed checks of the commit again: now they count as missing."""
    failing = _failing(_reported(run))
    asked = replace(
        run,
        built_at=draft.now,
        start_clock=draft.now,
        rerun_at=draft.now,
        rerun_ids=ids_before(run, failing),
        share=share_of(run.checks, _repeated(run, failing)),
        doomed=(),
        failed_at=None,
        deadline=None,
    )
    draft.put_run(asked)
    draft.request(RerunChecks(run.id, tuple(sorted(failing)), run.attempt))
    return asked


def ids_before(run: Run, names: Collection[str]) -> tuple[str, ...]:
    """Return the ids of reports that are of an earlier attempt once these checks run again.

    CI shows the old ones until it has begun.
    """
    return tuple(dict.fromkeys((*run.rerun_ids, *(one.id for one in _repeated(run, names)))))


def _repeated(run: Run, names: Collection[str]) -> tuple[Check, ...]:
    """Return the reports of checks that CI runs again: these, and the failed jobs of their suites.

    A required gate has failed by jobs that need not be required themselves.
    """
    newest = [one for one in run.checks if one.id not in run.rerun_ids]
    again = [one for one in newest if one.name in names and one.outcome is not CheckOutcome.PASSED]
    suites = {(one.kind, one.source_id, one.group) for one in again if one.group}
    beside = [
        one
        for one in newest
        if one.outcome is CheckOutcome.FAILED and (one.kind, one.source_id, one.group) in suites
    ]
    return (*again, *beside)


def is_under_way(draft: Draft, run: Run) -> bool:
    """Return whether its failed checks run again: what CI reports now is of that attempt."""
    return run.is_repeated and any(one.repeats == run.id for one in draft.runs.values())


def refused(draft: Draft) -> None:
    """Repeat nothing for a while: the provider has refused it."""
    if draft.queue.reruns_from is not None:
        draft.put_queue(replace(draft.queue, reruns_from=draft.now + PAUSE))


def share_of(checks: Iterable[Check], repeated: Iterable[Check]) -> float:
    """Return the part of the time of all checks in which one that is repeated ran; 1: unknown.

    Those that ran beside each other count once, and one that waited for another, such as a gate,
    counts in addition: what ran one after the other does so again.
    """
    ran = _times(checks)
    whole = max((end for _, end in ran), default=_NEVER) - min(
        (at for at, _ in ran), default=_NEVER
    )
    taken, until = timedelta(), _NEVER
    for begun, ended in sorted(_times(repeated)):
        taken += max(timedelta(), ended - max(begun, until))
        until = max(until, ended)
    return min(taken / whole, 1.0) if taken and whole else 1.0


def _times(checks: Iterable[Check]) -> list[tuple[datetime, datetime]]:
    """Return when the checks began and ended of which both is known."""
    return [
        (one.started_at, one.completed_at)
        for one in checks
        if one.started_at is not None and one.completed_at is not None
    ]


def _failing(standings: Iterable[Standing]) -> dict[str, Check]:
    """Return the failed required checks by name.

    Empty if one of them passed and was revoked, or has not ended and only cannot pass any more.
    """
    failing = [one for one in standings if one.outcome is CheckOutcome.FAILED]
    if any(one.is_revoked or one.doom is not None for one in failing):
        return {}
    return {one.required.name: one.check for one in failing if one.check is not None}
