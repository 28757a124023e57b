"""Pull request 482 in every state, as `operations` would hand it to us."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from service.mergequeue.engine.checked import CheckedName, Ended, Place, checked_of
from service.mergequeue.engine.explaining.conditions import (
    Condition,
    ConditionCode,
    Next,
    NextEvent,
)
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import NOTHING, Detail, Entry, Member, Named, Run, Tip
from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    EntryMoved,
    EntrySubmitted,
    Event,
    QueueStateChanged,
    Recorded,
    RunStarted,
)
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.reported import Doomed, FailedBefore
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunPhase, RunStatus
from service.mergequeue.wording.situation import Landed, PullRequestText
from service.provenance import Proof
from service.text.times import TimeLeft
from service.vocabulary import (
    SYSTEM,
    Actor,
    Blocker,
    BlockerCode,
    Check,
    CheckKind,
    CheckOutcome,
    RequiredName,
    Sha,
)
from tests.wording import builders
from tests.wording.builders import (
    ALICE,
    BOB,
    HEAD,
    LANDED,
    LINT,
    NEW_HEAD,
    NOW,
    SUBMITTED_AT,
    TEST,
    minutes,
)

RUN = "6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10"
TIP = Tip(Sha("c" * 40), Sha("d" * 40))


def at(minute: float) -> datetime:
    """So many minutes after the submission."""
    return SUBMITTED_AT + minutes(minute)


def a_check(name: str, outcome: CheckOutcome) -> Check:
    """A report on the test branch."""
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=name,
        source_id="15368",
        group="1",
        id="1",
        outcome=outcome,
        raw=outcome.value,
        url=f"https://github.com/octo/widgets/runs/{len(name)}",
    )


def a_run(**changes: Any) -> Run:
    """Its run, on top of 478: lint passed, test runs or ended as the run did."""
    of_test = {
        RunStatus.SUCCEEDED: CheckOutcome.PASSED,
        RunStatus.FAILED: CheckOutcome.FAILED,
    }.get(changes.get("status", RunStatus.IN_PROGRESS), CheckOutcome.RUNNING)
    run = Run(
        id=RUN,
        number=7,
        kind=RunKind.MAIN,
        entries=(Member(482, "e482", builders.HEAD),),
        base=(Member(478, "e478", Sha("e" * 40)),),
        base_tip=TIP,
        status=RunStatus.IN_PROGRESS,
        phase=RunPhase.TESTING,
        required=builders.REQUIRED.names,
        required_source=builders.REQUIRED.source,
        config=builders.a_queue().config,
        created_at=at(1),
        built_at=at(1.5),
        start_clock=at(1.5),
        last_report_at=at(20),
        checks=(
            a_check("lint", CheckOutcome.PASSED),
            a_check("test (3.12)", of_test),
        ),
    )
    return replace(run, **changes)


def a_passed_run(**changes: Any) -> Run:
    """The same, once everything has passed on its commit."""
    return a_run(**({"status": RunStatus.SUCCEEDED, "sha": HEAD[::-1]} | changes))


def a_run_with_specials() -> Run:
    """One that passed although only one of its required checks did."""
    names = ("lint", "test (3.12)", "e2e")
    outcomes = (CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.SKIPPED)
    return a_passed_run(
        required=tuple(RequiredName(name) for name in names),
        checks=tuple(map(a_check, names, outcomes)),
        excused=("test (3.12)",),
    )


def recorded(minute: float, event: Event, actor: Actor = SYSTEM) -> Recorded:
    """An event at a minute after the submission."""
    return Recorded(at(minute), actor, event)


def moved(entry: Entry, origin: EntryState, run: str | None = None) -> EntryMoved:
    """The event of the entry's last step."""
    return EntryMoved(entry.pr, entry.id, origin, entry.state, entry.reason, run, entry.detail)


def submitted(actor: Actor = ALICE) -> Recorded:
    """The first event."""
    entry = builders.an_entry(EntryState.NOT_READY, Reason.USER_REQUESTED)
    event = EntrySubmitted(482, entry.id, builders.HEAD, entry.reason, 100)
    return recorded(0, event, actor)


def stepped(minute: float, state: EntryState, reason: Reason, **more: Any) -> Recorded:
    """A step of the entry, by the system unless `actor` says otherwise."""
    passed_by = Detail(run=RUN) if state is EntryState.TESTS_PASSED else Detail()
    detail = more.get("detail", passed_by)
    actor = more.get("actor", SYSTEM)
    origin = more.get("origin", EntryState.PENDING)
    run = RUN if state is EntryState.TESTING else None
    entry = builders.an_entry(state, reason)
    return recorded(minute, EntryMoved(482, entry.id, origin, state, reason, run, detail), actor)


STARTED = recorded(1, RunStarted(RUN, 7, RunKind.MAIN, (482,), (478,), TIP.sha))
UP_TO_TESTING = (
    submitted(),
    stepped(0.3, EntryState.PENDING, Reason.NOW_READY, origin=EntryState.NOT_READY),
    STARTED,
    stepped(1, EntryState.TESTING, Reason.TEST_STARTED),
)


def view(entry: Entry, **changes: Any) -> PullRequestText:
    """The entry, 3rd of 7, in a running queue."""
    explained = Explained(state=entry.state, reason=entry.reason, conditions=(), next=None)
    shown = PullRequestText(
        queue=builders.a_queue(),
        entry=entry,
        explained=explained,
        run=None,
        position=3,
        length=7,
        left=None,
        history=(submitted(),),
        links=builders.LINKS,
        now=NOW,
        version="0.1.0",
    )
    run = changes.get("run")
    if isinstance(run, Run):
        table = checked_of(run)
        changes = {"checked": table, "tables": {run.id: table}} | changes
    return replace(shown, **changes)


def explained(entry: Entry, *conditions: Condition, following: NextEvent | None) -> Explained:
    """What the engine says of the entry."""
    return Explained(state=entry.state, reason=entry.reason, conditions=conditions, next=following)


def not_ready() -> PullRequestText:
    """Waits for a review and a check; facts came in with a draft before."""
    blockers = (
        Blocker(BlockerCode.REVIEW_REQUIRED),
        Blocker(BlockerCode.CHECK_PENDING, "lint"),
    )
    unmet = (Reason.REVIEW_REQUIRED, Reason.CHECK_PENDING)
    entry = builders.an_entry(
        EntryState.NOT_READY,
        Reason.USER_REQUESTED,
        unmet=unmet,
        facts=builders.facts(blockers=blockers),
    )
    conditions = (
        Condition(Reason.DRAFT, met=True),
        Condition(Reason.CONFLICT_TARGET, met=True),
        Condition(Reason.REVIEW_REQUIRED, met=False),
        Condition(Reason.CHECK_PENDING, met=False, name="lint"),
        Condition(Reason.CHECK_FAILING, met=True),
        Condition(Reason.RULE_UNMET, met=True),
    )
    following = NextEvent(Next.FACTS_CHANGE)
    return view(entry, position=None, explained=explained(entry, *conditions, following=following))


def pending() -> PullRequestText:
    """Waits for a slot."""
    entry = builders.an_entry(EntryState.PENDING, Reason.NOW_READY, seq=3)
    conditions = (
        Condition(ConditionCode.QUEUE_RUNNING, met=True),
        Condition(ConditionCode.FREE_SLOT, met=False, prs=(478, 480), count=2, total=2),
    )
    following = NextEvent(Next.SLOT_FREES, prs=(478, 480))
    history = (
        submitted(),
        stepped(0.3, EntryState.PENDING, Reason.NOW_READY, origin=EntryState.NOT_READY),
    )
    return view(
        entry,
        explained=explained(entry, *conditions, following=following),
        left=TimeLeft(NOW + minutes(25), NOW + minutes(75), overdue=False),
        history=history,
    )


def paused(state: QueueState = QueueState.PAUSED) -> PullRequestText:
    """In a queue that bob paused."""
    queue = builders.a_queue(
        state=state, state_reason="release freeze", state_by=BOB, state_since=at(-12)
    )
    shown = pending()
    conditions = (Condition(ConditionCode.QUEUE_RUNNING, met=False),)
    following = NextEvent(Next.QUEUE_RESUMES)
    return replace(
        shown,
        queue=queue,
        left=None,
        explained=explained(shown.entry, *conditions, following=following),
    )


def held() -> PullRequestText:
    """In a queue whose merges GitHub refuses."""
    hold = builders.a_hold(HoldReason.RULE_DENIED, text="Changes must be made through the queue.")
    shown = pending()
    conditions = (
        Condition(ConditionCode.QUEUE_RUNNING, met=True),
        Condition(ConditionCode.NO_HOLD, met=False, name=hold.id, word="rule_denied"),
    )
    following = NextEvent(Next.HOLD_LIFTED)
    return replace(
        shown,
        queue=builders.a_queue(holds=(hold,)),
        left=None,
        explained=explained(shown.entry, *conditions, following=following),
    )


def conflicting() -> PullRequestText:
    """Kept out by a conflict with 478."""
    detail = Detail(prs=(478,), paths=("cart/totals.py", "cart/tax.py"))
    entry = builders.an_entry(
        EntryState.PENDING, Reason.CONFLICT_AHEAD, held_by=(478,), detail=detail
    )
    conditions = (Condition(ConditionCode.NO_CONFLICT_AHEAD, met=False, prs=(478,)),)
    following = NextEvent(Next.CONFLICT_CLEARS, prs=(478,))
    return view(
        entry,
        explained=explained(entry, *conditions, following=following),
        history=(
            *UP_TO_TESTING,
            stepped(1.5, EntryState.PENDING, Reason.CONFLICT_AHEAD, detail=detail),
        ),
    )


def building() -> PullRequestText:
    """Its test branch is being made."""
    shown = testing()
    run = a_run(phase=RunPhase.BUILDING, checks=(), built_at=None, start_clock=None)
    wanted = Condition(ConditionCode.BRANCH_BUILT, met=False)
    following = NextEvent(Next.BRANCH_BUILT)
    known = explained(shown.entry, wanted, following=following)
    return replace(shown, run=run, left=None, explained=known)


def delayed() -> PullRequestText:
    """Its test branch waits for the provider's limits."""
    hold = builders.a_hold(HoldReason.PROVIDER_LIMIT, until=at(23))
    return replace(building(), queue=builders.a_queue(holds=(hold,)))


def testing() -> PullRequestText:
    """Under test on top of 478."""
    entry = builders.an_entry(EntryState.TESTING, Reason.TEST_STARTED, run=RUN)
    conditions = (
        Condition(ConditionCode.BRANCH_BUILT, met=True),
        Condition(ConditionCode.STATUS_PASSED, met=True, name="lint", word="passed"),
        Condition(
            ConditionCode.STATUS_PASSED,
            met=False,
            name="test (3.12)",
            word="running",
            url=TEST.url,
        ),
    )
    following = NextEvent(Next.CHECK_REPORTS)
    return view(
        entry,
        run=a_run(),
        position=1,
        explained=explained(entry, *conditions, following=following),
        left=TimeLeft(NOW + minutes(12), NOW + minutes(18), overdue=False),
        history=UP_TO_TESTING,
    )


def testing_but_paused() -> PullRequestText:
    """Under test, in a queue that bob paused meanwhile."""
    return replace(testing(), queue=paused().queue, left=None)


def testing_but_held() -> PullRequestText:
    """Under test, in a queue whose merges GitHub refuses."""
    return replace(testing(), queue=held().queue, left=None)


def testing_again() -> PullRequestText:
    """Under test for the second time, because 478 failed."""
    shown = testing()
    entry = replace(shown.entry, restarts={"ahead_failed": 1})
    run = "7e2f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10"
    history = (
        *UP_TO_TESTING,
        stepped(18, EntryState.PENDING, Reason.AHEAD_FAILED, detail=Detail(prs=(478,))),
        recorded(18, RunStarted(run, 9, RunKind.MAIN, (482,), (), TIP.sha)),
    )
    late = TimeLeft(NOW - minutes(12), NOW - minutes(4), overdue=True)
    return replace(shown, entry=entry, run=a_run(base=()), history=history, left=late)


def silent() -> PullRequestText:
    """Under test, and a required check stays away."""
    reported = (
        a_check("lint", CheckOutcome.PASSED),
        a_check("test (3.13)", CheckOutcome.PASSED),
    )
    return replace(testing(), run=a_run(checks=reported, last_report_at=at(10)))


def failing(**more: Any) -> PullRequestText:
    """A required check failed, and the run waits before that counts."""
    reported = (
        a_check("lint", CheckOutcome.PASSED),
        a_check("test (3.12)", CheckOutcome.FAILED),
    )
    run = a_run(checks=reported, failed_at=at(22), **more)
    return replace(testing(), run=run, left=None)


DOOM = Doomed(
    "test (3.12)",
    "unit (3.11)",
    "7",
    "3",
    step="Test",
    url="https://github.com/octo/widgets/runs/7",
)
"""A part of CI failed, so that a required check cannot pass."""


def foreseen(doom: Doomed = DOOM) -> PullRequestText:
    """A required check runs and cannot pass any more."""
    return replace(testing(), run=_doomed_run(RunStatus.IN_PROGRESS, doom), left=None)


def _doomed_run(status: RunStatus, doom: Doomed = DOOM) -> Run:
    reported = (
        a_check("lint", CheckOutcome.PASSED),
        a_check("test (3.12)", CheckOutcome.RUNNING),
    )
    is_foreseen = status is RunStatus.FAILED
    return a_run(
        status=status,
        checks=reported,
        failed_at=at(22),
        doomed=(doom,),
        is_foreseen=is_foreseen,
    )


def foreseen_undecided() -> PullRequestText:
    """Failed by what was foreseen, and a second run decides."""
    shown = undecided(())
    named = Named(DOOM.required, DOOM.url, doom=DOOM)
    return replace(
        shown,
        entry=replace(shown.entry, detail=replace(shown.entry.detail, checks=(named,))),
        run=_doomed_run(RunStatus.FAILED),
    )


def foreseen_rejected() -> PullRequestText:
    """Rejected by two runs in which a required check could not pass."""
    detail = Detail(run=RUN, checks=(Named(DOOM.required, DOOM.url, doom=DOOM),), is_confirmed=True)
    run = _doomed_run(RunStatus.FAILED)
    return ended(EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED, detail, run=run)


def failed_behind_a_gate() -> PullRequestText:
    """Rejected by a required check that failed after two jobs of its CI run had failed."""
    pages = (("unit (1)", f"{TEST.url}1"), ("e2e | web", f"{TEST.url}2"))
    after = FailedBefore(pages)
    named = Named("test (3.12)", TEST.url, after=after)
    shown = ended(
        EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED, Detail(run=RUN, checks=(named, LINT))
    )
    table = (
        CheckedName("test (3.12)", Ended.FAILED, Place.TEST_BRANCH, RUN, NEW_HEAD, after=after),
        CheckedName("lint", Ended.FAILED, Place.TEST_BRANCH, RUN, NEW_HEAD),
    )
    return replace(shown, checked=table)


def taken_back() -> PullRequestText:
    """Under test again: the failure that was foreseen did not come."""
    shown = testing()
    entry = replace(shown.entry, reason=Reason.FAILURE_TAKEN_BACK, detail=Detail(run=RUN))
    history = (
        *UP_TO_TESTING,
        stepped(
            12,
            EntryState.PENDING_FAILURE,
            Reason.CHECK_FAILED,
            detail=Detail(run=RUN, checks=(Named(DOOM.required, DOOM.url, doom=DOOM),)),
        ),
        stepped(
            14,
            EntryState.TESTING,
            Reason.FAILURE_TAKEN_BACK,
            origin=EntryState.PENDING_FAILURE,
            detail=Detail(run=RUN),
        ),
    )
    return replace(shown, entry=entry, history=history)


def unread() -> PullRequestText:
    """Under test, with so many reports that a required check may be among the unread ones."""
    shown = silent()
    assert shown.run is not None
    return replace(shown, run=replace(shown.run, checks_complete=False))


def without_check_run() -> PullRequestText:
    """Under test, in a queue that writes comments only."""
    config = replace(builders.a_queue().config, status_check_enabled=False)
    return replace(testing(), queue=builders.a_queue(config=config))


def no_checks() -> PullRequestText:
    """Under test, and CI does not seem to run."""
    return replace(testing(), run=a_run(checks=(), last_report_at=None))


def passed() -> PullRequestText:
    """Passed, and 478 ahead is not decided."""
    entry = builders.an_entry(EntryState.TESTS_PASSED, Reason.RUN_PASSED, run=RUN, verified_by=RUN)
    conditions = (
        Condition(ConditionCode.QUEUE_LANDS, met=True),
        Condition(ConditionCode.AHEAD_LANDED, met=False, prs=(478,)),
    )
    following = NextEvent(Next.AHEAD_DECIDED, prs=(478,))
    history = (
        *UP_TO_TESTING,
        stepped(20, EntryState.TESTS_PASSED, Reason.RUN_PASSED, origin=EntryState.TESTING),
    )
    return view(
        entry,
        run=a_passed_run(),
        position=2,
        explained=explained(entry, *conditions, following=following),
        history=history,
    )


def landing() -> PullRequestText:
    """Passed, and about to be merged."""
    shown = passed()
    return replace(shown, explained=explained(shown.entry, following=NextEvent(Next.LANDING_ENDS)))


def passed_but_paused() -> PullRequestText:
    """Passed, in a paused queue."""
    shown = landing()
    conditions = (Condition(ConditionCode.QUEUE_LANDS, met=False),)
    following = NextEvent(Next.QUEUE_RESUMES)
    return replace(
        shown,
        queue=paused().queue,
        explained=explained(shown.entry, *conditions, following=following),
    )


def undecided(ahead: tuple[int, ...] = (478,)) -> PullRequestText:
    """Failed, and maybe because of 478."""
    detail = Detail(run=RUN, checks=(TEST,), prs=ahead)
    entry = builders.an_entry(
        EntryState.PENDING_FAILURE, Reason.CHECK_FAILED, run=RUN, detail=detail
    )
    conditions = (Condition(ConditionCode.AHEAD_DECIDED, met=not ahead, prs=ahead),)
    following = NextEvent(Next.AHEAD_DECIDED, prs=ahead)
    history = (
        *UP_TO_TESTING,
        stepped(20, EntryState.PENDING_FAILURE, Reason.CHECK_FAILED, detail=detail),
    )
    return view(
        entry,
        run=a_run(status=RunStatus.FAILED),
        explained=explained(entry, *conditions, following=following),
        history=history,
    )


def ended(
    state: EntryState,
    reason: Reason,
    detail: Detail = NOTHING,
    *,
    by: Actor = SYSTEM,
    run: Run | None = None,
) -> PullRequestText:
    """Out of the queue after 21 minutes."""
    entry = builders.an_entry(state, reason, detail=detail)
    history: tuple[Recorded, ...] = (
        submitted(),
        stepped(0.3, EntryState.PENDING, Reason.NOW_READY, origin=EntryState.NOT_READY),
        replace(STARTED, at=at(3)),
        stepped(3, EntryState.TESTING, Reason.TEST_STARTED),
        stepped(20, EntryState.TESTS_PASSED, Reason.RUN_PASSED, origin=EntryState.TESTING),
        recorded(21, moved(entry, EntryState.TESTS_PASSED), by),
    )
    if state is not EntryState.MERGED:
        history = (*history[:-2], history[-1])
    return view(entry, position=None, length=6, history=history, run=run)


def undecided_but_paused() -> PullRequestText:
    """Failed alone, and the second test run cannot start in a queue that bob paused."""
    shown = undecided(())
    conditions = (
        Condition(ConditionCode.QUEUE_RUNNING, met=False),
        Condition(ConditionCode.CONFIRMED, met=False),
    )
    following = NextEvent(Next.QUEUE_RESUMES)
    return replace(
        shown,
        queue=paused().queue,
        explained=explained(shown.entry, *conditions, following=following),
    )


def merged(reason: Reason = Reason.LANDED, by: Actor = SYSTEM) -> PullRequestText:
    """In the target branch."""
    by_hand = reason in (Reason.MERGED_BY_HAND, Reason.ALREADY_CONTAINED)
    run = None if by_hand else a_passed_run()
    return ended(EntryState.MERGED, reason, Detail(sha=LANDED), by=by, run=run)


def passed_with_specials() -> PullRequestText:
    """About to be merged; one check was skipped, and the failure of another is excused."""
    shown, run = landing(), a_run_with_specials()
    return replace(shown, run=run, checked=_told_in_full(run), tables={run.id: _told_in_full(run)})


def merged_with_specials(reason: Reason = Reason.LANDED) -> PullRequestText:
    """In the target branch by the same run."""
    shown, run = proved(), a_run_with_specials()
    entry = replace(shown.entry, reason=reason)
    table = _told_in_full(run)
    return replace(shown, entry=entry, run=run, checked=table, tables={run.id: table})


def reused() -> PullRequestText:
    """In the target branch by the result of an earlier run of the same tree."""
    shown = proved()
    run = a_passed_run(id="r8", reused_from=RUN, checks=())
    return replace(shown, run=run, checked=checked_of(run, a_passed_run()))


def _told_in_full(run: Run) -> tuple[CheckedName, ...]:
    lint, test, e2e = checked_of(run)
    excused = replace(test, tests=("tests/test_cart.py::test_total",), proof=Proof.JOB)
    return lint, excused, replace(e2e, because="its job runs only on `merge_group`")


def failed() -> PullRequestText:
    """Convicted: `test (3.12)` fails because of it."""
    detail = Detail(run=RUN, checks=(TEST, builders.LINT))
    run = a_run(status=RunStatus.FAILED, cause=Cause.PR_FAULT)
    return ended(EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED, detail, run=run)


def proved() -> PullRequestText:
    """In the target branch, with the landing that was proved, after a pause of 2 minutes."""
    shown = merged()
    changes = (
        recorded(0.5, QueueStateChanged(QueueState.RUNNING, QueueState.PAUSED, "release")),
        recorded(2.5, QueueStateChanged(QueueState.PAUSED, QueueState.RUNNING, None)),
    )
    landed = Landed(LANDED, Sha("7" * 40), Sha("7" * 40), Sha("7" * 40))
    url = "https://github.com/octo/widgets"
    return replace(shown, landed=landed, pauses=changes, repository_url=url)


def landed_before_the_rest(tip_test: RunStatus | None = None) -> PullRequestText:
    """The first of a batch of two, which CI tested together; `tip_test`: of the target itself."""
    shown = proved()
    own, whole = Sha("7" * 40), Sha("8" * 40)
    members = (Member(shown.entry.pr, shown.entry.id, HEAD), Member(999, "e999", NEW_HEAD))
    run = replace(a_run(), entries=members)
    return replace(shown, run=run, landed=Landed(LANDED, own, own, whole, tip_test=tip_test))


def found_in_a_batch() -> PullRequestText:
    """Found by bisection: the two others ahead of it passed without it."""
    shown = failed()
    number = shown.entry.pr
    searched = (
        recorded(10, BisectionOpened("b1", RUN, (478, 480, number, 485))),
        recorded(12, BisectionNarrowed("b1", RUN, 2, 3)),
        recorded(14, BisectionClosed("b1", RUN, number, Reason.REQUIRED_STATUS_FAILED)),
    )
    return replace(shown, history=(*shown.history[:-1], *searched, shown.history[-1]))


def pushed() -> PullRequestText:
    """Removed because alice pushed."""
    return ended(EntryState.CANCELLED, Reason.HEAD_CHANGED, Detail(sha=NEW_HEAD))


def given_up() -> PullRequestText:
    """Removed because it never got its review."""
    shown = ended(EntryState.CANCELLED, Reason.NOT_READY_TIMEOUT)
    return replace(shown, entry=replace(shown.entry, unmet=(Reason.REVIEW_REQUIRED,)))
