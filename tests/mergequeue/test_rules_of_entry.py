"""Rules of entry in the engine: any course of facts and time, and who may be let in by a rule."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.mergequeue.engine import engine
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import FactsChanged, Submit
from service.mergequeue.engine.model import MergeQueue, Waiting
from service.mergequeue.engine.outputs import EntrySubmitted, Land
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import EntryRule, Ruled, RuleWait, Seen, Span
from service.mergequeue.engine.state import waiting
from service.vocabulary import Actor, ActorKind, Blocker, BlockerCode, Channel
from tests.mergequeue import playing
from tests.mergequeue.stage import ALICE, START, Stage, a_queue, facts_of

SEEN = Seen(0, "", "alice", "work", "main", (), (), draft=False, fork=False, auto_merge=False)
RULE = Actor(ActorKind.SYSTEM, "ready", channel=Channel.RULE)
READY = replace(facts_of(1), ruled=Ruled(enter_rule="ready"))
ENTERS = QueueConfig(rules=(EntryRule("ready", enter=True),))

minutes = st.integers(0, 60)
spans = st.lists(st.tuples(minutes, st.integers(1, 20)), max_size=3).map(
    lambda found: tuple(_span(since, length) for since, length in sorted(found))
)
ruled = st.builds(
    Ruled,
    priority=st.sampled_from([None, 0, 10, 200]),
    waits=st.lists(
        st.builds(RuleWait, st.just("freeze"), st.just("its end"), st.none() | spans), max_size=2
    ).map(tuple),
)
acts = st.one_of(
    st.tuples(st.just("rules"), st.integers(1, 3), ruled),
    st.tuples(st.just("time"), st.integers(1, 3), st.none() | minutes),
    st.tuples(st.just("depends"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("pass"), st.just(0), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 15), st.none()),
)


def _span(since: int, length: int) -> Span:
    begins = START + timedelta(minutes=since)
    return Span(begins, begins + timedelta(minutes=length))


def _changed(facts: Facts, act: str, value: object) -> Facts:
    if act == "rules":
        assert isinstance(value, Ruled)
        return replace(facts, ruled=value)
    if act == "time":
        at = START + timedelta(minutes=value) if isinstance(value, int) else None
        return replace(facts, seen=replace(SEEN, not_before=at))
    names = () if value == facts.pr else (Blocker(BlockerCode.DEPENDS_ON, str(value)),)
    return replace(facts, blockers=names)


def _must_wait(facts: Facts, stage: Stage) -> bool:
    now = stage.now
    return bool(waiting.waits_of(facts, now) or waiting.is_early(facts, now) or facts.depends_on)


@settings(max_examples=60, deadline=None)
@given(st.lists(acts, min_size=3, max_size=25))
def test_nothing_lands_while_it_waits_whatever_the_rules_say_and_when(
    course: list[tuple[str, int, object]],
):
    stage = Stage(QueueConfig(concurrency=3))
    for pr in (1, 2, 3):
        stage.tell(stage.submit(pr))
    for act, number, value in course:
        began = len(stage.told)
        if act == "wait":
            stage.passes(timedelta(minutes=number))
        elif act == "pass":
            for run in [one for one in stage.queue.runs.values() if one.sha is not None]:
                playing.VERBS["pass"](stage, [f"r{run.number}"])
        elif number in stage.queue.entries:
            entry = stage.queue.entries[number]
            stage.tell(FactsChanged(_changed(entry.facts, act, value)))
        for action in stage.told[began:]:
            for step in action.steps if isinstance(action, Land) else ():
                entry = next(
                    queue.entries[step.pr]
                    for queue, _ in reversed(stage.steps)
                    if step.pr in queue.entries
                )
                assert not _must_wait(entry.facts, stage)
        for entry in stage.queue.entries.values():
            assert not waiting.is_changed(entry, stage.now)


def test_spans_that_follow_each_other_are_one_wait():
    wait = RuleWait("freeze", "its end", (_span(20, 5), _span(0, 10), _span(10, 10)))
    facts = replace(facts_of(1), ruled=Ruled(waits=(wait,)))
    until = START + timedelta(minutes=25)
    assert waiting.waits_of(facts, START) == (Waiting("freeze", "its end", until),)
    assert waiting.next_border(facts, until) is None


def _entered(queue: MergeQueue, submit: Submit) -> bool:
    step = engine.step(queue, submit, START)
    is_in = any(isinstance(one.event, EntrySubmitted) for one in step.events)
    assert is_in is (step.refusal is None)
    return is_in


def test_a_rule_lets_in_what_is_ready_and_is_its_author():
    queue = engine.step(a_queue(ENTERS), Submit(READY, RULE, rule="ready"), START).queue
    assert queue.entries[1].reason is not Reason.USER_REQUESTED
    assert queue.entries[1].submitted_by == RULE
    assert not _entered(queue, Submit(READY, RULE, rule="ready"))


@pytest.mark.parametrize(
    ("config", "facts"),
    [
        (QueueConfig(), READY),
        (QueueConfig(rules=(EntryRule("ready"),)), READY),
        (ENTERS, replace(READY, ruled=Ruled(enter_rule="other"))),
        (ENTERS, replace(READY, draft=True)),
        (ENTERS, replace(READY, is_fork=True)),
        (ENTERS, replace(READY, base="next")),
        (ENTERS, replace(READY, blockers=(Blocker(BlockerCode.DEPENDS_ON, "2"),))),
        (ENTERS, replace(READY, ruled=replace(READY.ruled, waits=(RuleWait("f", "x"),)))),
    ],
    ids=["no rule", "lets nothing in", "another", "draft", "fork", "base", "depends", "waits"],
)
def test_a_rule_lets_nothing_in_that_it_no_longer_wants_or_that_is_not_ready(
    config: QueueConfig, facts: Facts
):
    assert not _entered(a_queue(config), Submit(facts, RULE, rule="ready"))


def test_a_person_takes_over_the_priority_and_no_rule_takes_it_back():
    stage = Stage(QueueConfig())
    stage.tell(Submit(replace(READY, ruled=Ruled(10, "hotfix")), ALICE))
    assert stage.queue.entries[1].priority_rule == "hotfix"
    stage.tell(Submit(stage.queue.entries[1].facts, ALICE, priority=100))
    stage.tell(FactsChanged(replace(READY, ruled=Ruled(0, "hotfix"))))
    assert (stage.queue.entries[1].priority, stage.queue.entries[1].priority_rule) == (100, "")


def test_a_late_read_of_a_dependency_that_has_landed_here_takes_nothing_out():
    stage = Stage(QueueConfig())
    stage.tell(stage.submit(1))
    depends = replace(facts_of(2), blockers=(Blocker(BlockerCode.DEPENDS_ON, "1"),))
    stage.tell(Submit(depends, ALICE))
    playing.VERBS["pass"](stage, ["r1"])
    begun = stage.queue.entries[2]
    assert begun.run is not None
    # The provider still shows the first one as open.
    stage.tell(FactsChanged(depends))
    assert (stage.queue.entries[2].run, stage.queue.entries[2].unmet) == (begun.run, ())
    stage.tell(FactsChanged(replace(depends, blockers=(Blocker(BlockerCode.DEPENDS_ON, "1 9"),))))
    assert stage.queue.entries[2].facts.depends_on == (9,)
    assert stage.queue.entries[2].run is None
