"""Second looks begun early: who will probably fail alone is tried twice at once (ENGINE.md 14.1).

One failure alone rejects nobody. Where another look will probably be wanted, and nothing else can
use the slot, it is begun beside the first. It delays nothing, and counts for nothing until the
first has failed; then it is the next look, with whatever it has found.
"""

from dataclasses import replace

from service.mergequeue.engine import launching, screening, verdict
from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.draft import Draft
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus

WANTED_MIN = 0.3
"""The least chance of being wanted for which a look is begun early."""

SUSPECT_FAILS = 0.75
"""The chance that a suspect fails when tried alone."""

KEPT_FREE = 0.25
"""The share of the slots that is left to whoever comes."""

_SCREENS = frozenset({RunKind.SCREEN})
_LOOKS = frozenset({RunKind.SECOND_LOOK})


def review(draft: Draft) -> None:
    """Let looks count whose turn has come, and end those that nobody will want."""
    for run in [one for one in draft.runs.values() if one.kind in _LOOKS]:
        entry = draft.entry_of(run.entries[0])
        if entry is None or not _may_be_wanted(draft, entry):
            draft.retire(run, Reason.SCREEN_PASSED)
        elif screening.is_looked_at_again(draft, entry):
            if run.status is RunStatus.CANCELLED:
                draft.retire(run, Reason.RETRY_ON_NEW_BRANCH)
            else:
                _let_count(draft, entry, run)


def wanted(draft: Draft) -> list[Entry]:
    """Whom to look at once more while he is tried alone, the likeliest to fail first."""
    config = draft.queue.config
    slots = launching.unused(draft) - int(config.concurrency * KEPT_FREE)
    if slots < 1 or not draft.in_progress(_SCREENS):
        return []
    looked_at = {run.entries for run in draft.runs.values() if run.kind in _LOOKS}
    found = [
        (_chance(own[0]), own[0])
        for run in draft.runs.values()
        if _is_first(run) and run.entries not in looked_at and (own := draft.own(run))
    ]
    found.sort(key=lambda pair: -pair[0])
    return [entry for chance, entry in found[:slots] if chance >= WANTED_MIN]


def _is_first(run: Run) -> bool:
    is_alone = run.kind is RunKind.SCREEN and len(run.entries) == 1
    return is_alone and run.status is RunStatus.IN_PROGRESS


def _chance(entry: Entry) -> float:
    """The chance that the next look will be wanted after the one that is under way."""
    if len(entry.failures) + 1 >= screening.failures_max(entry):
        return 0.0
    return entry.p_fail if entry.suspected is None else SUSPECT_FAILS


def _may_be_wanted(draft: Draft, entry: Entry) -> bool:
    if draft.queue.config.batch_sizing is not BatchSizing.ADAPTIVE:
        return False
    if entry.state is EntryState.PENDING:
        return entry.suspected is not None and bool(entry.failures)
    run = draft.runs.get(entry.run or "")
    return run is not None and _is_first(run)


def _let_count(draft: Draft, entry: Entry, look: Run) -> None:
    """The look is the entry's own run from now on, and what it found is acted on."""
    run = replace(look, kind=RunKind.SCREEN)
    draft.put_run(run)
    launching.put_into(draft, entry, run)
    if run.status is RunStatus.SUCCEEDED:
        screening.passed(draft, run)
    elif run.status is RunStatus.FAILED:
        screening.failed(draft, run, verdict.failed_of(run))
