"""What is carried from step to step equals what the value alone shows."""

from dataclasses import replace

import pytest

from service.mergequeue.engine import engine
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import RunKind
from service.vocabulary import SYSTEM
from tests.simulation.world import World

SEEDS = (3, 11, 199, 205, 671, 1460, 4181, 9988)
"""Histories of both modes, with batches, units, pushes, cancels and moves by others.

In 199 an entry lands by a probe of its own, and one that a longer probe proved stays. In 671 a unit
begins to land whose first members another run has cleared. In 1460 a batch begins with an entry
that is drawn already and one that is not.
"""


class Compared(World):
    """A world that looks at what its value carries, and takes each step without it as well."""

    def tell(self, one: Input) -> None:
        bare = replace(self.queue, entries=dict(self.queue.entries), runs=dict(self.queue.runs))
        assert engine.step(bare, one, self.now) == engine.step(self.queue, one, self.now)
        carried, drawn = Draft(self.queue, self.now, SYSTEM), Draft(bare, self.now, SYSTEM)
        assert _line_of(carried) == _line_of(drawn)
        assert _progress_of(carried) == _progress_of(drawn)
        assert _runs_of(carried) == _runs_of(drawn)
        super().tell(one)


def _line_of(draft: Draft) -> list[object]:
    graph = bases.graph(draft)
    parts: list[object] = [graph.of, graph.closure(None), graph.end]
    for node in graph.nodes:
        touches = node.touches if draft.is_parallel else None
        parts += [node.members, graph.members(node.ahead), graph.closure(touches), touches]
    return parts


def _progress_of(draft: Draft) -> list[object]:
    parts: list[object] = []
    for run in draft.runs.values():
        made = bases.progress(draft, run)
        parts.append(made and (made.landed, made.others, made.unproved, made.idle))
    return parts


def _runs_of(draft: Draft) -> list[object]:
    runs = draft.runs
    counts = [(runs.of_kind(kind), runs.in_progress(frozenset({kind}))) for kind in RunKind]
    return [counts, runs.due(draft.now), runs.next_due_at(draft.now)]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_carried_equals_what_is_drawn_anew(seed: int) -> None:
    Compared(seed).play()
