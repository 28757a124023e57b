"""Decide what a program does next about a pull request: exactly one step.

A pure function of the explanation and of the records of reasons (docs/design/next-steps.md).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.state import undone
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.engine.suspicion import Fate
from service.mergequeue.reasons.record import StepKind, WhoMustAct

_ORDER = (
    *(StepKind.FIX, StepKind.REBASE, StepKind.RESUBMIT, StepKind.SUPERSEDED, StepKind.DROP),
    StepKind.ASK,
)
"""Of several open conditions the one that the program can meet comes before those of others."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step, and why: `code` is a reason, a condition, a hold or the code of a refusal.

    `at`: until when it waits at the latest; of RESUBMIT the earliest time, None: at once.
    `prs` are the pull requests that it depends on or whose work it would take back, `paths` those
    in conflict or of that work. `condition` is what decided it; None if the submission has ended,
    or Headgate goes on by itself.
    """

    kind: StepKind
    code: str
    who: WhoMustAct = WhoMustAct.NOBODY
    since: datetime | None = None
    at: datetime | None = None
    prs: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    condition: Condition | None = None


def next_step_of(entry: Entry, explained: Explained) -> NextStep:
    """Return what a program does next about a submission."""
    if entry.state in FINAL:
        return _after_the_end(entry)
    unmet = [one for one in explained.conditions if not one.met]
    found = min(unmet, key=_rank_of, default=None)
    if found is None:
        return NextStep(StepKind.WAIT, entry.reason, since=entry.state_since)
    kind = _kind_of(found)
    following = explained.next
    is_first = found is unmet[0] and following is not None
    is_conflict = found.code in (ConditionCode.NO_CONFLICT_AHEAD, Reason.CONFLICT_TARGET)
    prs, paths = found.prs, entry.detail.paths if is_conflict else ()
    if found.code is Reason.UNDOES_LANDED_WORK:
        taken = undone.detail_of(entry)
        prs, paths = taken.prs, taken.paths
    return NextStep(
        kind,
        found.word if found.code is ConditionCode.NO_HOLD and found.word else found.code,
        found.who_must_act,
        since=found.since or entry.state_since,
        at=following.at if is_first and following is not None else found.at,
        prs=prs,
        paths=paths,
        condition=found,
    )


def _after_the_end(entry: Entry) -> NextStep:
    """Return the step after a submission has ended, by the record of its reason."""
    record = entry.reason.record
    kind = StepKind.DONE if entry.state is EntryState.MERGED else record.next
    if kind is StepKind.RESUBMIT and entry.detail.is_confirmed:
        # The same head is refused (budgets.md 1).
        kind = StepKind.FIX
    pause = timedelta(minutes=record.pause_min)
    is_of_nobody = kind is StepKind.ASK and record.who is WhoMustAct.NOBODY
    return NextStep(
        kind,
        entry.reason,
        WhoMustAct.MAINTAINER if is_of_nobody else record.who,
        since=entry.state_since,
        at=entry.state_since + pause if kind is StepKind.RESUBMIT and pause else None,
        prs=entry.detail.prs,
        paths=entry.detail.paths,
    )


def _rank_of(condition: Condition) -> int:
    """Return the order among open conditions; those of one rank keep theirs."""
    kind = _kind_of(condition)
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _kind_of(condition: Condition) -> StepKind:
    """Return what an open condition asks for; WAIT where no person has to act on it."""
    is_of_another = condition.code is ConditionCode.STILL_READY and bool(condition.prs)
    if condition.who_must_act is WhoMustAct.NOBODY or is_of_another:
        return StepKind.WAIT
    match condition.code:
        case Reason() as reason:
            return _kind_of_need(reason)
        case ConditionCode.STILL_READY:
            return _kind_of_need(Reason(condition.word))
        case ConditionCode.NO_HOLD:
            return HoldReason(condition.word).record.next
        case ConditionCode.STATUS_PASSED:
            # CI waits for a person who lets it run.
            return StepKind.ASK
        case _:
            return StepKind.WAIT


def _kind_of_need(reason: Reason) -> StepKind:
    """Return what the need of an entry asks for; Headgate itself tries again after CI failed."""
    aside = reason.record.aside
    return StepKind.WAIT if aside is not None and aside.is_for_ci else reason.record.next


_SEARCHED = (
    ConditionCode.BISECTION_DONE,
    ConditionCode.CAUSE_AHEAD,
    ConditionCode.SUSPECTS_DECIDED,
)


def suspects_of(entry: Entry, explained: Explained) -> tuple[int, ...]:
    """Return who may have caused the failure: by an open search, or by what is believed."""
    if entry.state in FINAL:
        return ()
    found: set[int] = set()
    for each in explained.conditions:
        if each.code in _SEARCHED and not each.met:
            # Of a search the first `count` are proven, and only the first `total` can have failed.
            is_search = each.code is ConditionCode.BISECTION_DONE
            found |= set(each.prs[each.count : each.total] if is_search else each.prs)
        if each.code is ConditionCode.CONFIRMED and not each.met:
            found |= set(each.prs or (entry.pr,))
    if explained.suspicion is not None:
        others = (one for run in explained.suspicion.newest_together for one in run.others)
        found |= {entry.pr, *(one.pr for one in others if one.fate is Fate.UNDECIDED)}
    return tuple(sorted(found))
