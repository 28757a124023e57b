"""Every change is counted once, and under a series that is always shown."""

from collections import Counter
from datetime import timedelta

from service.mergequeue.engine.outputs import EntryMoved, EntrySubmitted
from service.mergequeue.engine.states import FINAL, RunKind
from service.mergequeue.operations import counting
from service.metrics.facts import MetricFact
from service.metrics.queue_families import Kind
from service.process import figures
from tests.mergequeue.stage import Stage

MINUTE = timedelta(minutes=1)
ENDED = {
    (state.value.lower(), reason.value)
    for state, reasons in figures.ENDINGS.items()
    for reason in reasons
}
RESTARTS = {reason.value for reason in figures.RESTARTS}


def check(stage: Stage) -> None:
    """Check the facts of a whole scenario."""
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


def facts_of(stage: Stage) -> list[MetricFact]:
    """All facts of a stage; every stay is a minute."""
    return [
        fact
        for before, step in stage.steps
        for fact in counting.facts_of(
            before, step, {entry.id: MINUTE for entry in step.finished_entries}
        )
    ]
