"""Try whether tests pass again under a breaker hold (docs/design/testing.md 6).

A try tests one entry on the target, beside the line. The entry keeps its state and its place: a try
that fails does not blame it, and one that passes lifts the hold. So a try need not wait for the
runs that are under way, and none of them loses its base.
"""

from datetime import timedelta

from service.mergequeue.engine.culprits import breaker
from service.mergequeue.engine.model import Detail, Entry, Run
from service.mergequeue.engine.planning import launching
from service.mergequeue.engine.policy import constants, policies
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state import leaving, shares, slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import SPARE, EntryState, RunKind, RunStatus

WAIT_MIN = timedelta(minutes=1)
"""The least time between two tries."""


def review(draft: Draft) -> None:
    """End the tries that can no longer prove anything."""
    for run in draft.runs.of_kind(RunKind.TRY):
        has_passed = run.status is RunStatus.SUCCEEDED
        if not breaker.is_open(draft.queue):
            draft.retire(run, Reason.RUN_PASSED if has_passed else Reason.AHEAD_CHANGED)
        elif run.base_tip != draft.queue.tip:
            draft.retire(run, Reason.TARGET_MOVED)
        elif not _is_waiting(draft, run):
            draft.retire(run, Reason.AHEAD_CHANGED)
        elif has_passed:
            # Its commits are in the target already: nothing was tested.
            breaker.end_try(draft, run)


def start(draft: Draft, ground: launching.Ground) -> None:
    """Begin the try that is due."""
    if not breaker.is_try_due(draft):
        return
    candidates = _candidates(draft)
    if not candidates:
        _without_candidates(draft)
        return
    under_way = {run.entries for run in draft.runs.of_kind(RunKind.TRY)}
    most = max(1, int(draft.queue.config.concurrency * constants.TRY_SHARE))
    if len(under_way) >= most or slots.unused(draft) < 1:
        return
    for entry in candidates:
        members = (draft.member_of(entry),)
        if members not in under_way:
            plan = launching.Plan(RunKind.TRY, members, (), ground.tip, ground.required.names)
            launching.begin(draft, plan, fresh=True)
            in_period = 1 + len(candidates) // constants.TRIES_MORE_FOR
            breaker.note_try(draft, max(WAIT_MIN, breaker.TRY_PERIOD / in_period))
            return


def _is_waiting(draft: Draft, run: Run) -> bool:
    entry = draft.entry_of(run.entries[0])
    return entry is not None and entry.state is EntryState.PENDING


def _candidates(draft: Draft) -> list[Entry]:
    """The entries that can be tried: first those tried least, then the safe ones, then the quick.

    How quick is known from a failed run, else from the head. Others follow in the order in which
    they start.
    """
    idle = sorted((draft.entries[pr] for pr in draft.places.idle), key=lambda one: one.rank or 0)
    waiting = (draft.entries[pr] for pr in shares.waiting(draft))
    found = [
        entry for entry in (*idle, *waiting) if not entry.facts.below and is_startable(draft, entry)
    ]
    suspects = policies.policy_of(draft.queue.config).suspects(draft)
    tries, minutes = draft.queue.breaker.tries, draft.queue.breaker.minutes

    def precedence(entry: Entry) -> tuple[int, bool, float]:
        key = str(entry.pr)
        is_risky = suspects.failing(entry) > constants.TRY_RISK_MAX
        took = minutes.get(key, entry.facts.own_minutes)
        return tries.get(key, 0), is_risky, float("inf") if took is None else took

    found.sort(key=precedence)
    return found


def _without_candidates(draft: Draft) -> None:
    """Give up the searches, so that their entries can be tried, unless a run is still under way.

    If no entry can be tried even then, a pull request that has passed ends the hold.
    """
    going = (run for run in draft.runs.values() if run.status is RunStatus.IN_PROGRESS)
    if any(run.kind not in SPARE for run in going):
        return
    for searched in list(draft.queue.bisections.values()):
        why = breaker.return_reason(draft.queue)
        leaving.abandon(draft, searched, why, Detail(run=searched.run))
    if not _candidates(draft) and draft.queue.untested is None:
        breaker.end_if_passed(draft)
