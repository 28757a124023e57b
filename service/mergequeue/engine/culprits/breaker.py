"""The breaker: recognize failures of the target or of CI, not of any entry's change.

docs/design/testing.md 6. Under a breaker hold single entries are tried (planning/trying.py); a pass
lifts the hold.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.model import Breaker, Detail, Entry, Failure, MergeQueue, Run
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

JOINT_CHANCE_MAX = 0.008
"""Failures of one required check whose joint chance is smaller have a cause in common."""

JOINT_CHANCE_ADAPTIVE_MAX = 0.001
"""The same with `batchSizing: ADAPTIVE`: at the assumed rates the third failure, not the second.

There an outage rejects hardly anybody until then, because a verdict waits while nothing passes
(planning/screening.py). F 10 x 8, seeds 911 to 918: P95 1.82 with 0.008, and 1.72.
"""

OUTAGE_PERIOD = timedelta(days=3)
"""How often CI is assumed to break so that everything fails.

F 30 x 24 with an outage and test results, seeds 911 to 922: of the good ones 0.03 % were rejected,
and 0.09 % with seven days. Without the outage P95 was 1.69 and 1.68.
"""

UNSEEN_MAX = timedelta(days=1)
"""The longest time since the last pass that counts, also if nothing has ever passed."""

UNKNOWN_P_FAIL = 0.05
"""The chance that a change fails for which the queue keeps no estimate."""

CHECK = "check "
"""Begins the fingerprint of a failure without test results: the name of the check follows."""

UNLIKE_ANY = "unlike any"
"""The fingerprint of a failure with test results that name no failed test: it is like no other."""

TRY_PERIOD = timedelta(minutes=15)
"""Time until the first try under a breaker hold, and the longest between two."""

TRIES_MAX = 3
"""Failed tries after which an entry waits beside the line, longer each time."""

TAKEN_BACK_MAX = 6
"""Failures that a hold has taken back from an entry before its next one is expected.

Else several broken entries would place the hold again and again while nothing else is left.
"""

FAILURES_KEPT = 100

CI_TROUBLE = frozenset({Cause.INFRA, Cause.INTERRUPTED, Cause.NEVER_STARTED})

_RETURN_REASONS = {
    HoldReason.BASE_RED: Reason.BASE_RED,
    HoldReason.REPEATED_FAILURE: Reason.BASE_RED,
    HoldReason.CI_UNHEALTHY: Reason.RETRY_ON_NEW_BRANCH,
}


def is_open(queue: MergeQueue) -> bool:
    """Return whether a breaker hold is in force."""
    return any(hold.reason in BREAKER_HOLDS for hold in queue.holds)


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


def outage_odds(draft: Draft, entry: Entry, run_id: str) -> float:
    """The odds that this run failed because CI fails everything; 0 if something passed since.

    They are the chance that CI broke after the last pass, divided by the chance that the failures
    of other pull requests since then have causes of their own.
    """
    memory = draft.queue.breaker
    at = next((one.at for one in memory.failures if one.run == run_id), None)
    if at is None or (memory.passed_at is not None and memory.passed_at >= at):
        return 0.0
    unseen = UNSEEN_MAX if memory.passed_at is None else min(at - memory.passed_at, UNSEEN_MAX)
    others = [
        one
        for one in memory.failures
        if entry.pr not in (*one.entries, *one.base)
        and (memory.passed_at is None or one.at > memory.passed_at)
    ]
    return unseen / OUTAGE_PERIOD / _joint_chance(_independent_ones(draft, others))


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
    why = _RETURN_REASONS[held[0]]
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
    """What failed alike before says nothing about the changes in it either."""
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
        if _repeats(draft, run, print_):
            text = f"unrelated pull requests fail in the same way: {names}"
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


def _repeats(draft: Draft, run: Run, fingerprint: str) -> bool:
    """Remember a failure; whether independent runs fail in this way, or a hold says so.

    Three are enough if test results say so. If only the check is known, the joint chance of the
    failures decides.
    """
    for hold in draft.queue.holds:
        if hold.reason is HoldReason.REPEATED_FAILURE and hold.evidence == fingerprint:
            return True
    memory: Breaker = draft.queue.breaker
    newest = Failure(run.id, run.prs, run.base_prs, fingerprint, draft.now, _chance(draft, run))
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
    rivals = [old for old in alike if _independent(draft, old, newest)]
    if fingerprint.startswith(CHECK):
        return _is_improbable(draft, newest, rivals)
    return any(
        _independent(draft, first, second)
        for index, first in enumerate(rivals)
        for second in rivals[index + 1 :]
    )


def _is_young(draft: Draft, failure: Failure) -> bool:
    return failure.at + WINDOW > draft.now


def _chance(draft: Draft, run: Run) -> float:
    """Return how probable it was that the run fails because of its changes, or by a flake.

    A change that failed before is expected to fail again, which says little about the others.
    """
    members = [draft.entry_of(member) for member in (*run.base, *run.entries)]
    entries = [entry for entry in members if entry is not None]
    believed = ledger.belief_of(draft)
    if run.bisection is not None or any(
        believed.is_suspect(entry.id) or _was_taken_back(entry) for entry in entries
    ):
        return 1.0
    passes = 1.0 - believed.flake
    for entry in entries:
        if entry.state is not EntryState.TESTS_PASSED:
            passes *= 1.0 - believed.prior(entry.p_fail or UNKNOWN_P_FAIL, has_passed=False)
    return 1.0 - passes


def _was_taken_back(entry: Entry) -> bool:
    """Return whether breaker holds took back `TAKEN_BACK_MAX` failures of an entry or more."""
    return entry.restarts.get(Reason.BASE_RED.value, 0) >= TAKEN_BACK_MAX


def _is_improbable(draft: Draft, newest: Failure, rivals: Sequence[Failure]) -> bool:
    """Whether so many independent failures together would be too much of a coincidence."""
    chosen = _independent_ones(draft, rivals, newest)
    is_adaptive = draft.queue.config.batch_sizing is BatchSizing.ADAPTIVE
    limit = JOINT_CHANCE_ADAPTIVE_MAX if is_adaptive else JOINT_CHANCE_MAX
    return len(chosen) > 1 and _joint_chance(chosen) < limit


def _independent_ones(
    draft: Draft, failures: Sequence[Failure], *chosen: Failure
) -> tuple[Failure, ...]:
    """Add those that are independent of all that are chosen, the least probable first."""
    for one in sorted(failures, key=lambda failure: failure.chance):
        if all(_independent(draft, one, other) for other in chosen):
            chosen = (*chosen, one)
    return chosen


def _joint_chance(failures: Sequence[Failure]) -> float:
    return math.prod(one.chance for one in failures)


def _independent(draft: Draft, first: Failure, second: Failure) -> bool:
    """Whether nothing that is undecided can have caused both."""
    mine, others = set(first.entries), set(second.entries)
    if mine & others or mine & set(second.base) or others & set(first.base):
        return False
    shared = (draft.entries.get(pr) for pr in set(first.base) & set(second.base))
    return all(one is None or one.state is EntryState.TESTS_PASSED for one in shared)
