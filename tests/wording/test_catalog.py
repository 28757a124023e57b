"""Every code has its text and every text its code; the texts stand in golden/catalog-*.txt."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.mergequeue.engine import targets
from service.mergequeue.engine.explaining.conditions import (
    Condition,
    ConditionCode,
    Next,
    NextEvent,
)
from service.mergequeue.engine.explaining.risks import Why
from service.mergequeue.engine.model import NOTHING, Detail, Named
from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    EntryPlaced,
    EntryUpdated,
    Event,
    PlacedWhy,
    Refused,
    RunStarted,
)
from service.mergequeue.engine.reasons import NOT_READY_ORDER, Cause, HoldReason, Reason
from service.mergequeue.engine.states import FINAL, EntryState, QueueState, RunKind
from service.mergequeue.wording import (
    bodies,
    checked_names,
    conditions,
    endings,
    history,
    holds,
    places,
    readiness,
    reasons,
    refusals,
    replies,
    situation,
)
from service.mergequeue.wording.replies import Right
from service.mergequeue.wording.situation import Situation, UnmetCondition
from service.provider.signals import Unclear
from service.text import markdown, phrases
from service.text.phrases import Phrase
from service.vocabulary import CheckOutcome
from tests.harness.expect import expect
from tests.wording import builders, crowds, hygiene, stories
from tests.wording.builders import HEAD
from tests.wording.test_markdown import foreign

TABLES: dict[EntryState, Collection[Reason]] = {
    EntryState.NOT_READY: [one for one in Reason if one.record.submitted or one.record.need],
    EntryState.PENDING: [one for one in Reason if one.record.pending],
    EntryState.TESTING: [one for one in Reason if one.record.testing],
    EntryState.TESTS_PASSED: [one for one in Reason if one.record.passed],
    EntryState.PENDING_FAILURE: [one for one in Reason if one.record.undecided],
    EntryState.FAILED: [one for one in Reason if one.record.failed],
    EntryState.CANCELLED: [one for one in Reason if one.record.cancelled],
    EntryState.MERGED: [one for one in Reason if one.record.merged],
}
STATES_OF_CLAUSES = [state for state in EntryState if state is not EntryState.NOT_READY]
NEEDS = builders.before(Reason.RULE_UNMET, Reason.MERGE_REFUSED, NOT_READY_ORDER)
CONDITIONS = [*NOT_READY_ORDER, *ConditionCode]
STANDINGS = [
    (state, reason) for state, table in TABLES.items() for reason in Reason if reason in table
]


def at(state: EntryState, reason: Reason, detail: Detail = NOTHING) -> Situation:
    entry = builders.an_entry(state, reason, detail=detail, canceller=builders.BOB)
    return situation.situation_of(entry, builders.a_queue())


def shown(text: Phrase) -> str:
    return markdown.markdown(text, builders.LINKS)


def test_each_reason_has_a_text():
    told = {reason for table in TABLES.values() for reason in table}
    assert told | set(builders.REFUSALS) == set(Reason)
    assert set(builders.REFUSALS) & told == {Reason.FORK_NEEDS_PERSON}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{who|somebody} left", "somebody left"),
        ("merged[ by {who}]", "merged"),
        ("merged[ by {name}]", "merged by `octo`"),
        ("[{who} failed|its batch was split]", "its batch was split"),
        ("[{name} failed|its batch was split]", "`octo` failed"),
        ("merged[ by {who|somebody}]", "merged by somebody"),
        ("comment `/merge`[ or {nothing}].", "comment `/merge`."),
    ],
)
def test_a_template_says_what_is_known(template: str, text: str):
    known = {"name": "octo", "who": None, "nothing": Phrase()}
    assert shown(phrases.filled(template, known.__getitem__)) == text


def test_a_place_that_must_be_known_is_missed():
    with pytest.raises(phrases.Unknown):
        phrases.filled("merged into {target}", lambda _: None)


@pytest.mark.parametrize("reason", Reason)
def test_each_sentence_of_a_record_can_be_said_when_nothing_is_known(reason: Reason):
    record = reason.record
    bare = Situation("main", EntryState.PENDING, reason)
    texts = [record.submitted, record.pending, record.testing, record.passed, record.undecided]
    for ending in filter(None, (record.failed, record.cancelled, record.merged)):
        texts += [ending.clause, ending.next, ending.note]
    texts += [record.aside.clause, record.aside.step] if record.aside else []
    for text in texts:
        assert "{" not in shown(places.filled(text, bare))


def test_each_condition_each_next_event_and_each_outcome_has_a_text():
    assert set(conditions.CONDITIONS) == set(ConditionCode)
    assert set(conditions.NEXT) == set(Next)
    assert set(checked_names.OUTCOMES) == {*CheckOutcome, None}
    assert set(refusals.UNCLEAR) == set(Unclear)
    assert set(replies.COMMANDS) == set(Right)


def test_the_text_of_every_condition_met_and_open():
    queue = builders.a_queue(state=QueueState.PAUSED)
    lines = []
    for code in CONDITIONS:
        lines.append(code.value)
        for met in (True, False):
            known = WORDS.get(code, Condition(code, met))
            prs = () if code in NAMED_BELOW else (478, 480)
            one = replace(known, met=met, prs=prs, count=2, total=2)
            lines.append(f"    {'✓' if met else '○'} {shown(conditions.clause(one, queue))}")
    lines += [f"{one.code}: {shown(conditions.clause(one, queue))}" for one in AMONG_OTHERS]
    lines.append("in parallel mode")
    lanes = builders.a_queue(config=crowds.PARALLEL)
    lines += [f"{one.code}: {shown(conditions.clause(one, lanes))}" for one in IN_LANES]
    expect("\n".join(lines)).matches("catalog-conditions.txt")


NAMED_BELOW = {
    ConditionCode.BISECTION_DONE,
    ConditionCode.CONFIRMED,
    ConditionCode.STILL_READY,
}
IN_LANES = [
    Condition(code, met=met, prs=prs, count=len(prs))
    for code in (ConditionCode.ITS_TURN, ConditionCode.BASE_STARTABLE)
    for met, prs in ((True, ()), (False, (478,)), (False, tuple(range(478, 486))))
]
SEARCHED = (478, 480, 482, 485)
AMONG_OTHERS = [
    Condition(ConditionCode.NO_HOLD, met=False, word="base_red"),
    Condition(ConditionCode.NO_HOLD, met=False, word="base_red", at=builders.NOW),
    Condition(ConditionCode.NO_HOLD, met=False, word="base_red", prs=(478,)),
    Condition(ConditionCode.NO_HOLD, met=False, word="base_red", prs=(478, 480), at=builders.NOW),
    Condition(ConditionCode.FEW_RUNS, met=False, count=140, total=12),
    Condition(ConditionCode.FEW_RUNS, met=False, count=13, total=12),
    Condition(ConditionCode.FAIR_SHARE, met=True, count=0, total=8),
    Condition(ConditionCode.FAIR_SHARE, met=True, count=1, total=8, word="0"),
    Condition(ConditionCode.FAIR_SHARE, met=False, count=3, total=8, word="4"),
    Condition(ConditionCode.FEW_ON_ALL, met=True, prs=(478,), count=127, total=128),
    Condition(ConditionCode.FEW_ON_ALL, met=False, prs=(478,), count=128, total=128),
    Condition(ConditionCode.LINE_PASSES, met=False, count=9, total=25),
    *(
        Condition(ConditionCode.ALONE_FIRST, met=True, word=why, count=12, total=5, prs=prs)
        for why in Why
        for prs in ((), (478,))
        if prs or why is not Why.OTHERS_WAIT
    ),
    Condition(ConditionCode.CAUSE_AHEAD, met=False, prs=(478,)),
    Condition(ConditionCode.CAUSE_AHEAD, met=False, prs=(478, 479)),
    Condition(ConditionCode.SUSPECTS_DECIDED, met=False, prs=(478,)),
    Condition(ConditionCode.SUSPECTS_DECIDED, met=False, prs=(478, 479)),
    Condition(ConditionCode.FOLLOWERS_AWAITED, met=False, prs=(478,), count=25),
    Condition(ConditionCode.BATCH_COMPLETE, met=True, count=3, total=4),
    Condition(ConditionCode.BATCH_COMPLETE, met=False, count=1, total=4),
    Condition(ConditionCode.FREE_SLOT, met=False, prs=tuple(range(1, 9)), count=2, total=2),
    Condition(ConditionCode.SUCCESSORS_DECIDED, met=False, prs=(478,), count=0, total=1),
    Condition(ConditionCode.BISECTION_DONE, met=False, prs=SEARCHED),
    Condition(ConditionCode.BISECTION_DONE, met=False, prs=SEARCHED, count=0, total=4, runs=1),
    Condition(ConditionCode.BISECTION_DONE, met=False, prs=SEARCHED, count=1, total=3, runs=2),
    Condition(ConditionCode.BISECTION_DONE, met=True, prs=SEARCHED, count=2, total=3),
    Condition(ConditionCode.CONFIRMED, met=False),
    Condition(ConditionCode.CONFIRMED, met=False, prs=(478,)),
    Condition(ConditionCode.STILL_READY, met=False, prs=(478,), word="review_required"),
    Condition(ConditionCode.OTHERS_MERGE, met=False, since=builders.NOW),
    Condition(ConditionCode.LANDING_FREE, met=False, prs=(482,), word="own"),
    Condition(ConditionCode.LANDING_FREE, met=False, prs=(482,), word="unanswered"),
    Condition(
        ConditionCode.LANDING_FREE,
        met=False,
        prs=(482,),
        word="unanswered",
        at=builders.NOW + timedelta(seconds=25),
    ),
]

WORDS = {
    one.code: one
    for one in (
        Condition(
            ConditionCode.STATUS_PASSED,
            met=False,
            name="lint",
            word="running",
            url=builders.TEST.url,
        ),
        Condition(ConditionCode.NO_HOLD, met=False, name="hold-1", word="rule_denied"),
        Condition(ConditionCode.STILL_READY, met=False, word="review_required"),
    )
}


@pytest.mark.parametrize(
    ("ahead", "base"),
    [
        ((), "`main`"),
        ((1,), "`main` and `#1`"),
        ((1, 2), "`main`, `#1` and `#2`"),
        (tuple(range(1, 23)), f"`main`, {', '.join(f'`#{n}`' for n in range(1, 21))} and 2 more"),
    ],
)
def test_what_a_test_stands_on_is_one_list(ahead, base):
    entry = builders.an_entry(EntryState.TESTING, Reason.TEST_STARTED, run=stories.RUN)
    members = tuple(replace(stories.a_run().base[0], pr=pr) for pr in ahead)
    view = stories.view(entry, run=stories.a_run(base=members))
    assert f"`a1b2c3d` on top of {base}. " in bodies.body(view)
    started = replace(stories.STARTED.event, base_prs=ahead)
    told = shown(history.clause(replace(stories.STARTED, event=started), "main"))
    assert told == f"testing started on top of {base}"


def test_the_text_of_every_next_event():
    lines = [
        f"{what.value}: {shown(conditions.what_next(NextEvent(what, prs=prs)))}"
        for what in Next
        for prs in ((478,), (478, 480), ())
    ]
    expect("\n".join(lines)).matches("catalog-next-events.txt")


def test_the_text_of_every_start_of_a_run_and_of_every_place():
    entry = builders.an_entry(EntryState.PENDING, Reason.NOW_READY)
    events: list[Event] = [EntryPlaced(482, entry.id, 5, why) for why in PlacedWhy]
    for kind in RunKind:
        for prs, base in (((482,), ()), ((480, 482), (478,))):
            events.append(RunStarted(stories.RUN, 7, kind, prs, base, stories.TIP.sha))
    touches = (None, targets.ALL, targets.of(["//a"]), targets.of(["//a", "//b"]))
    events += [EntryUpdated(482, entry.id, 10, each is None, each) for each in touches]
    lines = [shown(history.clause(stories.recorded(1, each), "main")) for each in events]
    expect("\n".join(lines)).matches("catalog-starts.txt")


def test_the_text_of_every_step_of_a_search():
    opened = BisectionOpened(crowds.SEARCH, stories.RUN, SEARCHED)
    told = [stories.recorded(1, opened)]
    steps: list[Event] = [opened, replace(opened, prs=(478,))]
    steps += [
        BisectionNarrowed(crowds.SEARCH, stories.RUN, lo, hi)
        for lo, hi in ((0, 2), (1, 3), (2, 4), (0, 1), (2, 3), (4, 4))
    ]
    closed = BisectionClosed(crowds.SEARCH, stories.RUN, None, Reason.BISECTION_PASSED)
    steps += [replace(closed, culprit=480, why=Reason.REQUIRED_STATUS_FAILED), closed]
    whys = (Reason.RESTARTED_BY_API, Reason.MODE_SWITCHED, Reason.AHEAD_OUT, Reason.USER_REQUESTED)
    steps += [replace(closed, why=why) for why in whys]
    lines = []
    for step in steps:
        for past in (told, []):
            text = history.clause(stories.recorded(2, step), "main", history=past)
            lines.append(shown(text))
    expect("\n".join(dict.fromkeys(lines))).matches("catalog-searches.txt")


def test_what_a_pull_request_still_needs_is_named_as_what_comes_next():
    following = NextEvent(Next.FACTS_CHANGE)
    codes = list(NEEDS)
    lines = []
    for code in codes:
        for wanted in (
            UnmetCondition(code, "main", "develop", "", builders.HEAD),
            UnmetCondition(code, "main"),
        ):
            text = shown(conditions.what_next(following, [wanted]))
            lines.append(f"{code.value}: {text}")
    for count in (2, 3, 4):
        several = [UnmetCondition(code, "main") for code in codes[1 : 1 + count]]
        lines.append(f"{count}: {shown(conditions.what_next(following, several))}")
    expect("\n".join(lines)).matches("catalog-steps.txt")


def test_every_entry_that_leaves_unmerged_is_told_what_to_do():
    finished = {
        (state, reason)
        for state, reason in STANDINGS
        if state in (EntryState.FAILED, EntryState.CANCELLED)
    }
    nothing_to_do = {
        (EntryState.CANCELLED, Reason.PR_GONE),
        (EntryState.CANCELLED, Reason.MERGED_INTO_OTHER_BRANCH),
    }
    assert {each for each in finished if not endings.next_step(at(*each)).parts} == nothing_to_do


def test_the_sentence_of_every_state_and_reason():
    lines = []
    for state, reason in STANDINGS:
        lines.append(f"{state.value} {reason.value}")
        for detail in (builders.EVIDENCE, NOTHING):
            text = phrases.sentence(reasons.explanation(at(state, reason, detail)))
            lines.append(f"    {shown(text)}")
    expect("\n".join(lines)).matches("catalog-reasons.txt")


def test_what_to_do_after_every_ending():
    lines = []
    for state, reason in STANDINGS:
        steps = [
            shown(endings.next_step(at(state, reason, detail)))
            for detail in (builders.EVIDENCE, NOTHING)
        ]
        if steps[0]:
            lines.extend([f"{state.value} {reason.value}", *(f"    {step}" for step in steps)])
    expect("\n".join(lines)).matches("catalog-next-steps.txt")


def test_what_a_pull_request_needs_before_it_may_enter():
    lines = []
    for code in NEEDS:
        for wanted in (
            UnmetCondition(code, "main", "develop", "", builders.HEAD),
            UnmetCondition(code, "main"),
        ):
            whole, brief = shown(readiness.goal(wanted)), shown(readiness.brief(wanted))
            lines.append(f"{code.value}: {whole} | {brief}")
    for below, absent in (("7", ""), ("7 8", ""), ("7 8", "7"), ("7 8", "7 8")):
        wanted = UnmetCondition(Reason.STACKED, "main", below, absent)
        words = (readiness.goal(wanted), readiness.brief(wanted), readiness.step(wanted))
        lines.append(f"stacked: {' | '.join(map(shown, words))}")
    expect("\n".join(lines)).matches("catalog-readiness.txt")


def test_the_text_of_every_hold():
    lines = []
    for reason in HoldReason:
        lines.append(reason.value)
        for text in ("You're not authorized", ""):
            hold = builders.a_hold(reason, text=text)
            lines.append(f"    {shown(holds.text(hold, 'main', builders.NOW))}")
    until = builders.NOW + builders.minutes(2000)
    frozen = builders.a_hold(HoldReason.FREEZE, by=builders.BOB, text="release", until=until)
    lines.append(shown(holds.text(frozen, "main", builders.NOW)))
    expect("\n".join(lines)).matches("catalog-holds.txt")


def test_the_text_of_every_cause():
    lines = [
        f"{cause.value}: {shown(endings.verdict(cause, 'main', prs))}"
        for cause in Cause
        for prs in ((478,), ())
    ]
    expect("\n".join(lines)).matches("catalog-causes.txt")


def test_the_text_of_every_refusal():
    lines = []
    for reason in builders.REFUSALS:
        refused = Refused(reason, "must be between 1 and 1000", "concurrency", (480, 482), HEAD)
        refused = replace(
            refused, blamed=builders.blamed("unit tests"), over=builders.over("bob", None)
        )
        lines.append(f"{reason.value}: {shown(refusals.text(refused, 'main'))}")
    over = builders.over("bob", builders.NOW)
    minutes = refusals.text(Refused(Reason.OVER_BUDGET, "", over=over), "main")
    lines.append(f"over_budget, CI minutes: {shown(minutes)}")
    expect("\n".join(lines)).matches("catalog-refusals.txt")


details = st.builds(
    Detail,
    text=foreign,
    checks=st.lists(st.builds(Named, foreign, foreign), max_size=8).map(tuple),
    prs=st.lists(st.integers(1, 99_999), max_size=30).map(tuple),
    paths=st.lists(foreign, max_size=8).map(tuple),
    sha=st.none() | st.just(builders.NEW_HEAD),
)
LENGTH_MAX = 12_000
USUAL = sorted({one for state in STATES_OF_CLAUSES for one in TABLES[state]})


@given(st.sampled_from(EntryState), st.sampled_from(USUAL), details)
def test_any_state_with_any_reason_and_any_evidence_has_an_inert_sentence(state, reason, detail):
    # A final state takes only its own codes.
    if state in FINAL and reason not in TABLES[state]:
        reason = next(iter(TABLES[state]))
    where = at(state, reason, detail)
    for text in (reasons.explanation(where), endings.next_step(where)):
        assert hygiene.faults(shown(text)) == []
        assert len(shown(text)) < LENGTH_MAX
    assert reasons.sentence(where).strip()


def test_a_hold_after_one_check_names_the_setting_for_checks_of_pull_requests():
    repeated = HoldReason.REPEATED_FAILURE
    by_name = builders.a_hold(repeated, text="t", evidence="check pr-title")
    text = shown(holds.text(by_name, "main", builders.NOW))
    assert "Each time `pr-title` failed" in text
    assert "an admin adds it to `headOnlyStatuses`" in text
    by_results = builders.a_hold(repeated, text="t", evidence="boom")
    assert "headOnlyStatuses" not in shown(holds.text(by_results, "main", builders.NOW))


def all_holds(text: str) -> Iterable[str]:
    for reason in HoldReason:
        hold = builders.a_hold(reason, text=text, evidence=text)
        yield shown(holds.text(hold, text, builders.NOW))


@given(foreign)
def test_holds_causes_refusals_and_conditions_of_entry_are_inert(text):
    shown_texts = [*all_holds(text)]
    shown_texts += [shown(endings.verdict(cause, text, (478,))) for cause in Cause]
    shown_texts += [
        shown(refusals.text(refused, text))
        for reason in builders.REFUSALS
        for until in (None, builders.NOW)
        for refused in [
            Refused(
                *(reason, text, text, (478,)),
                blamed=builders.blamed(text),
                over=builders.over(text, until),
            )
        ]
    ]
    wanted = [UnmetCondition(code, text, text) for code in NEEDS]
    shown_texts += [shown(each(one)) for one in wanted for each in (readiness.goal, readiness.step)]
    assert not [each for each in shown_texts if hygiene.faults(each) or len(each) > LENGTH_MAX]


@pytest.mark.parametrize(("tries", "words"), [(0, "once"), (1, "twice"), (2, "3 times")])
def test_interruptions_are_counted_by_the_tries_that_the_queue_allows(tries, words):
    config = builders.replaced_config(auto_retry_limit=tries)
    entry = builders.an_entry(EntryState.NOT_READY, Reason.CI_INTERRUPTED)
    text = reasons.message(entry, builders.a_queue(config=config))
    assert f"CI stopped its checks {words}; your change is not at fault" in text


def test_of_one_that_ci_has_made_leave_the_hours_are_told():
    config = builders.replaced_config(not_ready_timeout_hours=6)
    entry = builders.an_entry(EntryState.CANCELLED, Reason.CI_INTERRUPTED)
    text = reasons.message(entry, builders.a_queue(config=config))
    assert text == "Removed: CI stopped its checks for 6 h; your change is not at fault."
