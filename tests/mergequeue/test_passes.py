"""A pass changes nothing but what its row of the table says (planning/plan.py)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import pytest

from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.planning import plan
from service.mergequeue.engine.state.draft import Draft
from tests.mergequeue.scenario import FILES, Play
from tests.simulation import settings
from tests.simulation.world import World

HISTORIES = range(12)

NAMES = {
    "queue": {one.name for one in fields(MergeQueue)} - {"entries", "runs"},
    "entry": {one.name for one in fields(Entry)} | {"leaves"},
    "run": {one.name for one in fields(Run)} | {"begins", "leaves"},
}
"""What a row may name."""


def named_in(row: plan.Pass) -> set[str]:
    return {f"{kind} {name}" for kind in NAMES for name in getattr(row, kind).split()}


@dataclass
class Watch:
    """What each pass changes while the engine plans, by the place of its row."""

    changed: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def over(self, rows: tuple[plan.Pass, ...]) -> tuple[plan.Pass, ...]:
        """The same passes, each watched."""
        return tuple(self._watched(place, row) for place, row in enumerate(rows))

    def _watched(self, place: int, row: plan.Pass) -> plan.Pass:
        def apply(draft: Draft) -> None:
            before = (draft.queue, dict(draft.entries), dict(draft.runs))
            row.apply(draft)
            self.changed[place].update(changes(before, draft))

        return replace(row, apply=apply)


def changes(before: tuple[MergeQueue, dict[int, Entry], dict[str, Run]], draft: Draft) -> set[str]:
    queue, entries, runs = before
    found = set(differing("queue", queue, draft.queue))
    for old in entries.values():
        entry = draft.entries.get(old.pr)
        if entry is None or entry.id != old.id:
            entry = draft.finished_entries[old.id]
            found.add("entry leaves")
        found.update(differing("entry", old, entry))
    for run in runs.values():
        if run.id not in draft.runs:
            found.add("run leaves")
        found.update(differing("run", run, draft.runs.get(run.id) or draft.finished_runs[run.id]))
    if not draft.runs.keys() <= runs.keys():
        found.add("run begins")
    return found


def differing(kind: str, old: object, new: object) -> Iterator[str]:
    if old is not new:
        for name in NAMES[kind] - {"begins", "leaves"}:
            if getattr(old, name) != getattr(new, name):
                yield f"{kind} {name}"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """The passes are watched, and afterwards none has changed more than its row says."""
    rows, found = plan.PASSES, Watch()
    monkeypatch.setattr(plan, "PASSES", found.over(rows))
    yield found
    assert {
        row.looks_at: more
        for place, row in enumerate(rows)
        if (more := found.changed[place] - named_in(row))
    } == {}


def test_a_row_names_fields_that_there_are() -> None:
    for row in plan.PASSES:
        for kind, names in NAMES.items():
            assert set(getattr(row, kind).split()) <= names, row.looks_at


def test_a_pass_changes_in_a_scenario_what_its_row_says(watch: Watch) -> None:
    for name in sorted(FILES):
        for _ in Play(FILES[name]).steps():
            pass
    assert sum(map(bool, watch.changed.values())) > len(plan.PASSES) / 2


@pytest.mark.parametrize("seed", HISTORIES)
def test_a_pass_changes_in_a_history_what_its_row_says(seed: int, watch: Watch) -> None:
    World(seed, settings.EVERYTHING).play()
    assert watch.changed


def test_a_pass_that_changes_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    row, found = plan.PASSES[0], Watch()
    entered = Play(FILES[min(FILES)])

    def greedy(draft: Draft) -> None:
        row.apply(draft)
        if draft.queue.test_branch_reason != "planted":
            draft.put_queue(replace(draft.queue, test_branch_reason="planted"))

    monkeypatch.setattr(plan, "PASSES", found.over((replace(row, apply=greedy),)))
    next(iter(entered.steps()))
    assert found.changed[0] - named_in(row) == {"queue test_branch_reason"}
