"""Find the pull requests that show something new although their state and reason are the same."""

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import RunPhase


def refresh(draft: Draft) -> None:
    """Request a refresh of every text that the step made old (docs/design/comments.md 5).

    All texts name a pause and holds. The texts about a run name the results of its checks, and
    warn about checks that do not report.
    """
    if _of_queue(draft.before) != _of_queue(draft.queue):
        stale = set(draft.entries)
    else:
        shown = [run for run in _changed_runs(draft) if _shows_more(draft, run)]
        stale = {entry.pr for run in shown for entry in draft.own(run)}
        stale |= {pr for pr in draft.changed if _has_other_priority(draft, pr)}
    notified = {action.entry for action in draft.actions if isinstance(action, Tell)}
    for pr in sorted(stale):
        entry = draft.entries[pr]
        if entry.id not in notified:
            draft.request(Tell(pr, entry.id, entry.state, entry.reason, is_refresh=True))


def _of_queue(queue: MergeQueue) -> tuple[object, ...]:
    return (queue.state, queue.state_reason, queue.holds)


def _changed_runs(draft: Draft) -> list[Run]:
    return [draft.runs[each] for each in sorted(draft.changed_runs) if each in draft.runs]


def _has_other_priority(draft: Draft, pr: int) -> bool:
    before, after = draft.before.entries.get(pr), draft.entries.get(pr)
    return before is not None and after is not None and before.priority != after.priority


def _shows_more(draft: Draft, run: Run) -> bool:
    """Return whether a result is new, or a warning has become due, in a run under test."""
    before = draft.before.runs.get(run.id)
    if before is None or before.phase is not RunPhase.TESTING:
        return False
    warns_at = verdict.warns_at(before)
    if warns_at is not None and before.deadline == warns_at and warns_at <= draft.now:
        return True
    return _reported(before) != _reported(run) and _results(before) != _results(run)


def _reported(run: Run) -> tuple[object, ...]:
    return (run.checks, run.doomed, run.evidence if run.doomed else None)


def _results(run: Run) -> tuple[object, ...]:
    return tuple((one.required.name, one.outcome) for one in verdict.standings_of(run))
