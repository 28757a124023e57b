"""Acting on verdicts: passes first, then failures in the order of the line.

See docs/design/testing.md 4; docs/design/engine.md 1.
"""

from service.mergequeue.engine.culprits import bisecting, breaker, failed_tests, optimism, verdict
from service.mergequeue.engine.culprits.verdict import Verdict, Word
from service.mergequeue.engine.model import Detail, Entry, Named, Run
from service.mergequeue.engine.outputs import AskEvidence, RerunChecks, RunRetried
from service.mergequeue.engine.planning import (
    early_looks,
    head_checks,
    hedging,
    repeating,
    reuse,
    screening,
    taking_back,
    untested,
)
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, leaving, ledger
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.states import SPARE, EntryState, RunKind, RunPhase, RunStatus
from service.vocabulary import CheckOutcome

_SPENT = {
    Cause.KNOWN_FLAKY: Reason.FLAKY_RETRIES_SPENT,
    Cause.INFRA: Reason.INFRASTRUCTURE,
    Cause.INTERRUPTED: Reason.CI_INTERRUPTED,
    Cause.NEVER_STARTED: Reason.CHECK_NEVER_STARTED,
}

RAN_ON_HEAD = "skipped on the test branch, but not on the pull request itself"
"""Evidence text: the named checks were skipped on the test branch and not on the head."""

SKIPPED_ALL = "skipped on the test branch and on the pull request itself"
"""Evidence text: every required check was skipped, on the head as well."""

JUDGES_HEAD = "judges the pull request and not its tree"
"""Evidence text: the named checks passed on every head and failed on the test branch."""
NEVER_RAN = "skipped on the test branch and on the pull request itself, and ran on nothing landed"
"""Evidence text: the named checks were skipped as on the head, and no run shows that they can run.

See docs/design/skipped-checks.md 1.
"""

_APART = SPARE | {RunKind.SCREEN}


def settle(draft: Draft) -> None:
    """Judge every run whose reports changed or whose clock ran out, and act on it."""
    judged = [(run, _verdict(draft, run)) for run in draft.to_judge() if _is_judged(run)]
    draft.judging.clear()
    judged.sort(key=lambda pair: (not pair[1].is_green, _rank(draft, pair[0])))
    for run, one in judged:
        if draft.runs.get(run.id) is run:
            _act(draft, run, one)


def passed(draft: Draft, run: Run, reason: Reason) -> None:
    """A run has a green result: its entries may land when their turn comes."""
    finished = draft.finish(run, RunStatus.SUCCEEDED, Finding(run.cause))
    ledger.forget(draft, {finished.id})
    reuse.remember(draft, finished)
    is_mend = untested.is_mended_by(draft, finished)
    breaker.note_pass(draft, finished)
    if is_mend:
        finished = untested.put_first(draft, finished)
        _own_passed(draft, finished, reason)
    elif bisecting.is_examining(draft, run) or _is_searched(draft, run):
        late = run.bisection is None
        bisecting.green(draft, finished, Reason.LATE_SUCCESS if late else Reason.BISECTION_PASSED)
    elif run.kind is RunKind.SCREEN:
        screening.passed(draft, finished)
    elif run.kind not in SPARE and run.kind is not RunKind.TIP:
        _own_passed(draft, finished, reason)
        optimism.clear(draft, finished)


def retry_on_new_branch(draft: Draft, run: Run, detail: Detail) -> None:
    """Restart on another test branch."""
    if bisecting.is_examining(draft, run):
        bisecting.lost(draft, run, Reason.RETRY_ON_NEW_BRANCH)
    elif run.kind in SPARE:
        hedging.give_up(draft, run, Reason.RETRY_ON_NEW_BRANCH)
    else:
        leaving.restart(draft, run, Reason.RETRY_ON_NEW_BRANCH, detail)


def test_again(draft: Draft, run: Run, reason: Reason) -> None:
    """A passed run whose required statuses have not all passed (any more), and none failed."""
    again = draft.finish(replace(run, rerun_at=draft.now), RunStatus.IN_PROGRESS, Finding())
    waiting = tuple(
        standing.named
        for standing in verdict.standings_of(again)
        if standing.outcome is not CheckOutcome.PASSED
    )
    detail = Detail(run=run.id, checks=waiting)
    for entry in draft.own(again):
        draft.move(replace(entry, verified_by=None), EntryState.TESTING, reason, detail)


def _is_judged(run: Run) -> bool:
    return run.status is not RunStatus.CANCELLED and run.phase is RunPhase.TESTING


def _verdict(draft: Draft, run: Run) -> Verdict:
    ran = draft.queue.check_history.ran_lately(draft.now)
    skippable = verdict.skippable_in(run, draft.entries, ran)
    return verdict.verdict_of(run, draft.now, draft.queue.sends_results, skippable)


def _rank(draft: Draft, run: Run) -> int:
    tested = draft.tested(run)
    return (tested[0].rank or 0) if tested else 0


def _is_searched(draft: Draft, run: Run) -> bool:
    """Return whether a search looks for the culprit in this very run."""
    own = draft.own(run)
    return bool(own) and own[0].bisection is not None


def _own_passed(draft: Draft, run: Run, reason: Reason) -> None:
    own = draft.own(run)
    if own and own[0].state is EntryState.PENDING_FAILURE and not own[0].kept:
        bisecting.prove(draft, run, tuple(draft.member_of(one) for one in own), reason)
        return
    for entry in own:
        mine = replace(entry, verified_by=run.id, kept=False, fresh=False, build_tries=0)
        draft.move(mine, EntryState.TESTS_PASSED, reason, Detail(run=run.id))


def _act(draft: Draft, run: Run, one: Verdict) -> None:
    if repeating.is_waiting(run) and run.status is RunStatus.IN_PROGRESS:
        _await_end(draft, run)
    elif run.status is RunStatus.SUCCEEDED:
        _of_passed(draft, run, one)
    elif run.status is RunStatus.FAILED:
        _of_failed(draft, run, one)
    elif one.is_green:
        reason = Reason.PASSED_EXCUSED if one.excused else Reason.RUN_PASSED
        passed(draft, _green(run, one), reason)
    elif one.word is Word.WAITING:
        _wait(draft, run, one)
    else:
        _ended(draft, run, one)


def _await_end(draft: Draft, run: Run) -> None:
    """Repeat the failed checks once CI has ended, or test anew when that would take longer."""
    if repeating.has_ended(run):
        repeating.ask(draft, run)
    elif not repeating.may_end(run) or run.deadline is None or run.deadline <= draft.now:
        text = "its failed checks could not run again, as CI had not ended"
        retry_on_new_branch(draft, run, Detail(text=text, run=run.id))
    else:
        draft.wait_until(run, run.deadline)


def _green(run: Run, one: Verdict) -> Run:
    cause = Cause.QUARANTINED_ONLY if one.excused else None
    return replace(run, excused=one.excused, cause=cause)


def _wait(draft: Draft, run: Run, one: Verdict) -> None:
    if one.ask:
        draft.request(AskEvidence(run.id, run.attempt, one.ask))
        run = replace(run, asked_evidence=draft.now)
    until = one.until
    warns_at = verdict.warns_at(run)
    if warns_at is not None and draft.now < warns_at and (until is None or warns_at < until):
        until = warns_at
    if draft.runs[run.id] is not run or run.deadline != until:
        draft.wait_until(run, until)


def _of_passed(draft: Draft, run: Run, one: Verdict) -> None:
    """A passed run that has not landed: it may lose its green again."""
    if one.is_green:
        if one.excused != run.excused or run.deadline is not None:
            draft.put_run(replace(run, excused=one.excused, deadline=None))
            draft.judging.discard(run.id)
        return
    landing = draft.queue.landing
    if landing is not None and landing.run == run.id:
        return
    if run.kind is RunKind.DIRECT:
        _begin_afresh(draft, run)
    elif one.word is Word.FAILED and one.cause is None:
        _failed(draft, run, one)
    elif run.failed_at is not None and one.word is Word.WAITING:
        _wait(draft, run, one)
    else:
        test_again(draft, run, Reason.TEST_STARTED)


def _is_borrowed_proof(draft: Draft, run: Run) -> bool:
    """Return whether the run proves entries that it did not test as its own batch."""
    own = draft.own(run)
    return run.kind is not RunKind.MAIN or any(entry.batch != run.number for entry in own)


def _begin_afresh(draft: Draft, run: Run) -> None:
    searched = draft.queue.bisections.get(run.bisection or "")
    if searched is not None:
        leaving.abandon(draft, searched, Reason.AHEAD_CHANGED, Detail(run=run.id))
    for entry in draft.own(run):
        draft.put(replace(entry, fresh=True))
    leaving.restart(draft, run, Reason.RETRY_ON_NEW_BRANCH, Detail(run=run.id))


def _of_failed(draft: Draft, run: Run, one: Verdict) -> None:
    """Settle a failed run without a verdict yet: a late success counts."""
    if run.is_foreseen or one.word is Word.FAILED:
        _of_foreseen(draft, run, one)
        return
    if not one.is_green:
        return
    searched = bisecting.is_examining(draft, run) or _is_searched(draft, run)
    if searched or bases.broken(draft, run) is None:
        passed(draft, _green(run, one), Reason.LATE_SUCCESS)


def _of_foreseen(draft: Draft, run: Run, one: Verdict) -> None:
    """Settle a failure that was foreseen: it is confirmed by a report, or taken back.

    See docs/design/early-failures.md 3.
    """
    is_foreseen = verdict.is_foreseen(run)
    if one.word is Word.FAILED:
        if is_foreseen != run.is_foreseen:
            draft.put_run(replace(run, is_foreseen=is_foreseen))
    elif one.word is Word.WAITING and verdict.fails(run):
        _wait(draft, run, one)
    else:
        taking_back.take_back(draft, run)


def _ended(draft: Draft, run: Run, one: Verdict) -> None:
    finding = Finding(one.cause, one.failed)
    if run.kind is RunKind.TRY:
        breaker.try_failed(draft, run, finding)
        return
    if run.kind is RunKind.TIP:
        _tip_failed(draft, run, one)
        return
    if one.word is Word.FAILED and head_checks.are_misplaced(draft, run):
        _proves_nothing(draft, run, one)
        return
    if run.kind is RunKind.EARLY_LOOK and one.word is Word.FAILED and _is_blaming(one):
        run = early_looks.take_over(draft, run)
    if run.kind not in SPARE and breaker.takes(draft, run, finding):
        return
    if one.word is Word.NO_EVIDENCE:
        _proves_nothing(draft, run, one)
    elif one.cause is None or one.cause is Cause.TIMEOUT:
        _failed(draft, run, one)
    else:
        _flawed(draft, run, one.cause, one.failed)


def _is_blaming(one: Verdict) -> bool:
    return one.cause is None or one.cause is Cause.TIMEOUT


def _tip_failed(draft: Draft, run: Run, one: Verdict) -> None:
    """Run what failed by a known flake or by CI's machines again, within the retries."""
    is_flawed = one.cause in (Cause.KNOWN_FLAKY, Cause.INFRA)
    if is_flawed and one.cause is not None and run.attempt <= run.config.auto_retry_limit:
        _rerun(draft, run, one.cause, {check.name for check in one.failed})
    else:
        untested.failed(draft, run, Finding(one.cause, one.failed))


def _failed(draft: Draft, run: Run, one: Verdict) -> None:
    """A blaming failure: the entries are out, or still counted on, until it is decided."""
    run = replace(run, is_foreseen=verdict.is_foreseen(run))
    failed = draft.finish(run, RunStatus.FAILED, Finding(one.cause, one.failed))
    if bisecting.is_examining(draft, failed):
        bisecting.red(draft, failed)
    elif run.kind not in _APART and _is_borrowed_proof(draft, run):
        _begin_afresh(draft, failed)
    elif run.kind is RunKind.SCREEN:
        screening.failed(draft, failed, one.failed)
    elif run.kind not in SPARE:
        _own_failed(draft, failed, one)


def _own_failed(draft: Draft, run: Run, one: Verdict) -> None:
    suspects = policies.policy_of(draft.queue.config).suspects(draft)
    if not suspects.are_searched and bases.broken(draft, run) is None:
        failed_tests.note_failure(draft, run, one.failed)
        if suspects.leaves(run):
            screening.retest(draft, run, one.failed)
            return
    reason = Reason.RUN_TIMED_OUT if one.cause is Cause.TIMEOUT else Reason.CHECK_FAILED
    kept = draft.queue.config.can_optimistically_merge
    # A failed run may depend on fewer changes than one under way.
    draft.doubted.add(run.id)
    for entry in draft.own(run):
        out = replace(entry, verified_by=None, kept=kept)
        detail = Detail(run=run.id, checks=one.failed)
        draft.move(out, EntryState.PENDING_FAILURE, reason, detail)
    if kept:
        optimism.clear_by_follower(draft, run)


def _flawed(draft: Draft, run: Run, cause: Cause, failed: tuple[Named, ...]) -> None:
    """Rerun checks that failed for no fault of the entries, within the retries.

    See docs/design/testing.md 5.
    """
    entries = draft.own(run) or draft.tested(run)
    detail = Detail(run=run.id, checks=failed)
    if run.kind in SPARE:
        hedging.give_up(draft, run, Reason.RETRY_ON_NEW_BRANCH)
        return
    if max((entry.retries for entry in entries), default=0) >= run.config.auto_retry_limit:
        _spent(draft, run, cause, detail)
        return
    for entry in entries:
        draft.put(replace(entry, retries=entry.retries + 1))
    if cause is Cause.NEVER_STARTED:
        draft.record(RunRetried(run.id, run.attempt, cause))
        retry_on_new_branch(draft, run, detail)
        return
    _rerun(draft, run, cause, {check.name for check in failed})


def _proves_nothing(draft: Draft, run: Run, one: Verdict) -> None:
    """Set aside the entries of a run in which nothing ran that could speak for them.

    The rest of its batch is tested again without them.
    """
    if run.kind in SPARE:
        hedging.give_up(draft, run, Reason.NO_EVIDENCE)
        return
    draft.finish(run, RunStatus.CANCELLED, Finding(Cause.NO_EVIDENCE, one.failed))
    tested = _examined(draft, run)
    names = {check.name for check in one.failed}
    without = [entry for entry in tested if not names <= set(entry.facts.own_skipped)]
    for entry in without or tested:
        lack = _lack_of(draft, run, entry, one.failed)
        if one.word is Word.FAILED:
            lack = Detail(text=JUDGES_HEAD, checks=one.failed)
        detail = replace(lack, run=run.id)
        barred = replace(draft.entries[entry.pr], barred=(Reason.NO_EVIDENCE,))
        leaving.set_aside(draft, barred, Reason.NO_EVIDENCE, detail)


def _lack_of(draft: Draft, run: Run, entry: Entry, skipped: tuple[Named, ...]) -> Detail:
    """Return why these skips prove nothing for an entry, with the checks of which that is true."""
    ran = tuple(check for check in skipped if check.name not in entry.facts.own_skipped)
    if ran:
        return Detail(text=RAN_ON_HEAD, checks=ran)
    history = draft.queue.check_history
    counts = history.ran_lately(draft.now) | verdict.optional_of(run)
    never = tuple(
        replace(check, why=history.never.get(check.name, ""))
        for check in skipped
        if check.name not in counts
    )
    if never:
        return Detail(text=NEVER_RAN, checks=never)
    return Detail(text=SKIPPED_ALL, checks=skipped)


def _examined(draft: Draft, run: Run) -> tuple[Entry, ...]:
    """Return the undecided entries that the run tests."""
    if not bisecting.is_examining(draft, run):
        return draft.own(run)
    numbers = {member.pr for member in run.entries}
    searched = draft.queue.bisections[run.bisection or ""]
    return tuple(one for one in bisecting.undecided(draft, searched) if one.pr in numbers)


def _spent(draft: Draft, run: Run, cause: Cause, detail: Detail) -> None:
    """No retry is left: a batch is taken apart.

    One that is alone leaves, or waits beside the line if CI's own machines failed it.
    """
    failing = cause in (Cause.KNOWN_FLAKY, Cause.INFRA)
    status = RunStatus.FAILED if failing else RunStatus.CANCELLED
    draft.finish(run, status, Finding(cause, detail.checks))
    searched = None
    if bisecting.is_examining(draft, run):
        searched = draft.queue.bisections[run.bisection or ""]
    entries = draft.own(run) if searched is None else bisecting.undecided(draft, searched)
    if len(entries) == 1:
        if _SPENT[cause] in leaving.CI_WAITS:
            leaving.wait_for_ci(draft, entries[0], _SPENT[cause], detail)
        else:
            leaving.leave(draft, entries[0], EntryState.CANCELLED, _SPENT[cause], detail)
        return
    for entry in entries:
        draft.put(replace(entry, taken_apart=True, retries=0))
    if searched is not None:
        leaving.abandon(draft, searched, Reason.BATCH_TAKEN_APART, detail)
    else:
        leaving.restart(draft, draft.runs[run.id], Reason.BATCH_TAKEN_APART, detail)


def _rerun(draft: Draft, run: Run, cause: Cause, names: set[str]) -> None:
    again = replace(
        run,
        attempt=run.attempt + 1,
        rerun_at=draft.now,
        start_clock=draft.now,
        rerun_ids=repeating.ids_before(run, names),
        is_flaky=run.is_flaky or cause is Cause.KNOWN_FLAKY,
        doomed=(),
        failed_at=None,
        asked_evidence=None,
        evidence=None,
        deadline=None,
    )
    draft.put_run(again)
    draft.request(RerunChecks(run.id, tuple(sorted(names)), again.attempt))
    draft.record(RunRetried(run.id, again.attempt, cause))
