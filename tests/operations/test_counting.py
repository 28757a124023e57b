"""Which facts a turn adds to the figures, over every scenario of the engine."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.mergequeue.engine.outputs import EntryMoved, EntrySubmitted, RunStarted
from service.mergequeue.engine.states import FINAL, EntryState, RunKind
from service.mergequeue.operations import counting
from service.mergequeue.store.figures import Moved
from service.metrics.facts import Fact
from service.metrics.queue_families import Kind
from service.process import figures
from tests.mergequeue import test_scenarios
from tests.mergequeue.script import Script
from tests.mergequeue.stage import Stage
from tests.store.builders import an_entry

START = datetime(2026, 3, 2, 14, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ENDED = {
    (state.value.lower(), reason.value)
    for state, reasons in figures.ENDINGS.items()
    for reason in reasons
}
RESTARTS = {reason.value for reason in figures.RESTARTS}


def played(*lines: str) -> Stage:
    """A scenario, played to its end."""
    script = Script(lines[0])
    for line in lines[1:]:
        script.play(line)
    return script.stage


def scenario(path: Path) -> Stage:
    """One of the engine's files."""
    text = path.read_text("utf-8").partition(f"{test_scenarios.RULE}\n")[0]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return played(lines[0], *(part for line in lines[1:] for part in line[2:].split(" ; ")))


def facts_of(stage: Stage) -> list[Fact]:
    """All facts of a stage; every stay is a minute."""
    return [
        fact
        for before, step in stage.steps
        for fact in counting.facts_of(
            before, step, {entry.id: MINUTE for entry in step.finished_entries}
        )
    ]


@pytest.mark.parametrize(
    "path", sorted(test_scenarios.SCENARIOS.glob("*.txt")), ids=lambda path: path.stem
)
def test_every_change_is_counted_once_and_under_a_series_that_is_always_shown(path: Path):
    stage = scenario(path)
    facts = facts_of(stage)
    events = [recorded.event for _, step in stage.steps for recorded in step.events]
    moves = [one for one in events if isinstance(one, EntryMoved) and one.origin is not one.state]
    counts = Counter(fact.kind for fact in facts)
    assert counts[Kind.SUBMITTED] == sum(isinstance(one, EntrySubmitted) for one in events)
    assert counts[Kind.STAYED_IN] == len(moves)
    assert counts[Kind.LEFT] == sum(one.state in FINAL for one in moves)
    over = [run for _, step in stage.steps for run in step.finished_runs]
    assert counts[Kind.RUN] == sum(run.kind is not RunKind.DIRECT for run in over)
    assert {fact.labels[1:] for fact in facts if fact.kind is Kind.LEFT} <= ENDED
    assert {fact.labels[1] for fact in facts if fact.kind is Kind.RESTARTED} <= RESTARTS
    runs = {fact.labels for fact in facts if fact.kind is Kind.RUN}
    assert runs <= set(figures.ZEROS["headgate_test_runs_total"])


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
    assert tested == [Fact(Kind.TESTED, ("bisection",), 120_000)] * len(probe.prs)


def test_what_others_push_is_counted_and_the_first_look_is_not():
    fresh = played("queue SINGLE", "submit 1")
    assert not [fact for fact in facts_of(fresh) if fact.kind is Kind.EXTERNAL]
    pushed = played("queue SINGLE", "submit 1", "foreign")
    assert [fact for fact in facts_of(pushed) if fact.kind is Kind.EXTERNAL] == [
        Fact(Kind.EXTERNAL, ())
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
    cells = [Fact(Kind.WAITED, ("main",), ms).cell for ms in (0, 60_000, 60_001, 86_400_001)]
    assert cells == [0, 0, 1, 11]
