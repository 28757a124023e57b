"""Bases while the target moves: what is known of a run goes on, and who is doubted."""

from dataclasses import replace
from itertools import pairwise

from service.mergequeue.engine import engine
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import TargetMoved
from service.mergequeue.engine.model import LandedStep, Run, Tip
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import SYSTEM, Sha
from tests.mergequeue import trees
from tests.mergequeue.stage import START, Stage


def a_line() -> tuple[Draft, Run, Run]:
    """Two pull requests in a line, both built, and what is known of their runs."""
    stage = Stage(QueueConfig(concurrency=2))
    for pr in (1, 2):
        stage.tell(stage.submit(pr))
    draft = Draft(stage.queue, START, SYSTEM)
    first, second = draft.runs.values()
    assert bases.broken(draft, second) is None
    return draft, first, second


def land(draft: Draft, run: Run, tree: Sha) -> None:
    """The pull request of the run is on the target, as this tree."""
    tip = draft.queue.tip
    assert tip is not None
    landed = Tip(trees.sha("landed", tree), tree)
    first = run.entries[0]
    move = LandedStep(first.pr, tip.sha, landed.sha, landed.tree, entry=first.entry, run=run.id)
    moves = (*draft.queue.landed, move)
    draft.put_queue(replace(draft.queue, tip=landed, landed=moves))


def test_a_base_that_foresaw_the_landing_is_not_doubted() -> None:
    draft, first, second = a_line()
    land(draft, first, second.steps[0].tree)
    bases.doubt_unforeseen(draft, {second.id})
    assert draft.changed_from is None
    assert draft.doubted == set()


def test_a_base_that_foresaw_another_tree_is_doubted() -> None:
    draft, first, second = a_line()
    land(draft, first, trees.sha("another"))
    bases.doubt_unforeseen(draft, {second.id})
    assert draft.doubted == {second.id}


def test_moves_that_are_not_those_it_knows_are_all_looked_at_again() -> None:
    draft, first, second = a_line()
    land(draft, first, second.steps[0].tree)
    known = bases.progress(draft, second)
    copies = tuple(map(replace, draft.queue.landed))
    draft.put_queue(replace(draft.queue, landed=copies))
    assert known is not None
    assert known.landed == {1}
    assert bases.progress(draft, second) == known


def test_moves_are_forgotten_once_no_base_and_no_batch_looks_back_to_them() -> None:
    stage = Stage(QueueConfig(batch=True, batching_min_size=2))
    for pr in (1, 2):
        stage.tell(stage.submit(pr))
    tip, batch = stage.run(1).base_tip, stage.run(1).number
    shas = [*(trees.sha("old", str(place)) for place in range(2 * engine.MOVES_KEPT)), tip.sha]
    moves = [LandedStep(9, *pair, tip.tree) for pair in pairwise(shas)]
    news = TargetMoved(Tip(trees.sha("newer"), tip.tree))

    def kept_of(*landed: LandedStep) -> tuple[LandedStep, ...]:
        return engine.step(replace(stage.queue, landed=landed), news, START).queue.landed

    assert len(kept_of(*moves)) == engine.MOVES_KEPT
    moves[5] = replace(moves[5], batch=batch)
    assert kept_of(*moves)[:-1] == tuple(moves[5:])
