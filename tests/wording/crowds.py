"""Pull request 482 among others: in batches, searches, lanes, and behind failures."""

from dataclasses import replace
from typing import Any

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining.conditions import (
    Condition,
    ConditionCode,
    Next,
    NextEvent,
)
from service.mergequeue.engine.model import Bisection, Detail, Entry, Member
from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    EntryPlaced,
    EntryUpdated,
    PlacedWhy,
    Recorded,
    RunStarted,
)
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.wording.situation import PullRequestText
from service.vocabulary import Sha
from tests.wording import builders, stories
from tests.wording.builders import NOW, TEST, minutes
from tests.wording.stories import RUN, TIP, UP_TO_TESTING

SEARCH = "4c1a7a52-8a0c-4c1a-9a55-3f3b1d6f2c10"
PARALLEL = builders.replaced_config(mode=Mode.PARALLEL)


def members(*prs: int) -> tuple[Member, ...]:
    """Pull requests as a run holds them."""
    return tuple(
        Member(pr, f"e{pr}", builders.HEAD if pr == 482 else Sha(f"{pr}".zfill(40))) for pr in prs
    )


def started(minute: float, kind: RunKind, prs: tuple[int, ...], *base: int) -> Recorded:
    """A run of this kind begins."""
    return stories.recorded(minute, RunStarted(f"run-{minute}", 8, kind, prs, base, TIP.sha))


def shown(
    entry: Entry, *conditions: Condition, following: Next | None = None, **changes: Any
) -> PullRequestText:
    """The entry with what the engine says of it."""
    first = next((one for one in conditions if not one.met), None)
    coming = NextEvent(following, prs=first.prs if first else ()) if following else None
    explained = stories.explained(entry, *conditions, following=coming)
    return stories.view(entry, explained=explained, **changes)


def batch_waiting() -> PullRequestText:
    """Waits for a batch of four to fill up."""
    entry = builders.an_entry(EntryState.PENDING, Reason.NOW_READY, seq=3)
    until = NOW + minutes(3)
    batch = Condition(
        ConditionCode.BATCH_COMPLETE, met=False, prs=(480, 481), count=3, total=4, at=until
    )
    return shown(entry, batch, following=Next.BATCH_FILLS)


def batch_testing() -> PullRequestText:
    """Under test together with 480 and 485, on top of 478."""
    entry = builders.an_entry(EntryState.TESTING, Reason.TEST_STARTED, run=RUN, batch=7)
    run = stories.a_run(entries=members(480, 482, 485))
    placed = EntryPlaced(482, entry.id, 5, PlacedWhy.BATCH)
    history = (
        *UP_TO_TESTING[:2],
        stories.recorded(1, placed),
        started(1, RunKind.MAIN, run.prs, 478),
    )
    return shown(entry, run=run, history=history, following=Next.CHECK_REPORTS)


def batch_passed() -> PullRequestText:
    """Passed with its batch, which 478 keeps from landing."""
    entry = builders.an_entry(EntryState.TESTS_PASSED, Reason.RUN_PASSED, run=RUN, verified_by=RUN)
    mates = [replace(entry, pr=pr, id=f"e{pr}", rank=pr) for pr in (480, 485)]
    queue = builders.a_queue(entries={one.pr: one for one in (*mates, entry)})
    ahead = Condition(ConditionCode.AHEAD_LANDED, met=False, prs=(478,))
    return shown(
        entry,
        ahead,
        following=Next.LANDING_ENDS,
        queue=queue,
        run=stories.a_run(entries=members(480, 482, 485), status=RunStatus.SUCCEEDED),
        history=UP_TO_TESTING,
    )


def search(prs: tuple[int, ...], lo: int, hi: int, *cuts: int) -> PullRequestText:
    """Its batch failed; the first `lo` are proven, and leading parts of it are under test."""
    detail = Detail(run=RUN, checks=(TEST,))
    entry = builders.an_entry(
        EntryState.PENDING_FAILURE, Reason.CHECK_FAILED, run=RUN, bisection=SEARCH, detail=detail
    )
    bisection = Bisection(
        id=SEARCH,
        run=RUN,
        entries=members(*prs),
        base=members(478),
        base_tip=TIP,
        lo=lo,
        hi=hi,
        reds={len(prs): (RUN,)},
        probes={cut: f"probe-{cut}" for cut in cuts},
    )
    found = hi - lo == 1
    conditions = [
        Condition(ConditionCode.AHEAD_DECIDED, met=True),
        Condition(ConditionCode.BISECTION_DONE, found, prs=prs, count=lo, total=hi, runs=len(cuts)),
    ]
    if found:
        suspect = () if prs[hi - 1] == 482 else (prs[hi - 1],)
        conditions.append(Condition(ConditionCode.CONFIRMED, met=False, prs=suspect))
    narrowed = (stories.recorded(24, BisectionNarrowed(SEARCH, RUN, lo, hi)),) if lo else ()
    history = (
        *UP_TO_TESTING[:2],
        started(1, RunKind.MAIN, prs, 478),
        stories.stepped(20, EntryState.PENDING_FAILURE, Reason.CHECK_FAILED, detail=detail),
        stories.recorded(20, BisectionOpened(SEARCH, RUN, prs)),
        started(20, RunKind.PROBE, prs[:2], 478),
        *narrowed,
    )
    return shown(
        entry,
        *conditions,
        following=Next.CONFIRMATION_ENDS if found else Next.PROBE_ENDS,
        queue=builders.a_queue(bisections={SEARCH: bisection}),
        run=stories.a_run(entries=members(*prs), status=RunStatus.FAILED),
        history=history,
    )


def again(reason: Reason, *prs: int) -> PullRequestText:
    """In the line once more, for this reason; nothing but a slot is missing."""
    detail = Detail(prs=prs)
    entry = builders.an_entry(
        EntryState.PENDING, reason, restarts={reason.value: 1}, detail=detail, rank=9
    )
    slot = Condition(ConditionCode.FREE_SLOT, met=False, prs=(478, 480), count=2, total=2)
    closed = BisectionClosed(SEARCH, RUN, prs[0] if prs else None, reason)
    is_search = reason is Reason.BISECTION_REQUIRED
    over = (
        stories.recorded(19, BisectionOpened(SEARCH, RUN, (480, 481, 482))),
        stories.recorded(21, closed),
    )
    history = (
        *UP_TO_TESTING,
        *(over if is_search else ()),
        stories.stepped(21, EntryState.PENDING, reason, detail=detail),
    )
    return shown(entry, slot, following=Next.SLOT_FREES, history=history)


def kept() -> PullRequestText:
    """Failed, and still counted on: 485 and 486 are under test on top of it."""
    undecided = stories.undecided(())
    behind = Condition(
        ConditionCode.SUCCESSORS_DECIDED, met=False, prs=(485, 486), count=0, total=2
    )
    entry = replace(undecided.entry, kept=True)
    met = Condition(ConditionCode.AHEAD_DECIDED, met=True)
    return shown(
        entry,
        met,
        behind,
        following=Next.SUCCESSOR_ENDS,
        run=undecided.run,
        history=undecided.history,
    )


def cleared() -> PullRequestText:
    """Failed by itself, and passed as part of the tests of 485."""
    detail = Detail(run="run-485", prs=(485,))
    entry = builders.an_entry(
        EntryState.TESTS_PASSED,
        Reason.SUCCESSOR_PASSED,
        run="run-485",
        verified_by="run-485",
        detail=detail,
    )
    other = replace(entry, pr=485, id="e485", reason=Reason.RUN_PASSED)
    step = stories.stepped(
        22,
        EntryState.TESTS_PASSED,
        Reason.SUCCESSOR_PASSED,
        origin=EntryState.PENDING_FAILURE,
        detail=detail,
    )
    return shown(
        entry,
        queue=builders.a_queue(entries={482: entry, 485: other}),
        history=(*stories.undecided(()).history, step),
        following=Next.LANDING_ENDS,
    )


def lane() -> PullRequestText:
    """Under test in PARALLEL mode, on top of the one ahead that it meets."""
    testing = stories.testing()
    queue = builders.a_queue(config=PARALLEL)
    updated = EntryUpdated(482, testing.entry.id, 100, False, targets.of(["//cart", "//tax"]))
    history = (*testing.history[:2], stories.recorded(0.5, updated), *testing.history[2:])
    run = stories.a_run(config=PARALLEL)
    hedge = started(5, RunKind.HEDGE, (482,))
    return replace(testing, queue=queue, run=run, history=(*history, hedge), position=5)


def lane_waiting() -> PullRequestText:
    """Waits in PARALLEL mode for two that it meets."""
    entry = builders.an_entry(EntryState.PENDING, Reason.NOW_READY, seq=3)
    turn = Condition(ConditionCode.ITS_TURN, met=False, prs=(478, 480), count=2)
    return shown(entry, turn, following=Next.RUN_STARTS, queue=builders.a_queue(config=PARALLEL))


def without_targets() -> PullRequestText:
    """Waits in PARALLEL mode until somebody says what it touches."""
    missing = Reason.IMPACTED_TARGETS_MISSING
    entry = builders.an_entry(EntryState.NOT_READY, Reason.USER_REQUESTED, unmet=(missing,))
    condition = Condition(Reason.IMPACTED_TARGETS_MISSING, met=False)
    queue = builders.a_queue(config=PARALLEL)
    return shown(entry, condition, following=Next.FACTS_CHANGE, queue=queue, position=None)


def screened() -> PullRequestText:
    """Under test alone before it takes its place in the line."""
    entry = builders.an_entry(EntryState.TESTING, Reason.TEST_STARTED, run=RUN)
    run = stories.a_run(kind=RunKind.SCREEN, base=())
    history = (*UP_TO_TESTING[:2], started(1, RunKind.SCREEN, (482,)))
    return shown(entry, run=run, history=history, following=Next.CHECK_REPORTS)


def interacting() -> PullRequestText:
    """Convicted: fails only together with 478."""
    detail = Detail(run=RUN, checks=(TEST,), prs=(478,))
    run = stories.a_run(status=RunStatus.FAILED, cause=Cause.INTERACTION)
    return stories.ended(EntryState.FAILED, Reason.INTERACTION, detail, run=run)


STORIES = {
    "batch-waiting": batch_waiting(),
    "batch-testing": batch_testing(),
    "batch-passed": batch_passed(),
    "batch-split": search((480, 481, 482, 485), 0, 4, 2),
    "batch-split-further": search((480, 481, 482, 485), 2, 4, 3),
    "batch-split-wide": search((480, 481, 482, 485), 0, 4, 1, 2, 3),
    "batch-suspect": search((480, 481, 482, 485), 2, 3),
    "batch-behind-suspect": search((480, 481, 482, 485), 0, 1),
    "batch-regrouped": again(Reason.BISECTION_REQUIRED, 480),
    "batch-member-left": again(Reason.BATCH_MEMBER_LEFT, 480),
    "batch-taken-apart": again(Reason.BATCH_TAKEN_APART),
    "interrupted": again(Reason.INTERRUPTED_BY_URGENT, 490),
    "ahead-returned": again(Reason.AHEAD_RETURNED, 480),
    "mode-switched": again(Reason.MODE_SWITCHED),
    "kept": kept(),
    "cleared": cleared(),
    "lane": lane(),
    "lane-waiting": lane_waiting(),
    "targets-missing": without_targets(),
    "screened": screened(),
    "interaction": interacting(),
}
