"""Why a risky pull request is tested alone first or in the line, and why a failed group waits.

Only with `batchSizing: ADAPTIVE` (docs/design/testing.md 11). Values only; the sentences are made
in `wording`.
"""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum

from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.policy import (
    constants,
    early_looks,
    policies,
    retesting_failed_groups,
    screening,
    suspecting,
)
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.line import URGENT
from service.mergequeue.engine.states import RunKind


class Why(StrEnum):
    """Why a pull request is tested apart from the line first, or is not.

    The first four are reasons for a test apart. RISKY: its chance of failing is above the limit.
    OTHERS_WAIT, LINE_BUSY: the same, and the line does not admit it at once for this reason.
    ALONE_TOO: it is tested alone and in the line at the same time.
    """

    HAS_FAILED = "has_failed"
    RISKY = "risky"
    OTHERS_WAIT = "others_wait"
    LINE_BUSY = "line_busy"
    IDLE_LINE = "idle_line"
    URGENT = "urgent"
    STACKED = "stacked"
    ALONE_TOO = "alone_too"


def alone_first(draft: Draft, entry: Entry) -> Iterator[Condition]:
    """Why a risky or suspected entry, which waits or is under test, is tested apart first or not.

    Empty for all others. The condition is always met: it says what was decided.
    """
    if not _is_adaptive(draft):
        return
    run = draft.runs.get(entry.run or "")
    is_apart = screening.is_due(draft, entry) if run is None else run.kind is RunKind.SCREEN
    why = _why_apart(draft, entry) if is_apart else _why_in_line(draft, entry)
    if why is None:
        return
    prs = () if run is None or not is_apart else run.prs
    if why is Why.OTHERS_WAIT:
        waiting = (draft.entries[pr] for _, _, pr in draft.places.waiting)
        prs = tuple(one.pr for one in waiting if not screening.is_due(draft, one))
    yield Condition(
        ConditionCode.ALONE_FIRST,
        met=True,
        prs=tuple(pr for pr in prs if pr != entry.pr),
        word=why.value,
        count=_percent_of(entry.p_fail),
        total=_percent_of(early_looks.risk_max(draft)),
    )


def line_passes(draft: Draft, entry: Entry) -> Iterator[Condition]:
    """Why an entry waits although slots are free: what is ahead of it will probably fail.

    Empty for all others.
    """
    if _is_adaptive(draft) and early_looks.Limit(draft).holds_back(entry):
        yield Condition(
            ConditionCode.LINE_PASSES,
            met=False,
            since=entry.state_since,
            count=int(100 * early_looks.chance_of_line(draft)),
            total=_percent_of(constants.LINE_CHANCE_MIN),
        )


def _why_apart(draft: Draft, entry: Entry) -> Why:
    if suspecting.belief_of(draft).is_suspect(entry.id):
        return Why.HAS_FAILED
    if entry.run is not None or not draft.queue.config.can_optimistically_merge:
        # Why the line did not admit a pull request under test is not known any more.
        return Why.RISKY
    return Why.OTHERS_WAIT if screening.is_admitted(draft, entry) else Why.LINE_BUSY


def _why_in_line(draft: Draft, entry: Entry) -> Why | None:
    """Return why a risky entry needs no test apart; None if it is not risky, or has its place."""
    if early_looks.is_looked_at(draft, entry):
        return Why.ALONE_TOO if entry.rank is not None else None
    has_place = entry.run is None and entry.rank is not None
    if entry.screened or entry.p_fail <= early_looks.risk_max(draft) or has_place:
        return None
    if entry.facts.below:
        return Why.STACKED
    return Why.URGENT if entry.priority == URGENT else Why.IDLE_LINE


def awaited_followers(draft: Draft, entry: Entry, running: Sequence[Run]) -> Iterator[Condition]:
    """Why a failed group stays in the line: runs on top of it may clear it.

    `running` are those that are under way. Empty if there are none.
    """
    if not _is_adaptive(draft) or not entry.kept or not running:
        return
    run = draft.runs[entry.run or ""]
    yield Condition(
        ConditionCode.FOLLOWERS_AWAITED,
        met=False,
        since=run.finished_at,
        prs=tuple(pr for one in running for pr in one.prs),
        count=_percent_of(suspecting.any_failing(draft, draft.own(run))),
    )


def cause_ahead(draft: Draft, entry: Entry, run: Run) -> Iterator[Condition]:
    """Why a failed group stays in the line: by the tests that failed, others caused it."""
    if not _is_adaptive(draft) or not entry.kept:
        return
    prs = suspecting.belief_of(draft).charged_with(run.id)
    if prs and not retesting_failed_groups.is_suspect(draft, run):
        yield Condition(ConditionCode.CAUSE_AHEAD, met=False, since=run.finished_at, prs=prs)


def suspects_ahead(draft: Draft, entry: Entry, run: Run) -> Iterator[Condition]:
    """Why a failed group stays in the line: others under test ahead may have caused it."""
    is_kept = _is_adaptive(draft) and entry.kept
    ahead = retesting_failed_groups.suspects_ahead(draft, run) if is_kept else []
    if ahead:
        prs = tuple(pr for one in ahead for pr in one.prs)
        yield Condition(ConditionCode.SUSPECTS_DECIDED, met=False, since=run.finished_at, prs=prs)


def _is_adaptive(draft: Draft) -> bool:
    return policies.policy_of(draft.queue.config) is policies.ADAPTIVE


def _percent_of(chance: float) -> int:
    """The chance in percent, rounded up: so one above a limit is never shown as equal to it."""
    return math.ceil(round(100 * chance, 6))
