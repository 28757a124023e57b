"""Acting on verdicts: passes first, then failures in the order of the line (ENGINE.md 6, 15)."""

from dataclasses import replace

from service.mergequeue import bases, breaker, leaving, reuse, verdict
from service.mergequeue.draft import Draft, Finding
from service.mergequeue.model import Detail, Entry, Named, Run
from service.mergequeue.outputs import AskEvidence, RerunChecks, RunRetried
from service.mergequeue.reasons import Cause, Reason
from service.mergequeue.states import EntryState, RunKind, RunPhase, RunStatus
from service.mergequeue.verdict import Verdict, Word
from service.vocabulary import CheckOutcome

_SPENT = {
    Cause.KNOWN_FLAKY: Reason.FLAKY_RETRIES_SPENT,
    Cause.INFRA: Reason.INFRASTRUCTURE,
    Cause.INTERRUPTED: Reason.CI_INTERRUPTED,
    Cause.NEVER_STARTED: Reason.CHECK_NEVER_STARTED,
}


def settle(draft: Draft) -> None:
    """Judge every run whose reports changed or whose clock ran out, and act on it."""
    judged: list[tuple[Run, Verdict]] = []
    for run in list(draft.runs.values()):
        is_due = run.deadline is not None and run.deadline <= draft.now
        if (is_due or run.id in draft.judging) and _is_judged(run):
            judged.append((run, _verdict(draft, run)))
    draft.judging.clear()
    judged.sort(key=lambda pair: (not pair[1].is_green, _rank(draft, pair[0])))
    for run, one in judged:
        if draft.runs.get(run.id) is run:
            _act(draft, run, one)


def passed(draft: Draft, run: Run, reason: Reason) -> None:
    """A run has a green result: its entries may land when their turn comes."""
    finished = draft.finish(run, RunStatus.SUCCEEDED, Finding(run.cause))
    reuse.remember(draft, finished)
    breaker.note_pass(draft, finished)
    for pr in run.prs:
        entry = draft.entries[pr]
        if entry.state is EntryState.TESTING:
            mine = replace(entry, verified_by=run.id, fresh=False, build_tries=0)
            draft.move(mine, EntryState.TESTS_PASSED, reason, Detail(run=run.id))
        else:
            _return_passed(draft, entry, finished, reason)


def retry_on_new_branch(draft: Draft, entry: Entry, detail: Detail) -> None:
    """Begin anew on another test branch; a confirmation takes its entry's whole test with it."""
    if entry.state is EntryState.PENDING_FAILURE:
        leaving.come_back(draft, [leaving.Back(entry.pr, Reason.RETRY_ON_NEW_BRANCH, detail)])
    else:
        leaving.restart(draft, entry, Reason.RETRY_ON_NEW_BRANCH, detail)


def test_again(draft: Draft, run: Run, entry: Entry, reason: Reason) -> None:
    """A passed run whose required statuses have not all passed (any more), and none failed."""
    again = draft.finish(replace(run, rerun_at=draft.now), RunStatus.IN_PROGRESS, Finding())
    waiting = tuple(
        standing.named
        for standing in verdict.standings_of(again)
        if standing.outcome is not CheckOutcome.PASSED
    )
    detail = Detail(run=run.id, checks=waiting)
    draft.move(replace(entry, verified_by=None), EntryState.TESTING, reason, detail)


def _is_judged(run: Run) -> bool:
    return run.status is not RunStatus.CANCELLED and run.phase is RunPhase.TESTING


def _verdict(draft: Draft, run: Run) -> Verdict:
    return verdict.verdict_of(run, draft.now, draft.queue.sends_results)


def _rank(draft: Draft, run: Run) -> int:
    return draft.tested_by(run).rank or 0


def _act(draft: Draft, run: Run, one: Verdict) -> None:
    if run.status is RunStatus.SUCCEEDED:
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


def _green(run: Run, one: Verdict) -> Run:
    cause = Cause.QUARANTINED_ONLY if one.excused else None
    return replace(run, excused=one.excused, cause=cause)


def _wait(draft: Draft, run: Run, one: Verdict) -> None:
    if one.ask:
        draft.do(AskEvidence(run.id, run.attempt, one.ask))
        run = replace(run, asked_evidence=draft.now)
    if draft.runs[run.id] is not run or run.deadline != one.until:
        draft.put_run(replace(run, deadline=one.until))
        draft.judging.discard(run.id)


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
    entry = draft.tested_by(run)
    if run.kind is RunKind.DIRECT:
        again = replace(entry, fresh=True)
        leaving.restart(draft, again, Reason.RETRY_ON_NEW_BRANCH, Detail(run=run.id))
    elif one.word is Word.FAILED and one.cause is None:
        _failed(draft, run, one)
    elif run.failed_at is not None and one.word is Word.WAITING:
        _wait(draft, run, one)
    else:
        test_again(draft, run, entry, Reason.TEST_STARTED)


def _of_failed(draft: Draft, run: Run, one: Verdict) -> None:
    """A failed run that nobody has judged yet: a late success counts."""
    if one.is_green and bases.broken(draft, run) is None:
        passed(draft, _green(run, one), Reason.LATE_SUCCESS)


def _ended(draft: Draft, run: Run, one: Verdict) -> None:
    finding = Finding(one.cause, one.failed)
    if breaker.takes(draft, breaker.Ending(run, finding)):
        return
    if one.cause is None or one.cause is Cause.TIMEOUT:
        _failed(draft, run, one)
    else:
        _flawed(draft, run, one.cause, one.failed)


def _failed(draft: Draft, run: Run, one: Verdict) -> None:
    """A blaming failure: the entries are out until it is decided (ENGINE.md 9)."""
    failed = draft.finish(run, RunStatus.FAILED, Finding(one.cause, one.failed))
    reason = Reason.RUN_TIMED_OUT if one.cause is Cause.TIMEOUT else Reason.CHECK_FAILED
    for pr in run.prs:
        entry = draft.entries[pr]
        if entry.state is not EntryState.PENDING_FAILURE:
            out = replace(entry, verified_by=None)
            detail = Detail(run=failed.id, checks=one.failed)
            draft.move(out, EntryState.PENDING_FAILURE, reason, detail)


def _flawed(draft: Draft, run: Run, cause: Cause, failed: tuple[Named, ...]) -> None:
    """Nobody's fault: the checks run again while retries are left (ENGINE.md 6)."""
    entry = draft.tested_by(run)
    detail = Detail(run=run.id, checks=failed)
    if entry.retries >= run.config.auto_retry_limit:
        failing = cause in (Cause.KNOWN_FLAKY, Cause.INFRA)
        status = RunStatus.FAILED if failing else RunStatus.CANCELLED
        draft.finish(run, status, Finding(cause, failed))
        leaving.leave(draft, entry, EntryState.CANCELLED, _SPENT[cause], detail)
        return
    entry = replace(entry, retries=entry.retries + 1)
    draft.put(entry)
    if cause is Cause.NEVER_STARTED:
        draft.say(RunRetried(run.id, run.attempt, cause))
        retry_on_new_branch(draft, entry, detail)
        return
    _rerun(draft, run, cause, {check.name for check in failed})


def _rerun(draft: Draft, run: Run, cause: Cause, names: set[str]) -> None:
    gone = tuple(
        check.id
        for check in run.checks
        if check.name in names and check.outcome is not CheckOutcome.PASSED
    )
    again = replace(
        run,
        attempt=run.attempt + 1,
        rerun_at=draft.now,
        start_clock=draft.now,
        rerun_ids=(*run.rerun_ids, *gone),
        failed_at=None,
        asked_evidence=None,
        evidence=None,
        deadline=None,
    )
    draft.put_run(again)
    draft.do(RerunChecks(run.id, tuple(sorted(names)), again.attempt))
    draft.say(RunRetried(run.id, again.attempt, cause))


def _return_passed(draft: Draft, entry: Entry, run: Run, reason: Reason) -> None:
    """An entry that was out is green after all: it lands as it is, unless that disturbs others.

    ENGINE.md 10.5: not if somebody behind it runs, passed or landed without it.
    """
    late = reason is Reason.LATE_SUCCESS
    behind = _running_behind(draft, entry)
    if behind or bases.broken(draft, run) is not None:
        word = Reason.AHEAD_CHANGED if late else Reason.BISECTION_PASSED
        text = "its checks passed; others went ahead meanwhile, so it is tested behind them"
        detail = Detail(text=text, run=run.id, prs=behind)
        leaving.come_back(draft, [leaving.Back(entry.pr, word, detail)])
        return
    word = reason if late else Reason.BISECTION_PASSED
    for other in draft.runs_of(entry):
        if other.id != run.id:
            draft.retire(other, word)
    mine = replace(entry, run=run.id, verified_by=run.id, bisection=None, fresh=False)
    draft.move(mine, EntryState.TESTS_PASSED, word, Detail(run=run.id))


def _running_behind(draft: Draft, entry: Entry) -> tuple[int, ...]:
    """Entries behind this one whose runs, in progress or passed, were built without it."""
    behind = []
    for rank, pr in draft.places.line:
        state = draft.entries[pr].state
        if rank > (entry.rank or 0) and state in (EntryState.TESTING, EntryState.TESTS_PASSED):
            behind.append(pr)
    return tuple(behind)
