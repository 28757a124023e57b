"""The breaker: recognize failures of the target or of CI, not of any entry's change.

docs/design/testing.md 6. Under a breaker hold single entries are tried (planning/trying.py); a pass
lifts the hold.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from service.mergequeue.engine.model import Breaker, Detail, Failure, MergeQueue, Run
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.reasons import BREAKER_HOLDS, NO_BLAME, Cause, HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import holds, leaving, ledger
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.states import SPARE, EntryState, RunKind, RunStatus

TROUBLES = 3
"""Failures, or attempts without a result, that trip it."""

GROUPS_MIN = 2
"""Different groups among the attempts without a result."""

WINDOW = timedelta(minutes=60)
"""Age from which a failure places no hold. It is kept while nothing has passed since."""

CHECK = "check "
"""Begins the fingerprint of a failure without test results: the name of the check follows."""

UNLIKE_ANY = "unlike any"
"""The fingerprint of a failure with test results that name no failed test: it is like no other."""

TRY_PERIOD = timedelta(minutes=15)
"""Time until the first try under a breaker hold, and the longest between two."""

TRIES_MAX = 3
"""Failed tries after which an entry waits beside the line, longer each time."""

FAILURES_KEPT = 100

NAMED_MAX = 10
"""Pull requests that the text of a hold names."""

CI_TROUBLE = frozenset({Cause.INFRA, Cause.INTERRUPTED, Cause.NEVER_STARTED})

_RETURN_REASONS = {
    HoldReason.BASE_RED: Reason.BASE_RED,
    HoldReason.REPEATED_FAILURE: Reason.REPEATED_FAILURE,
    HoldReason.CI_UNHEALTHY: Reason.RETRY_ON_NEW_BRANCH,
}


def is_open(queue: MergeQueue) -> bool:
    """Return whether a breaker hold is in force."""
    return any(hold.reason in BREAKER_HOLDS for hold in queue.holds)


def return_reason(queue: MergeQueue) -> Reason:
    """Return why entries go back to PENDING under the breaker hold in force."""
    return _RETURN_REASONS[_held(queue)[0]]


def note_pass(draft: Draft, run: Run) -> None:
    """A run passed by checks of its own: not everything fails, and a hold is lifted.

    Not by one that began before the failed run that placed the hold: CI may fail only what began
    later.
    """
    if run.reused_from is not None or run.contained or run.kind is RunKind.DIRECT:
        return
    _forget_streak(draft)
    memory = draft.queue.breaker
    kept = tuple(one for one in memory.failures if not one.fingerprint.startswith(CHECK))
    _put(draft, replace(memory, failures=kept, passed_at=draft.now))
    held, memory = _held(draft.queue), draft.queue.breaker
    if held and _is_from_before(memory, run):
        _put(draft, replace(memory, older_pass=True))
        return
    holds.release_all(draft, BREAKER_HOLDS, "a test run passed again")
    if held and run.kind is RunKind.TRY:
        _restart_older(draft, run, memory, _RETURN_REASONS[held[0]])


def takes(draft: Draft, run: Run, finding: Finding) -> bool:
    """Return whether the breaker accounts for this ending, so that it uses no retry.

    Remembers it, places the hold it calls for, and takes the run's entries back to PENDING.
    """
    hold = _hold_for(draft, run, finding)
    if hold is None:
        return False
    if not holds.has(draft.queue, hold.reason):
        holds.place(draft, hold)
        _forgive(draft, hold)
        _put(draft, replace(draft.queue.breaker, since=run.created_at))
        note_try(draft, TRY_PERIOD)
    draft.finish(run, end_of(finding), replace(finding, cause=_cause_of(hold, finding)))
    _note_minutes(draft, run)
    _take_back(draft, draft.runs[run.id], _RETURN_REASONS[hold.reason], finding)
    return True


def forget(draft: Draft, run: Run) -> None:
    """Forget the failure of a run that goes on."""
    memory = draft.queue.breaker
    kept = tuple(one for one in memory.failures if one.run != run.id)
    if kept != memory.failures:
        _put(draft, replace(memory, failures=kept))


def _cause_of(hold: holds.HoldRequest, finding: Finding) -> Cause | None:
    is_repeated = hold.reason is HoldReason.REPEATED_FAILURE
    return Cause.REPEATED_FAILURE if is_repeated else finding.cause


def hold(draft: Draft, request: holds.HoldRequest, since: datetime) -> None:
    """Place a breaker hold for runs that began at `since`, and let the first try begin at once."""
    holds.place_once(draft, request)
    _put(draft, replace(draft.queue.breaker, since=since, try_at=draft.now))


def is_try_due(draft: Draft) -> bool:
    """Return whether another try may begin now under a breaker hold."""
    try_at = draft.queue.breaker.try_at
    return try_at is None or try_at <= draft.now


def note_try(draft: Draft, wait: timedelta) -> None:
    """A try began, or a hold: the next one may begin after this wait."""
    _put(draft, replace(draft.queue.breaker, try_at=draft.now + wait))


def try_failed(draft: Draft, run: Run, finding: Finding) -> None:
    """End a try that did not pass, which says nothing against its entry."""
    draft.finish(run, end_of(finding), finding)
    if is_open(draft.queue):
        _note_minutes(draft, run)
        end_try(draft, run)


def end_try(draft: Draft, run: Run) -> None:
    """Count a try that did not lift the hold; after `TRIES_MAX` its entry waits for longer."""
    held = _held(draft.queue)
    why = return_reason(draft.queue)
    draft.retire(draft.runs[run.id], why)
    (entry,) = draft.tested(run)
    memory = draft.queue.breaker
    count = memory.tries.get(str(entry.pr), 0) + 1
    _put(draft, replace(memory, tries={**memory.tries, str(entry.pr): count}))
    times = entry.restarts.get(why.value, 0) + 1
    draft.put(replace(entry, restarts={**entry.restarts, why.value: times}))
    if count >= TRIES_MAX:
        names = ", ".join(reason.value for reason in held)
        text = f"{count} tries failed while the queue was held: {names}"
        mine, detail = draft.entries[entry.pr], Detail(text=text, run=run.id)
        waited = count - TRIES_MAX
        leaving.wait_for_ci(draft, mine, Reason.INFRASTRUCTURE, detail, waited)
        _end_doubt(draft, count)


def end_if_passed(draft: Draft) -> None:
    """Lift the holds if a pull request has passed; called when none is left that can be tried.

    Only a run that passes lifts them otherwise, and no run would start.
    """
    placed = (draft.entries[pr] for _, pr in draft.places.line)
    if any(entry.state is EntryState.TESTS_PASSED for entry in placed):
        holds.release_all(draft, BREAKER_HOLDS, "only pull requests that have passed can go on")


def _put(draft: Draft, memory: Breaker) -> None:
    draft.put_queue(replace(draft.queue, breaker=memory))


def _forgive(draft: Draft, hold: holds.HoldRequest) -> None:
    """Forget what failed alike before: it says nothing about the changes in it either."""
    young = (one for one in draft.queue.breaker.failures if _is_young(draft, one))
    ledger.forget(draft, {one.run for one in young if one.fingerprint == hold.evidence})


def _take_back(draft: Draft, run: Run, reason: Reason, finding: Finding) -> None:
    detail = Detail(run=run.id, checks=finding.failed)
    searched = draft.queue.bisections.get(run.bisection or "")
    if searched is not None:
        leaving.abandon(draft, searched, reason, detail)
    else:
        leaving.restart(draft, run, reason, detail)


def _is_from_before(memory: Breaker, run: Run) -> bool:
    return memory.since is not None and run.created_at < memory.since


def _restart_older(draft: Draft, passed: Run, memory: Breaker, reason: Reason) -> None:
    """Restart what began before the try that passed and is under way still.

    None of those has passed under the hold, so the others would fail as well, or not finish. If
    only what began before the hold did, that goes on.
    """
    for run in list(draft.runs.values()):
        is_older = run.status is RunStatus.IN_PROGRESS and run.created_at < passed.created_at
        is_spared = run.kind in SPARE or (memory.older_pass and _is_from_before(memory, run))
        if is_older and not is_spared and run.id in draft.runs:
            _take_back(draft, run, reason, Finding())


def end_of(finding: Finding) -> RunStatus:
    """Failed if a required check failed, else cancelled (docs/design/engine.md 3.2)."""
    no_result = finding.cause in (Cause.INTERRUPTED, Cause.NEVER_STARTED, Cause.NO_EVIDENCE)
    return RunStatus.CANCELLED if no_result else RunStatus.FAILED


def _note_minutes(draft: Draft, run: Run) -> None:
    """Remember how long the tests of an entry took until they failed: the quick are tried first."""
    if run.built_at is None or len(run.entries) > 1:
        return
    memory, took = draft.queue.breaker, draft.now - run.built_at
    minutes = {**memory.minutes, str(run.entries[0].pr): took.total_seconds() / 60.0}
    _put(draft, replace(memory, minutes=minutes))


def _end_doubt(draft: Draft, count: int) -> None:
    """Lift a hold that only the name of a check supports once one entry failed so often.

    Tries go round, so the others failed too, or there are none. If CI still fails everything, the
    hold comes back with the next independent failures; else a broken entry gets its verdict.
    """
    for hold in draft.queue.holds:
        if hold.reason is HoldReason.REPEATED_FAILURE and (hold.evidence or "").startswith(CHECK):
            holds.release(draft, hold, f"{count} tries of one pull request failed")


def _held(queue: MergeQueue) -> list[HoldReason]:
    return [hold.reason for hold in queue.holds if hold.reason in BREAKER_HOLDS]


def _hold_for(draft: Draft, run: Run, finding: Finding) -> holds.HoldRequest | None:
    """Return the breaker hold that this end of an attempt places, or that already exists for it."""
    cause = finding.cause
    names = ", ".join(check.name for check in finding.failed)
    if cause is Cause.BASE_RED:
        return holds.HoldRequest(HoldReason.BASE_RED, f"the target itself fails: {names}")
    if cause in CI_TROUBLE:
        tripped = _streak(draft, run)
        if tripped or holds.has(draft.queue, HoldReason.CI_UNHEALTHY):
            text = f"{TROUBLES} attempts in a row ended without a result: {names}"
            return holds.HoldRequest(HoldReason.CI_UNHEALTHY, text)
        return None
    _forget_streak(draft)
    if cause in NO_BLAME:
        return None
    for print_ in _fingerprints(draft, run, finding):
        alike = _repeats(draft, run, print_)
        if alike is not None:
            failed = sorted({pr for one in alike for pr in one.entries})
            listed = ", ".join(f"#{pr}" for pr in failed[:NAMED_MAX])
            more = f" and {len(failed) - NAMED_MAX} more" if len(failed) > NAMED_MAX else ""
            text = f"unrelated pull requests fail in the same way: {names} ({listed}{more})"
            return holds.HoldRequest(HoldReason.REPEATED_FAILURE, text, evidence=print_)
    return None


def _fingerprints(draft: Draft, run: Run, finding: Finding) -> list[str]:
    """Return what equal failures share: that of the test results, else each failed check."""
    if run.evidence is not None:
        names_tests = any(run.evidence.failed_tests.values())
        print_ = run.evidence.fingerprint or (None if names_tests else UNLIKE_ANY)
        return [print_] if print_ is not None else []
    own_failed = {name for entry in draft.own(run) for name in entry.facts.own_failed}
    return [CHECK + check.name for check in finding.failed if check.name not in own_failed]


def _streak(draft: Draft, run: Run) -> bool:
    """Add an attempt without a result; whether there are enough of them in a row now."""
    memory = draft.queue.breaker
    troubled = (*memory.troubled, run.prs)[-TROUBLES:]
    _put(draft, replace(memory, troubled=troubled))
    return len(troubled) == TROUBLES and len(set(troubled)) >= GROUPS_MIN


def _forget_streak(draft: Draft) -> None:
    memory = draft.queue.breaker
    if memory.troubled:
        _put(draft, replace(memory, troubled=()))


def _repeats(draft: Draft, run: Run, fingerprint: str) -> Sequence[Failure] | None:
    """Remember a failure; return those alike if independent runs fail so, or a hold says so.

    Three are enough if test results say so. If only the check is known, their joint chance must be
    small as well. None: it is a failure like others.
    """
    for hold in draft.queue.holds:
        if hold.reason is HoldReason.REPEATED_FAILURE and hold.evidence == fingerprint:
            return ()
    memory: Breaker = draft.queue.breaker
    suspects = policies.policy_of(draft.queue.config).suspects(draft)
    chance = suspects.chance_of_failure(run)
    newest = Failure(run.id, run.prs, run.base_prs, fingerprint, draft.now, chance)
    others = [
        old
        for old in memory.failures
        if (old.run, old.fingerprint) != (run.id, fingerprint)
        and (_is_young(draft, old) or memory.passed_at is None or old.at > memory.passed_at)
    ]
    kept = (*others, newest)[-FAILURES_KEPT:]
    _put(draft, replace(memory, failures=kept))
    like = {fingerprint} - {UNLIKE_ANY}
    alike = [old for old in others if old.fingerprint in like and _is_young(draft, old)]
    rivals = [old for old in alike if ledger.are_independent(draft, old, newest)]
    if fingerprint.startswith(CHECK):
        trips = suspects.are_improbable(newest, rivals)
    else:
        trips = any(
            ledger.are_independent(draft, first, second)
            for index, first in enumerate(rivals)
            for second in rivals[index + 1 :]
        )
    return (*rivals, newest) if trips else None


def _is_young(draft: Draft, failure: Failure) -> bool:
    return failure.at + WINDOW > draft.now
