"""Which facts a turn adds to the figures; `tests/mergequeue` counts whole scenarios."""

from datetime import UTC, datetime, timedelta

from service.mergequeue.engine.outputs import RunStarted
from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.operations import counting
from service.mergequeue.store.figures import Moved
from service.metrics.facts import MetricFact
from service.metrics.queue_families import Kind
from service.process import figures
from tests.mergequeue.script import Script
from tests.mergequeue.sound_counts import MINUTE, facts_of
from tests.mergequeue.stage import Stage
from tests.store.builders import an_entry

START = datetime(2026, 3, 2, 14, tzinfo=UTC)


def played(*lines: str) -> Stage:
    """A scenario, played to its end."""
    script = Script(lines[0])
    for line in lines[1:]:
        script.play(line)
    return script.stage


def test_waiting_and_testing_last_from_change_to_change():
    stage = played("queue SINGLE concurrency=1", "submit 1 2", "+7m", "pass r1", "+3m", "pass r2")
    facts = facts_of(stage)
    waited = [fact.ms for fact in facts if fact.kind is Kind.WAITED]
    tested = [fact.ms for fact in facts if fact.kind is Kind.TESTED]
    assert waited == [0, 7 * 60_000]
    assert tested == [7 * 60_000, 3 * 60_000]


def test_a_search_is_counted_apart():
    stage = played(
        "queue SINGLE batch=4 concurrency=1 bisection=1", "submit 1 2 3 4", "+5m", "fail r1"
    )
    (probe,) = [
        recorded.event
        for _, step in stage.steps
        for recorded in step.events
        if isinstance(recorded.event, RunStarted) and recorded.event.kind is RunKind.PROBE
    ]
    shown = figures.present(stage.queue)
    assert shown["mq_depth_current"] == {("main",): 0, ("bisection",): 4}
    assert shown["mq_testing_slots_active"] == {("main",): 0, ("bisection",): 1}
    stage.steps.clear()
    script = Script("queue SINGLE")
    script.stage = stage
    for line in ("+2m", f"pass r{probe.number}"):
        script.play(line)
    tested = [fact for fact in facts_of(stage) if fact.kind is Kind.TESTED]
    assert tested == [MetricFact(Kind.TESTED, ("bisection",), 120_000)] * len(probe.prs)


def test_what_others_push_is_counted_and_the_first_look_is_not():
    fresh = played("queue SINGLE", "submit 1")
    assert not [fact for fact in facts_of(fresh) if fact.kind is Kind.EXTERNAL]
    pushed = played("queue SINGLE", "submit 1", "foreign")
    assert [fact for fact in facts_of(pushed) if fact.kind is Kind.EXTERNAL] == [
        MetricFact(Kind.EXTERNAL, ())
    ]


def test_a_stay_is_without_the_time_not_ready():
    entry = an_entry(7, submitted_at=START)
    states = [
        (2, EntryState.NOT_READY, EntryState.PENDING),
        (5, EntryState.PENDING, EntryState.NOT_READY),
        (60, EntryState.NOT_READY, EntryState.PENDING),
        (61, EntryState.PENDING, EntryState.TESTING),
        (90, EntryState.TESTING, EntryState.FAILED),
    ]
    moves = tuple(Moved(START + at * MINUTE, origin, state) for at, origin, state in states)
    assert counting.stay_of(entry, moves) == 33 * MINUTE
    assert counting.stay_of(entry, ()) == timedelta()


def test_a_fact_is_in_the_bucket_that_it_does_not_exceed():
    cells = [MetricFact(Kind.WAITED, ("main",), ms).cell for ms in (0, 60_000, 60_001, 86_400_001)]
    assert cells == [0, 0, 1, 11]
