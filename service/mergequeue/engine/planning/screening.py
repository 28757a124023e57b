"""Carry out what follows from tests apart from the line, and move failed groups there.

See docs/design/testing.md 11. The policy decides who is tested apart, who leaves the line, and
whose failures are enough.
"""

from service.mergequeue.engine.culprits import failed_tests, optimism, verdict
from service.mergequeue.engine.model import Detail, Entry, Named, Run
from service.mergequeue.engine.outputs import EntryPlaced, PlacedWhy
from service.mergequeue.engine.planning import launching, repeating
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.policy.questions import Suspects
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, leaving, ledger, line
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus


def passed(draft: Draft, run: Run) -> None:
    """Tried apart and green: they are counted on from now on, or land as they are."""
    own = draft.own(run)
    ledger.clear(draft, own)
    for entry in own:
        draft.put(replace(entry, screened=True))
    if _stands_free(draft, run):
        _land_as_it_is(draft, run)
        return
    detail = Detail(run=run.id)
    leaving.restart(draft, run, Reason.SCREEN_PASSED, detail)


def failed(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Tried apart and red: one that was alone fails if it is probable enough that it is broken."""
    failed_tests.note_failure(draft, run, checks)
    own = draft.own(run)
    if len(own) == 1 and is_enough(draft, own[0], run):
        convict(draft, own[0], run, checks)
    elif len(own) == 1 and repeating.is_wanted_apart(draft, run):
        _repeat(draft, own[0], run)
    else:
        suspect(draft, run, checks)


def is_enough(draft: Draft, entry: Entry, run: Run, *, at_once: bool = False) -> bool:
    """Return whether the failures of an entry reject it by this failed run.

    One that no report shows needs another one beside it (docs/design/early-failures.md 3).
    """
    believed = _suspects(draft).suspicion(entry)
    is_alone = believed is None or believed.alone + believed.together < 2
    if is_alone and not verdict.shows_failure(run):
        return False
    return _suspects(draft).is_rejected(entry, at_once=at_once)


def _repeat(draft: Draft, entry: Entry, run: Run) -> None:
    """Test it apart once more at once, by its failed checks alone (docs/design/second-looks.md)."""
    plan = launching.Plan(RunKind.SCREEN, run.entries, (), run.base_tip, run.required)
    again = repeating.begin(draft, plan, run)
    launching.put_into(draft, entry, again)
    draft.retire(draft.runs[run.id], Reason.SCREEN_FAILED)


def suspect(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Take the entries of a failed run out of the line, back among the waiting, as suspects."""
    group = draft.own(run)
    detail = Detail(run=run.id, checks=checks)
    leaving.restart(draft, draft.runs[run.id], Reason.SCREEN_FAILED, detail)
    for entry in group:
        now = draft.entries[entry.pr]
        if now.rank is not None:
            draft.put(replace(now, rank=None))
            draft.record(EntryPlaced(now.pr, now.id, None, PlacedWhy.SCREENED))


def clear(draft: Draft, entry: Entry, passed: Run) -> None:
    """It passed in another run than its own: it is counted on again."""
    ledger.clear(draft, (entry,))
    draft.put(replace(draft.entries[entry.pr], screened=True))
    run = draft.runs.get(entry.run or "")
    if run is not None and len(draft.own(run)) == 1:
        leaving.restart(draft, run, Reason.SCREEN_PASSED, Detail(run=passed.id))


def convict_by(draft: Draft, entry: Entry, failed: Run) -> None:
    """Reject it by a failed run of its own that it is in no more; its test apart is not needed."""
    own = draft.runs.get(entry.run or "")
    if own is not None:
        detail = Detail(prs=(entry.pr,))
        others = [one.pr for one in draft.own(own) if one.pr != entry.pr]
        back = [leaving.Back(pr, Reason.BATCH_MEMBER_LEFT, detail) for pr in others]
        leaving.send_back(draft, back)
    draft.put(replace(draft.entries[entry.pr], run=failed.id))
    if own is not None:
        draft.retire(draft.runs[own.id], Reason.REQUIRED_STATUS_FAILED)
    convict(draft, draft.entries[entry.pr], failed, verdict.failed_of(failed))


def convict(draft: Draft, entry: Entry, run: Run, checks: tuple[Named, ...]) -> None:
    """Reject the entry because its tests failed in this run."""
    timed_out = run.cause is Cause.TIMEOUT
    if run.cause is None:
        draft.put_run(replace(draft.runs[run.id], cause=Cause.PR_FAULT))
    reason = Reason.RUN_TIMED_OUT if timed_out else Reason.REQUIRED_STATUS_FAILED
    believed = _suspects(draft).suspicion(entry)
    is_confirmed = not run.is_foreseen and failed_tests.fails_alone(
        run, entry, {check.name for check in checks}
    )
    if believed is not None and believed.alone + believed.together > 1:
        is_confirmed = True
    detail = Detail(run=run.id, checks=checks, suspicion=believed, is_confirmed=is_confirmed)
    leaving.leave(draft, draft.entries[entry.pr], EntryState.FAILED, reason, detail)


def _stands_free(draft: Draft, run: Run) -> bool:
    """Return whether the passed tree equals the tree in the line: no entry is ahead."""
    made = bases.progress(draft, replace(run, kind=RunKind.MAIN))
    if made is None or not bases.is_predicted(draft, replace(run, kind=RunKind.MAIN), made):
        return False
    own = draft.own(run)
    return not bases.ahead(draft, own) and not any(entry.unmet for entry in own)


def _land_as_it_is(draft: Draft, run: Run) -> None:
    draft.put_run(replace(draft.runs[run.id], kind=RunKind.MAIN))
    for entry in draft.own(run):
        placed = line.append(draft, entry)
        mine = replace(placed, verified_by=run.id, batch=run.number, fresh=False)
        draft.move(mine, EntryState.TESTS_PASSED, Reason.RUN_PASSED, Detail(run=run.id))


def review_second_looks(draft: Draft) -> None:
    """Promote second looks whose turn has come, and end those that are no longer needed."""
    wanted = policies.policy_of(draft.queue.config).confirms(draft).is_look_wanted
    for run in draft.runs.of_kind(RunKind.SECOND_LOOK):
        entry = draft.entry_of(run.entries[0])
        if entry is None or not wanted(entry):
            draft.retire(run, Reason.SCREEN_PASSED)
        elif _is_looked_at_again(draft, entry):
            if run.status is RunStatus.CANCELLED:
                draft.retire(run, Reason.RETRY_ON_NEW_BRANCH)
            else:
                _let_count(draft, entry, run)


def _let_count(draft: Draft, entry: Entry, look: Run) -> None:
    """The look is the entry's own run from now on, and what it found is acted on."""
    run = replace(look, kind=RunKind.SCREEN)
    draft.put_run(run)
    launching.put_into(draft, entry, run)
    if run.status is RunStatus.SUCCEEDED:
        passed(draft, run)
    elif run.status is RunStatus.FAILED:
        failed(draft, run, verdict.failed_of(run))


def _is_looked_at_again(draft: Draft, entry: Entry) -> bool:
    """Return whether an entry that failed alone may be tested alone once more now."""
    # One that has become urgent has a place in the line, and is tested there.
    is_beside = entry.state is EntryState.PENDING and entry.rank is None
    return is_beside and is_startable(draft, entry) and _suspects(draft).has_failed_alone(entry)


def _suspects(draft: Draft) -> Suspects:
    return policies.policy_of(draft.queue.config).suspects(draft)


def review_failed_groups(draft: Draft) -> None:
    """Put the failed groups out of the line for which it no longer pays to wait."""
    suspects = _suspects(draft)
    if suspects.are_searched or not draft.places.failing or holds.is_view_stale(draft.queue):
        return
    numbers = sorted(draft.places.failing, key=lambda pr: draft.entries[pr].rank or 0)
    for pr in numbers:
        entry = draft.entries.get(pr)
        if entry is None or pr not in draft.places.failing:
            continue
        run = draft.runs[entry.run or ""]
        if _is_open(draft, run) and suspects.leaves(run) and bases.broken(draft, run) is None:
            retest(draft, run, verdict.failed_of(run))


def retest(draft: Draft, run: Run, checks: tuple[Named, ...]) -> None:
    """Take the group of a failed run out: it is tested apart, or convicted.

    What is behind it restarts. If a failed test there has no other suspects, its group would only
    fail again, so it leaves as well. It is never convicted now: it failed on top of this group,
    which may have passed until this moment.
    """
    for one in _culprits_behind(draft, run):
        suspect(draft, one, verdict.failed_of(one))
    own = draft.own(run)
    is_single = len(own) == 1
    if is_single and bases.is_sure(draft, run) and is_enough(draft, own[0], run):
        convict(draft, own[0], run, checks)
        return
    if is_single and draft.queue.config.can_optimistically_merge:
        draft.unwitnessed.add(run.id)
    suspect(draft, run, checks)


def _is_open(draft: Draft, run: Run) -> bool:
    """Return whether no search is after its group, and no follower may clear it any more."""
    is_searched = any(entry.bisection is not None for entry in draft.own(run))
    return not is_searched and optimism.is_window_closed(draft, run)


def _culprits_behind(draft: Draft, run: Run) -> list[Run]:
    """The failed runs that contain this group and whose own groups are to blame, the last first."""
    failing = sorted(draft.places.failing, key=lambda pr: -(draft.entries[pr].rank or 0))
    runs = {run_id: draft.runs[run_id] for pr in failing if (run_id := draft.entries[pr].run)}
    is_to_blame = _suspects(draft).is_to_blame
    return [
        one
        for one in runs.values()
        if not set(run.prs).isdisjoint(one.base_prs)
        and is_to_blame(one)
        and _is_open(draft, one)
        and bases.broken(draft, one) is None
    ]
